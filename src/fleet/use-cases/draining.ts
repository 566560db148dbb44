import type { Clock } from '../../base/clock.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { LockOwnerPorts } from '../ports.ts';
import type { Draining } from '../run/workflow-member.ts';

/** How the nodes of a run are drained; undefined: not at all. */
export async function drainingOf(
  { self, newId, clock }: LockOwnerPorts & { readonly clock: Clock },
  { drain, dryRun }: Pick<RunSettings, 'drain' | 'dryRun'>,
): Promise<Draining | undefined> {
  if (drain === undefined || dryRun) return undefined;
  return { policy: drain, run: { run: await newId(), self, clock, reason: 'change of the kubelet configuration' } };
}
