import type { Clock } from '../../base/clock.ts';
import { memoized } from '../../base/memoized.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { leftCordoned } from '../../maintenance/drain/hold.ts';
import { readClusterView } from '../../maintenance/forecast/read-cluster-view.ts';
import type { LockOwnerPorts } from '../ports.ts';
import type { Draining } from '../run/workflow-member.ts';

/** How the nodes of a run are drained, in a dry run only forecast; undefined: not at all. */
export async function drainingOf(
  { self, newId, clock }: LockOwnerPorts & { readonly clock: Clock },
  { drain, dryRun }: Pick<RunSettings, 'drain' | 'dryRun'>,
): Promise<Draining | undefined> {
  if (drain === undefined) return undefined;
  if (dryRun) return { policy: drain, forecast: memoized(readClusterView) };
  const run = { run: await newId(), self, clock, reason: 'change of the kubelet configuration' };
  return { policy: drain, run, leftCordoned: memoized((cluster) => leftCordoned(cluster, run)) };
}
