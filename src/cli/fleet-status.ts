import { type ExitCode, isAppError } from '../base/errors.ts';
import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import { type HostOutcome, runFleet } from '../fleet/fleet.ts';
import { fleetFailure } from '../fleet/fleet-failure.ts';
import { type HostStatusFacts, statusFacts, statusOf } from '../fleet/host-status.ts';
import { selectHosts } from '../fleet/select.ts';
import { fleetMembers } from '../fleet/use-cases/fleet-members.ts';
import type { FleetRunRequest } from '../fleet/use-cases/fleet-request.ts';
import { fleetRules } from '../fleet/use-cases/fleet-rules.ts';
import { directoryOf, readFleet } from '../fleet/use-cases/load-fleet.ts';
import { openFleetCluster } from '../fleet/use-cases/open-fleet-cluster.ts';
import { clusterRoutes } from '../fleet/use-cases/open-fleet-run.ts';
import { type CommitRecord, commitRecord, revertsAt } from '../host/commit/record.ts';
import { combineFacts } from '../host/facts/fact.ts';
import { observe } from '../host/observe.ts';
import { changesOf } from '../host/plan/fold.ts';
import { runHost } from '../host/run-host.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isNodeReady } from '../kube/node-conditions.ts';
import type { KubeObject } from '../kube/object.ts';
import { isHealthy, kubeletHealth } from '../kubelet/kubelet-health.ts';
import { watchFleet } from './fleet-watch.ts';
import type { Services } from './services.ts';
import { type OutputRequest, renderDocument } from './show-document.ts';
import { shownChanges } from './show-plan.ts';

const FACTS = combineFacts({ status: statusFacts, commit: commitRecord, health: kubeletHealth('http://127.0.0.1:10248/healthz') });

type Inspected = HostStatusFacts & { readonly health: string; readonly commit: CommitRecord | null };

/** One line of the table. */
interface Row {
  readonly host: string;
  readonly reachable: boolean;
  /** Null here and below: unknown. */
  readonly kubelet: string | null;
  readonly config: string | null;
  readonly health: string | null;
  readonly node: string | null;
  readonly drift: string | null;
  /**
   * A change of the kubelet that the host rolls back at this time unless it is confirmed; null: none, or
   * unknown.
   */
  readonly unconfirmed: { readonly owner: string; readonly revertsAt: string } | null;
}

export interface FleetStatusRequest {
  readonly run: FleetRunRequest;
  readonly output: OutputRequest;
}

/** `fleet status`: one line a host. */
export async function runFleetStatus(services: Services, { run: request, output }: FleetStatusRequest): Promise<ExitCode> {
  const watch = watchFleet(services, output, { reads: true });
  const fleet = await readFleet(services, request);
  const hosts = selectHosts(fleet.hosts, request.selection);
  const rules = fleetRules(request.rules, { total: hosts.length, dryRun: true });
  const access = await openFleetCluster(services, request.cluster, {
    cluster: fleet.cluster,
    file: fleet.file,
    dryRun: true,
    reporter: watch.reporter,
    writes: false,
    through: await clusterRoutes(services, request, { hosts: fleet.hosts, chosen: hosts, directory: directoryOf(services, fleet.file) }),
  });
  try {
    const inspected = new Map<string, Inspected>();
    const members = await fleetMembers(services, request, {
      tasks: hosts.map((host) => ({ host })),
      cluster: fleet.cluster,
      file: fleet.file,
      directory: directoryOf(services, fleet.file),
      access,
      dryRun: true,
      reporter: watch.reporter,
      // In the same round trip as the plan.
      connect: async (target, { name }, queries, reporter) => {
        const host = runHost(await services.connectHost(target, reporter), {
          clock: services.clock,
          expected: [...queries, ...Object.values(FACTS.queries)],
        });
        try {
          const { status, health, commit } = await observe(host, FACTS, services.signal);
          inspected.set(name, { ...statusOf(status), commit, health: isHealthy(health) ? 'ok' : healthText(health) });
          return host;
        } catch (error) {
          await host.close();
          throw error;
        }
      },
    });
    const [{ outcomes }, nodes] = await Promise.all([runFleet(members, rules, quiet(watch.ports)), nodesOf(access.cluster)]);
    watch.close();
    const rows = outcomes.map((outcome) => rowOf(outcome, inspected.get(outcome.host) ?? null, nodes));
    const { format } = output;
    services.output.stdout(format === 'text' ? joinLines(tableOf(rows)) : renderDocument(documentOf(rows), format));
    const unreached = outcomes.map((outcome) =>
      inspected.has(outcome.host) ? { ...outcome, error: null, status: 'unchanged' as const } : outcome,
    );
    const failure = fleetFailure({ outcomes: unreached, stopped: null }, { signal: services.signal, reads: true });
    if (failure !== null) throw failure;
    return 0;
  } finally {
    watch.close();
    await access.close();
  }
}

