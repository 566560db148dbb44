import type { RunTime } from '../../base/clock.ts';
import { AppError, isAppError, usageError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { type AssessedNode, assessNodes } from '../../dynamic/workflows/read-nodes.ts';
import { isNodeReference, parseNodeName } from '../../kube/node-name.ts';
import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { describeNodeSource } from '../../kubelet/effective/node-source.ts';
import type { Rollout } from '../../rollouts/api/rollout.ts';
import { knownRollouts, rolloutOfNode } from '../../rollouts/use-cases/find-rollouts.ts';
import { rolloutState } from '../../rollouts/use-cases/wait-for-rollout.ts';
import type { Drift } from '../drift/drift.ts';
import { hostsOfPattern, selectHosts } from '../file/select.ts';
import { targetName } from '../host-target.ts';
import type { NamedHostPorts } from '../ports.ts';
import type { ComparePorts, CompareView } from './compare-hosts.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import {
  type FleetStatus,
  fleetStatus,
  type HostCertificate,
  type HostStatusRow,
  type InspectedTarget,
  inspectHosts,
  readClusterNodes,
} from './fleet-status.ts';
import { fleetTargets } from './host-access.ts';
import { fleetFileOf, readFleet } from './load-fleet.ts';
import { findTargets } from './named-hosts.ts';

/** A host of the fleet file with its Node, or one of them. Null: not seen, so that nothing is known. */
export interface OverviewRow {
  readonly host: string | null;
  readonly node: string | null;
  readonly ready: 'Ready' | 'NotReady' | 'no Node' | null;
  readonly kubelet: string | null;
  /** `file`, or NAMESPACE/NAME of a ConfigMap. */
  readonly configuration: string | null;
  /** Empty: the host does not differ from the fleet file. */
  readonly drift: readonly string[] | null;
  /** What changed since the last apply, such as `host changed` or `undone`; null: nothing, or unknown. */
  readonly changed: string | null;
  /** A change that is not finished, or that failed. */
  readonly change: string | null;
  /** The certificate that expires first. */
  readonly certificate: Pick<HostCertificate, 'role' | 'path' | 'notAfter' | 'state'> | null;
  /** The KubeletConfigRollout that the Node belongs to. */
  readonly rollout: string | null;
  /** Why parts are unknown. */
  readonly unseen: readonly string[];
  /** The host as inspected; null: no host is known. */
  readonly inspected: HostStatusRow | null;
  /** The Node with its dynamic configuration; null: unknown, or the host has none. */
  readonly dynamic: AssessedNode | null;
}

export interface Overview {
  readonly rows: readonly OverviewRow[];
  /** What was not read, for all rows. */
  readonly unseen: readonly string[];
  /** The rollouts that are not complete, as `edge: Progressing: 3 of 12 nodes updated`. */
  readonly rollouts: readonly string[];
  /** The problems of hosts that were not inspected; null: none. */
  readonly failure: AppError | null;
}

type OverviewPorts = ComparePorts & NamedHostPorts & OpenClusterPorts & RunTime;

export interface OverviewRequest extends FleetRunRequest {
  /** Hosts of the fleet file and Nodes; empty: all. */
  readonly names: readonly string[];
  /** Hosts that are inspected without a fleet file; empty: those of the fleet file. */
  readonly hosts: readonly string[];
}

/**
 * The hosts of the fleet file and the Nodes of the cluster; a host and its registered Node share a row. Without a fleet file:
 * the Nodes alone, or the hosts of `--host` with them. Without an API server: what SSH shows of the hosts.
 * @throws AppError for an unknown name; the errors of the cluster if no host is inspected
 */
