import { Secret } from '../../base/text/secret.ts';
import type { Phase } from '../../host/phase.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { isSelectedBy } from '../../host/run-settings.ts';
import { PREFLIGHT_PHASE, phaseSelection, skipsPreflight } from '../../host/run-workflow.ts';
import { countMissingTokens } from '../config/defaults.ts';
import type { InitConfiguration } from '../config/model.ts';
import type { SecretSource } from '../ports.ts';
import type { InitTokenOptions } from '../workflows/bootstrap-tokens.ts';
import type { NodeOptions } from '../workflows/node/node-options.ts';

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

/** The tokens of `init`, as declared, new ones for those without a value, and that of uploaded certificates. */
export async function initTokens(
  { newToken }: Pick<SecretSource, 'newToken'>,
  init: InitConfiguration,
  run: RunSettings,
): Promise<Omit<InitTokenOptions, 'apiServer'> & { readonly certsToken: Secret }> {
  const missing = Array.from({ length: countMissingTokens(init) }, (_, i) => (run.dryRun ? placeholderToken(i) : newToken()));
  return {
    bootstrapTokens: init.bootstrapTokens ?? [],
    freshTokens: await Promise.all(missing),
    makesTokens: phaseSelection(run)('bootstrap-token'),
    certsToken: run.dryRun ? new Secret(`dryrun.${'1'.repeat(16)}`) : await newToken(),
  };
}

/** In place of a new token, so that a dry run generates no tokens and prints the same plan each time. */
function placeholderToken(i: number): Secret {
  return new Secret(`${'dryrun'.slice(0, 6 - String(i || '').length)}${i || ''}.${'0'.repeat(16)}`);
}
