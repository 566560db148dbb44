import { Secret } from '../../base/text/secret.ts';
import type { Phase } from '../../host/phase.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { isSelectedBy, PREFLIGHT_PHASE, phaseSelection, skipsPreflight } from '../../host/run-workflow.ts';
import type { SecretSource } from '../ports.ts';
import type { NodeOptions } from '../workflows/node/node-options.ts';

/** Whether a phase of init is skipped by its own name or its parent's. */
export function phaseSkipTest({ skipPhases }: Pick<RunSettings, 'skipPhases'>): (phase: string) => boolean {
  const runs = phaseSelection({ skipPhases });
  return (phase) => !runs(phase);
}

/**
 * The checks of a run. As in kubeadm, a single phase runs no checks of the phase preflight; a phase that changes the kubelet
 * keeps its own, with which a node is not lost.
 */
export function checksOf(
  { phases }: { readonly phases: readonly Pick<Phase<never>, 'name' | 'changesKubelet'>[] },
  run: RunSettings,
): Pick<NodeOptions, 'skipPreflight' | 'singlePhase'> {
  const { onlyPhase } = run;
  const skipPreflight = skipsPreflight(run);
  if (onlyPhase === undefined || onlyPhase === PREFLIGHT_PHASE.name) return { skipPreflight };
  const changesKubelet = phases.some((phase) => phase.changesKubelet && isSelectedBy(phase.name, onlyPhase));
  return { skipPreflight: skipPreflight || !changesKubelet, singlePhase: true };
}

export function freshTokens({ newToken }: Pick<SecretSource, 'newToken'>, count: number): Promise<readonly Secret[]> {
  return Promise.all(Array.from({ length: count }, () => newToken()));
}

/** Stand-ins for new tokens, so that a dry run generates no tokens and prints the same plan each time. */
export function placeholderTokens(count: number): readonly Secret[] {
  return Array.from(
    { length: count },
    (_, i) => new Secret(`${'dryrun'.slice(0, 6 - String(i || '').length)}${i || ''}.${'0'.repeat(16)}`),
  );
}