export async function readOverview(
  services: OverviewPorts,
  given: OverviewRequest,
  view: Pick<CompareView, 'reporter' | 'ports'>,
): Promise<Overview> {
  if (given.hosts.length > 0 && given.file === undefined) return overviewOfTargets(services, given);
  // With a fleet file, --host is another form of the name.
  const request = { ...given, names: [...given.names, ...given.hosts] };
  const file = fleetFileOf(request.file);
  const hasFleet =
    request.file !== undefined ||
    ((await services.input.exists(file)) && (await services.input.readText(file)).includes('kubeletadm.dev/'));
  const { selection } = request;
  const bySelection = selection.limit.length + selection.groups.length > 0;
  if (!hasFleet && bySelection)
    throw usageError('--limit and --group select hosts of a fleet file, and there is none', 'Pass the fleet file with -f');
  if (!hasFleet) {
    const [nodes, rollouts] = await withCluster(services, request.cluster, (cluster) =>
      Promise.all([
        assessNodes(cluster, request.names.map(nodeName), { now: services.clock.now(), labelSelector: selection.selector?.text }),
        knownRollouts(cluster),
      ]),
    );
    const unseen = [`hosts: no fleet file ${file} and no --host, so drift, certificates and unconfirmed changes are unknown`];
    return { ...withRollouts(overviewOfNodes(nodes), rollouts), unseen };
  }
  const limit = await declaredNames(services, request);
  const selected = { ...request, selection: { ...selection, limit: [...selection.limit, ...limit] } };
  const onlyHosts = bySelection || selection.selector !== undefined;
  const status = await readHosts(services, selected, { ...view, readsCertificates: true, readsDetails: true });
  return joined(status, request.names, { onlyHosts });
}

/**
 * The status of the hosts of a fleet. Without an API server: what SSH shows of them; `failure` then begins with the problem of the
 * cluster.
 * @throws as `fleetStatus`, except for a cluster that is unreachable
 */
export async function readHosts(
  services: OverviewPorts,
  request: FleetRunRequest,
  view: Parameters<typeof fleetStatus>[2],
): Promise<FleetStatus> {
  try {
    return await fleetStatus(services, request, view);
  } catch (error) {
    if (!isWithoutCluster(error)) throw error;
    const status = await inspectHosts(services, await hostsOfFleet(services, request), { nodes: null, parallel: request.rules.parallel });
    return withoutCluster(status, error);
  }
}

/** The API server does not answer, or its address is unknown. */
function isWithoutCluster(error: unknown): error is AppError {
  return ['CLUSTER_UNREACHABLE', 'CLUSTER_UNAUTHORIZED', 'CLUSTER_ERROR', 'NO_API_SERVER', 'KUBECONFIG_FILE_UNREADABLE'].some((code) =>
    isAppError(error, code),
  );
}

function withoutCluster(status: FleetStatus, error: AppError): FleetStatus {
  const problems = error.problems.map((problem) => ({ ...problem, message: `the Nodes were not read: ${problem.message}` }));
  return { ...status, failure: new AppError([...problems, ...(status.failure?.problems ?? [])], { cause: error }) };
}

async function hostsOfFleet(services: OverviewPorts, request: FleetRunRequest): Promise<readonly InspectedTarget[]> {
  const fleet = await readFleet(services, request);
  const targetOf = await fleetTargets(services, request.connection, fleet.file);
  const selected = selectHosts(fleet.hosts, request.selection);
  return selected.map((host) => ({ host: host.name, groups: host.groups ?? [], target: targetOf(host) }));
}

/** The hosts of `--host`, with their Nodes if an API server is configured and answers. */
async function overviewOfTargets(services: OverviewPorts, request: OverviewRequest): Promise<Overview> {
  const { hosts: names, connection, cluster: named, rules, selection } = request;
  if (request.names.length > 0 || selection.limit.length + selection.groups.length > 0 || selection.selector !== undefined)
    throw usageError(
      '--host inspects hosts without a fleet file: it cannot be combined with names, --limit, --group or --selector',
      'Pass the names of hosts of the fleet file as arguments: kubeletadm status -f fleet.yaml NAME',
    );
  const found = await findTargets(services, { names, file: request.file, connection }, { changes: false, others: 'addresses' });
  const now = services.clock.now();
  let failure: AppError | null = null;
  const nodes = await withCluster(services, named, (cluster) => readClusterNodes(cluster, now)).catch((error: unknown) => {
    if (!isWithoutCluster(error)) throw error;
    failure = error;
    return null;
  });
  const targets = found.map(({ target }) => ({ host: targetName(target), groups: [], target }));
  const status = await inspectHosts(services, targets, { nodes, parallel: rules.parallel });
  // Without --kubeconfig, hosts alone were asked for.
  const isAlone = isAppError(failure, 'NO_API_SERVER') && named.kubeconfig === undefined;
  const overview = joined(failure === null || isAlone ? status : withoutCluster(status, failure), [], { onlyHosts: true });
  return {
    ...overview,
    unseen: [...(isAlone ? ['Nodes: no kubeconfig was found'] : []), 'drift: the hosts were compared with no fleet file'],
  };
}

