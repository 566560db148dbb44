import type { RunTime } from '../../base/clock.ts';
import { type AppError, isAppError, usageError } from '../../base/errors.ts';
import { type AssessedNode, assessNodes } from '../../dynamic/workflows/read-nodes.ts';
import { isNodeReference, parseNodeName } from '../../kube/node-name.ts';
import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import { describeNodeSource } from '../../kubelet/effective/node-source.ts';
import type { Drift } from '../drift/drift.ts';
import { hostsOfPattern } from '../file/select.ts';
import type { ComparePorts, CompareView } from './compare-hosts.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import { type FleetStatus, fleetStatus, type HostCertificate, type HostStatusRow } from './fleet-status.ts';
import { fleetFileOf, readFleet } from './load-fleet.ts';

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
  /** What changed since the last apply: the fleet file, the host, or both; null: nothing, or unknown. */
  readonly changed: string | null;
  /** A change that is not finished, or that failed. */
  readonly change: string | null;
  /** The certificate that expires first. */
  readonly certificate: Pick<HostCertificate, 'role' | 'path' | 'notAfter' | 'state'> | null;
  /** Why parts are unknown. */
  readonly unseen: readonly string[];
}

export interface Overview {
  readonly rows: readonly OverviewRow[];
  /** What was not read, for all rows. */
  readonly unseen: readonly string[];
  /** The problems of hosts that were not inspected; null: none. */
  readonly failure: AppError | null;
}

export interface OverviewRequest extends FleetRunRequest {
  /** Hosts of the fleet file and Nodes; empty: all. */
  readonly names: readonly string[];
}

/**
 * The hosts of the fleet file and the Nodes of the cluster, joined by the Node that each kubelet has registered. Without a fleet file:
 * the Nodes alone.
 * @throws AppError for an unknown name; the errors of the cluster
 */
export async function readOverview(
  services: ComparePorts & RunTime,
  request: OverviewRequest,
  view: Pick<CompareView, 'reporter' | 'ports'>,
): Promise<Overview> {
  const file = fleetFileOf(request.file);
  const hasFleet =
    request.file !== undefined ||
    ((await services.input.exists(file)) && (await services.input.readText(file)).includes('kubeletadm.dev/'));
  const { selection } = request;
  const bySelection = selection.limit.length + selection.groups.length > 0;
  if (!hasFleet && bySelection)
    throw usageError('--limit and --group select hosts of a fleet file, and there is none', 'Pass the fleet file with -f');
  if (!hasFleet) {
    const nodes = await withCluster(services, request.cluster, (cluster) =>
      assessNodes(cluster, request.names.map(nodeName), { now: services.clock.now(), labelSelector: selection.selector?.text }),
    );
    const unseen = [`hosts: no fleet file ${file}, so drift, certificates and unconfirmed changes are unknown`];
    return { rows: nodes.map((node) => rowOfNode(node, null)), unseen, failure: null };
  }
  const limit = await declaredNames(services, request);
  const status = await fleetStatus(
    services,
    { ...request, selection: { ...selection, limit: [...selection.limit, ...limit] } },
    { ...view, readsCertificates: true, readsDetails: true },
  );
  return joined(status, request.names, { onlyHosts: bySelection || selection.selector !== undefined });
}

/** The names, if the fleet file declares all of them; a Node that it does not declare is found among all hosts and Nodes. */
async function declaredNames(services: ComparePorts, { file, names }: OverviewRequest): Promise<readonly string[]> {
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
  return {
    rows: names.length === 0 ? all : all.filter((row) => names.some((name) => isNamed(row, name))),
    unseen: nodes === null ? ['Nodes: the kubeconfig may not list them'] : [],
    failure,
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
  const changed = [...new Set(drifts.flatMap(({ field }) => field?.changed ?? []))];
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
    unseen: reachable ? [] : [problem ?? 'the host was not inspected'],
  };
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

/** Pause between two reads. */
const PAUSE_MS = 10_000;

/**
 * Reads the overview again and again, until the run is interrupted. A read that fails is reported once and repeated.
 * @throws the errors of the first read; the reason of the interruption
 */
export async function watchOverview(
  services: ComparePorts & RunTime,
  request: OverviewRequest,
  { changed, ...view }: Pick<CompareView, 'reporter' | 'ports'> & { readonly changed: (overview: Overview) => void },
): Promise<never> {
  const { clock, signal } = services;
  changed(await readOverview(services, request, view));
  const silent = { reporter: { report: () => undefined }, ports: { signal, reporterOf: () => ({ report: () => undefined }) } };
  for (;;) {
    await clock.sleep(PAUSE_MS, signal);
    try {
      changed(await readOverview(services, request, silent));
    } catch (error) {
      if (signal.aborted || !isAppError(error)) throw error;
      view.reporter.report({ level: 'warning', code: 'NOT_FOLLOWED', message: `${error.message}: retrying` });
    }
  }
}
