import { Secret } from '../../base/text/secret.ts';
import type { Phase } from '../../host/phase.ts';
import { isSelectedBy, phaseSelection } from '../../host/run-workflow.ts';
import type { SecretSource } from '../ports.ts';

/** Whether a phase of init is skipped by its own name or its parent's. */
export function phaseSkipTest(skipped: readonly string[]): (phase: string) => boolean {
  const runs = phaseSelection(skipped, undefined);
  return (phase) => !runs(phase);
}

/**
 * Whether preflight checks the requirements of the kubelet: not for a single phase that only writes to the cluster, or
 * files for later use.
 */
export function needsKubelet(
  { phases }: { readonly phases: readonly Pick<Phase<never>, 'name' | 'needsKubelet'>[] },
  onlyPhase: string | undefined,
): boolean {
  if (onlyPhase === undefined) return true;
  const selected = phases.filter(({ name }) => isSelectedBy(name, onlyPhase));
  return selected.length === 0 || selected.some((phase) => phase.needsKubelet);
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
