import type { Clock } from '../../base/clock.ts';
import { unlessRefused } from '../../base/errors.ts';
import { memoized } from '../../base/memoized.ts';
import type { Reporter } from '../../base/reporter.ts';
import { impactOfPlan } from '../../host/plan/document.ts';
import { needsDrain } from '../../host/plan/impact.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { CONTROL_PLANE_LABEL } from '../../kube/node-marks.ts';
import { drainForecastWarning } from '../../maintenance/drain/drain-problems.ts';
import { leftCordoned } from '../../maintenance/drain/hold.ts';
import { plannedDrains } from '../../maintenance/drain/planned-drains.ts';
import { readRunForecast } from '../../maintenance/drain/run-forecast.ts';
import type { DrainForecastDocument } from '../../maintenance/forecast/forecast-document.ts';
import type { LockOwnerPorts } from '../ports.ts';
import type { HostOutcome } from '../run/fleet.ts';
import type { Draining } from '../run/workflow-member.ts';

/**
 * How the nodes of a run are drained, in a dry run only forecast; undefined: not at all. The caller ends the run with
 * `planned.removeAll`.
 * @param count number of hosts or Nodes of the run: after the only one, nothing waits for its evicted pods
 */
export async function drainingOf(
  { self, newId, clock }: LockOwnerPorts & { readonly clock: Clock },
  { drain, dryRun }: Pick<RunSettings, 'drain' | 'dryRun'>,
  count: number,
): Promise<Draining | undefined> {
  if (drain === undefined) return undefined;
  const policy = count === 1 ? { ...drain, settleMs: 0 } : drain;
  const controlPlanes = memoized(controlPlaneNodes);
  if (dryRun) {
    const own = { run: '', self, now: clock.now() };
    return { policy, controlPlanes, forecast: memoized((cluster) => readRunForecast(cluster, policy, own)) };
  }
  const run = { run: await newId(), self, clock, reason: 'change of the kubelet configuration' };
  return { policy, controlPlanes, planned: plannedDrains(run), leftCordoned: memoized((cluster) => leftCordoned(cluster, run)) };
}

/** The forecast of the drains of a planned run; null: no node is drained, or the drains are not known. */
export async function forecastRun(
  draining: Draining | undefined,
  cluster: Cluster | null,
  outcomes: readonly HostOutcome[],
): Promise<DrainForecastDocument | null> {
  const names = outcomes.flatMap(({ plan }) => plan?.drain?.node ?? []);
  if (draining?.forecast === undefined || cluster === null || names.length === 0) return null;
  return (await unlessRefused(draining.forecast(cluster)))?.ofRun(names) ?? null;
}

/** Marks the Nodes that the plans of hosts will drain. */
export async function announceDrains(draining: Draining | undefined, cluster: Cluster, outcomes: readonly HostOutcome[]): Promise<void> {
  if (draining?.policy.isAllowed !== true) return;
  const isDrained = ({ status, plan }: HostOutcome): boolean =>
    status === 'pending' && plan !== null && needsDrain(impactOfPlan(plan.host));
  const names = outcomes.filter(isDrained).flatMap(({ plan, node }) => plan?.host.own?.node ?? node ?? []);
  await draining.planned?.add(cluster, names);
}

/** The forecast of the drains of these nodes before a change of the cluster, with a warning of each that would be refused or wait. */
export async function forecastDrains(
  { self, clock }: Pick<LockOwnerPorts, 'self'> & { readonly clock: Clock },
  cluster: Cluster,
  { names, run: { drain }, reporter }: { readonly names: readonly string[]; readonly run: RunSettings; readonly reporter: Reporter },
): Promise<DrainForecastDocument | null> {
  if (drain === undefined || names.length === 0) return null;
  const forecast = await unlessRefused(readRunForecast(cluster, drain, { run: '', self, now: clock.now() }));
  if (forecast === null) return null;
  const found = forecast.ofRun(names);
  for (const node of found.nodes) {
    const warning = drainForecastWarning(node);
    if (warning !== null) reporter.report({ level: 'warning', ...warning, host: node.node });
  }
  return found;
}

/** One request; control planes of kubeadm up to 1.19 are not found. */
async function controlPlaneNodes(cluster: Cluster): Promise<ReadonlySet<string>> {
  const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' }, { labelSelector: CONTROL_PLANE_LABEL });
  return new Set(items.map(({ metadata }) => metadata.name));
}