/** Drops warnings of the plan: they concern only the plan command. */
function quiet(ports: Parameters<typeof runFleet>[2]): Parameters<typeof runFleet>[2] {
  return { ...ports, reporterOf: () => ({ report: () => undefined }) };
}

/** Nodes by name; null when the credentials may not list Nodes. */
async function nodesOf(cluster: Cluster): Promise<ReadonlyMap<string, KubeObject> | null> {
  try {
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' });
    return new Map(items.map((node) => [node.metadata.name, node]));
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return null;
    throw error;
  }
}

function healthText({ unit, healthz }: ReturnType<(typeof FACTS)['parse']>['health']): string {
  if (unit === null || unit.loadState === 'not-found') return 'not installed';
  if (unit.activeState !== 'active') return unit.activeState;
  return healthz === null ? 'unknown' : 'status' in healthz ? `healthz ${healthz.status}` : 'no answer';
}

function rowOf(outcome: HostOutcome, inspected: Inspected | null, nodes: ReadonlyMap<string, KubeObject> | null): Row {
  const { host } = outcome;
  const node = inspected?.nodeName === null || inspected === null ? undefined : nodes?.get(inspected.nodeName);
  return {
    host,
    reachable: inspected !== null,
    kubelet: inspected?.kubeletVersion ?? null,
    config: inspected?.configHash ?? null,
    health: inspected?.health ?? null,
    node: inspected === null || nodes === null ? null : node === undefined ? 'none' : isNodeReady(node) ? 'Ready' : 'NotReady',
    drift:
      inspected === null
        ? null
        : [describeCommit(inspected.commit), describeDrift(outcome, inspected)].filter(Boolean).join(', ') || 'none',
    unconfirmed: inspected?.commit?.state === 'armed' ? { owner: inspected.commit.owner, revertsAt: revertTime(inspected.commit) } : null,
  };
}

/** Empty: no unconfirmed change. */
function describeCommit(commit: CommitRecord | null): string {
  if (commit?.state === 'armed') return `unconfirmed, reverts at ${revertTime(commit)}`;
  return commit?.state === 'reverting' ? 'is being rolled back' : '';
}

function revertTime(commit: CommitRecord): string {
  return `${new Date(revertsAt(commit) * 1000).toISOString().slice(0, 19)}Z`;
}

/** Empty: none. */
function describeDrift({ plan, error, status }: HostOutcome, { nodeName }: Inspected): string {
  if (nodeName === null) return 'not joined';
  if (status === 'pending' && plan !== null) {
    if (plan.host.phases.some(({ phase }) => phase === 'join')) return 'no control plane';
    const changes = changesOf(plan.host).changes.filter(({ kind }) => kind !== 'confirm-commit');
    return driftText(shownChanges(changes, 0).length);
  }
  return error === null ? '' : `unknown: ${error.code}`;
}

function driftText(changes: number): string {
  return changes === 0 ? '' : `${changes} ${changes === 1 ? 'change' : 'changes'}`;
}

function tableOf(rows: readonly Row[]): readonly string[] {
  const header = ['HOST', 'REACHABLE', 'KUBELET', 'CONFIG', 'HEALTH', 'NODE', 'DRIFT'];
  const lines = rows.map(({ host, reachable, ...known }) => [
    host,
    reachable ? 'yes' : 'no',
    ...[known.kubelet, known.config, known.health, known.node, known.drift].map((text) => text ?? '-'),
  ]);
  return renderTable([header, ...lines]);
}

function documentOf(rows: readonly Row[]): object {
  return { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'FleetStatus', hosts: rows };
}