/** The Nodes of a cluster whose hosts are not read. */
export function overviewOfNodes(nodes: readonly AssessedNode[]): Overview {
  return { rows: nodes.map((node) => rowOfNode(node, null)), unseen: [], rollouts: [], failure: null };
}

/** The hosts of a status, without Nodes of other hosts. */
export function overviewOfHosts(status: FleetStatus): Overview {
  return { ...joined(status, [], { onlyHosts: true }), unseen: [] };
}

/** The names, if the fleet file declares all of them; a Node that it does not declare is found among all hosts and Nodes. */
async function declaredNames(services: OverviewPorts, { file, names }: OverviewRequest): Promise<readonly string[]> {
  const { hosts } = await readFleet(services, { file });
  return names.every((name) => hostsOfPattern(hosts, name).length > 0) ? names : [];
}

/** The rows of a status, in the order of the fleet file, then Nodes of no host. */
function joined(
  { rows, certificates, details, failure }: FleetStatus,
  names: readonly string[],
  { onlyHosts }: { readonly onlyHosts: boolean },
): Overview {
  const nodes = details?.nodes ?? null;
  const byName = new Map((nodes ?? []).map((node) => [node.config.name, node]));
  const problems = new Map(
    (failure?.problems ?? []).flatMap(({ host, message }) => (host === undefined ? [] : [[host, message] as const])),
  );
  const hosts = rows.map((row) =>
    rowOfHost(row, {
      node: byName.get(row.nodeName ?? '') ?? null,
      drifts: details?.drifts.get(row.host) ?? [],
      certificates: certificates.filter(({ host }) => host === row.host),
      problem: problems.get(row.host) ?? null,
    }),
  );
  const taken = new Set(rows.map(({ nodeName: name }) => name));
  // An unreachable host may be the host of any of them.
  const others = onlyHosts
    ? []
    : (nodes ?? [])
        .filter(({ config }) => !taken.has(config.name))
        .map((node) => rowOfNode(node, 'no reachable host of the fleet file has registered this Node'));
  const all = [...hosts, ...others];
  const isNamed = ({ host, node }: OverviewRow, name: string): boolean =>
    (!isNodeReference(name) && host === name) || node === nodeName(name);
  const missing = names.find((name) => !all.some((row) => isNamed(row, name)));
  if (missing !== undefined)
    throw usageError(`no host of the fleet file and no Node has the name ${missing}`, 'List all: kubeletadm status');
  const overview: Overview = {
    rows: names.length === 0 ? all : all.filter((row) => names.some((name) => isNamed(row, name))),
    // An unreachable cluster is a failure.
    unseen:
      nodes === null && failure?.problems.some(({ host }) => host === undefined) !== true
        ? ['Nodes: the kubeconfig may not list them']
        : [],
    rollouts: [],
    failure,
  };
  return withRollouts(overview, details?.rollouts ?? []);
}

/** An overview with the rollout of each Node, and the states of those that are not complete. */
function withRollouts(overview: Overview, rollouts: readonly Rollout[]): Overview {
  const rolloutOf = ({ dynamic }: OverviewRow): Rollout | null =>
    dynamic === null ? null : rolloutOfNode(rollouts, dynamic.config.labels);
  const open = rollouts.filter(({ status, generation }) => status.phase !== 'Complete' || status.observedGeneration !== generation);
  return {
    ...overview,
    rows: overview.rows.map((row) => ({ ...row, rollout: rolloutOf(row)?.name ?? null })),
    rollouts: open.map((rollout) => `${rollout.name}: ${rolloutState(rollout)}`),
  };
}

function nodeName(name: string): string {
  return isNodeReference(name) ? parseNodeName(name) : name;
}

interface HostParts {
  readonly node: AssessedNode | null;
  readonly drifts: readonly Drift[];
  readonly certificates: readonly HostCertificate[];
  readonly problem: string | null;
}

function rowOfHost(row: HostStatusRow, { node, drifts, certificates, problem }: HostParts): OverviewRow {
  const { host, reachable, nodeName: name, kubelet, source, drift, unconfirmed } = row;
  const changed = [...new Set(drifts.flatMap(({ field }) => field?.changed ?? []))].map((what) =>
    what === 'undone' ? what : `${what} changed`,
  );
  const soonest = certificates.filter(({ notAfter }) => notAfter !== null).toSorted((a, b) => Number(a.notAfter) - Number(b.notAfter))[0];
  const pending = unconfirmed === null ? null : `unconfirmed, rolls back at ${unconfirmed.revertsAt}`;
  return {
    host,
    node: name,
    ready: row.node === null ? null : row.node === 'none' ? 'no Node' : row.node === 'Ready' ? 'Ready' : 'NotReady',
    kubelet,
    configuration: source === null || source.kind === 'unknown' ? null : describeNodeSource(source),
    drift:
      drift === null
        ? null
        : drifts.length > 0
          ? drifts.map(({ what, why }) => (why.startsWith(what) ? why : `${what}: ${why}`))
          : drift === 'none'
            ? []
            : [drift],
    changed: changed.length === 0 ? null : changed.join(', '),
    change: reachable ? (pending ?? (node === null ? 'none' : changeOf(node))) : null,
    certificate: soonest ?? null,
    inspected: row,
    dynamic: node,
    rollout: null,
    unseen: reachable ? unknownVersion(kubelet) : [problem ?? 'the host was not inspected'],
  };
}

function unknownVersion(kubelet: string | null): readonly string[] {
  if (kubelet === null) return ['version of the kubelet: no program kubelet on the PATH of the host or in unit kubelet'];
  return kubelet === 'unknown' ? ['version of the kubelet: kubelet --version on the host printed none'] : [];
}

/** A Node whose host is not read. @param why null: no host is read */
function rowOfNode(node: AssessedNode, why: string | null): OverviewRow {
  const { config } = node;
  const active = config.status?.active ?? null;
  return {
    host: null,
    node: config.name,
    ready: config.isReady ? 'Ready' : 'NotReady',
    kubelet: config.kubeletVersion === '' ? null : config.kubeletVersion,
    configuration:
      config.status === null || config.report?.observed === false ? null : active === null ? 'file' : `${active.namespace}/${active.name}`,
    drift: null,
    changed: null,
    // The host alone knows of an unconfirmed change.
    change: changeOf(node) === 'none' ? null : changeOf(node),
    certificate: null,
    inspected: null,
    dynamic: node,
    rollout: null,
    unseen: why === null ? [] : [why],
  };
}

/** The state of an assignment that is not in force; else `none`. */
function changeOf({ verdict, config }: AssessedNode): string {
  const isDone =
    verdict.state === 'local' ||
    verdict.state === 'good' ||
    (verdict.state === 'off' && config.source.source === null && config.source.issue === null);
  return isDone ? 'none' : verdict.state;
}

/** Pause between two reads. Each read connects to all selected hosts. */
const PAUSE_MS = 10_000;

const SILENT: Reporter = { report: () => undefined };

type OverviewView = Pick<CompareView, 'reporter' | 'ports'>;

/**
 * Reads an overview again and again, until the run is interrupted. A read that fails, for example because the API server is
 * unreachable, is reported once and repeated. Warnings about hosts and the cluster are reported by the first read.
 * @throws the errors of the first read; the reason of the interruption
 */
export async function watchOverview(
  { clock, signal }: RunTime,
  read: (view: OverviewView) => Promise<Overview>,
  { changed, ...view }: OverviewView & { readonly changed: (overview: Overview) => void },
): Promise<never> {
  changed(await read(view));
  let issue: string | null = null;
  for (;;) {
    await clock.sleep(PAUSE_MS, signal);
    try {
      const overview = await read({ reporter: SILENT, ports: { signal, reporterOf: () => SILENT } });
      signal.throwIfAborted();
      issue = null;
      changed(overview);
    } catch (error) {
      if (signal.aborted || !isAppError(error)) throw error;
      if (issue !== error.message) view.reporter.report({ level: 'warning', code: 'NOT_FOLLOWED', message: `${error.message}: retrying` });
      issue = error.message;
    }
  }
}
