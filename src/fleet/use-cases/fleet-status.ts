import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { JsonObject } from '../../base/json.ts';
import { type AssessedNode, assessNodes } from '../../dynamic/workflows/read-nodes.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { type CommitRecord, commitRecord, revertsAt } from '../../host/commit/record.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { parseEqualTextsOnce } from '../../host/facts/parse-text.ts';
import { changesOf } from '../../host/plan/fold.ts';
import { runHost } from '../../host/run-host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type CertificateVerdict, validateCertificates, validateControlPlane } from '../../kubeadm/pki/validate-certificates.ts';
import { inspectCertificates } from '../../kubeadm/workflows/certificates/inspect-certificates.ts';
import { NODE_SOURCE_FACTS, observeNodeSource } from '../../kubeadm/workflows/node/observe-node-source.ts';
import type { Catalogue } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { decodeDeclaredFields } from '../../kubelet/documents/decode.ts';
import { healthzUrl, observeHealthzUrl } from '../../kubelet/effective/healthz-url.ts';
import { type HostSource, type NodeSource, resolveNodeSource } from '../../kubelet/effective/node-source.ts';
import { observeCertificates } from '../../kubelet/effective/observe-certificates.ts';
import { nodeCertificates } from '../../kubelet/facts/node-certificates.ts';
import { healthText, kubeletHealthNow } from '../../kubelet/health/observe.ts';
import type { Rollout } from '../../rollouts/api/rollout.ts';
import { knownRollouts } from '../../rollouts/use-cases/find-rollouts.ts';
import { type Drift, type DriftEvidence, driftOf, overridesOf, pendingOf } from '../drift/drift.ts';
import { type KubeletStatus, observeKubeletStatus, statusFacts, statusOf } from '../drift/host-status.ts';
import { declaredConfiguration } from '../file/inventory-document.ts';
import type { ResolvedHost } from '../file/model.ts';
import { hostHistory } from '../history/host-history.ts';
import type { HostTarget } from '../host-target.ts';
import { shownChanges } from '../plan/operations.ts';
import { onHost } from '../ports.ts';
import type { FleetPorts, HostOutcome } from '../run/fleet.ts';
import { fleetFailure } from '../run/fleet-failure.ts';
import { type ComparePorts, type CompareView, compareHosts } from './compare-hosts.ts';
import type { FleetMembersInput } from './fleet-members.ts';
import type { FleetRunRequest } from './fleet-request.ts';

const FACTS = combineFacts({ status: statusFacts, commit: commitRecord });

type Inspected = ReturnType<typeof statusOf> &
  KubeletStatus & { readonly health: string; readonly commit: CommitRecord | null; readonly source: HostSource };

export interface HostStatusRow {
  readonly host: string;
  /** From the fleet file, like the groups. */
  readonly address: string;
  readonly groups: readonly string[];
  readonly reachable: boolean;
  /** Null here and below: unknown. */
  readonly kubelet: string | null;
  readonly config: string | null;
  /** Where the kubelet has its configuration from; null also if no kubelet runs. */
  readonly source: NodeSource | null;
  readonly health: string | null;
  /** The Ready condition of the Node; `none`: the Node does not exist. */
  readonly node: string | null;
  /** The name of the Node that the kubelet has registered. */
  readonly nodeName: string | null;
  readonly drift: string | null;
  /**
   * A change of the kubelet that the host rolls back at this time unless it is confirmed; null: none, or
   * unknown.
   */
  readonly unconfirmed: { readonly owner: string; readonly revertsAt: string } | null;
}

export type HostCertificate = { readonly host: string } & Pick<CertificateVerdict, 'role' | 'path' | 'notAfter' | 'state' | 'notes'>;

export interface FleetStatus {
  readonly rows: readonly HostStatusRow[];
  /** Empty unless requested. */
  readonly certificates: readonly HostCertificate[];
  /** The drift of each host, the Nodes with their dynamic configuration, and the rollouts; undefined unless requested. */
  readonly details?:
    | {
        readonly drifts: ReadonlyMap<string, readonly Drift[]>;
        readonly nodes: readonly AssessedNode[] | null;
        readonly rollouts: readonly Rollout[];
      }
    | undefined;
  /** The problems of hosts that were not inspected; null: all hosts were. */
  readonly failure: AppError | null;
}

/**
 * The status of the selected hosts: reachability, kubelet, Node and drift from the fleet file.
 * @param view.ports observers of the hosts
 * @param view.readsDetails also compare the fields with the last apply, and read the dynamic configuration of all Nodes
 * @param view.readsCertificates also read the certificates: in the same round trip, and in one more on control planes
 * @throws AppError with exit code 2 for an invalid file or selection; errors of opening the cluster
 */
export async function fleetStatus(
  services: ComparePorts,
  request: FleetRunRequest,
  {
    readsCertificates = false,
    readsDetails = false,
    ...view
  }: Pick<CompareView, 'reporter' | 'ports'> & { readonly readsCertificates?: boolean; readonly readsDetails?: boolean },
): Promise<FleetStatus> {
  const { clock, signal } = services;
  const catalogue = await loadCatalogue();
  const inspected = new Map<string, Inspected>();
  const certificates: HostCertificate[] = [];
  const histories = new Map<string, DriftEvidence['history']>();
  const parseText = parseEqualTextsOnce();
  const shown = { ...FACTS.queries, ...NODE_SOURCE_FACTS.queries, ...(readsCertificates ? nodeCertificates.queries : {}) };
  // In the same round trip as the plan.
  const inspect: FleetMembersInput['inspect'] = async (connection, member, queries) => {
    const host = runHost(connection, { clock, parseText }, { ...queries, ...shown });
    inspected.set(member.name, await inspectHost(host, catalogue, signal));
    if (readsDetails) histories.set(member.name, await observe(host, hostHistory, signal));
    if (readsCertificates) certificates.push(...(await readCertificates(services, host, member)));
    return host;
  };
  return compareHosts(services, request, { ...view, ports: quiet(view.ports) }, inspect, async ({ hosts, access: { cluster }, plan }) => {
    const [{ outcomes }, nodes] = await Promise.all([plan(), nodesOf(cluster)]);
    const unreached = outcomes.map((outcome) =>
      inspected.has(outcome.host) ? { ...outcome, error: null, status: 'unchanged' as const } : outcome,
    );
    const declared = new Map(hosts.map((host) => [host.name, host]));
    const driftsOfHost = (outcome: HostOutcome): readonly Drift[] => {
      const [kubelet, host] = [inspected.get(outcome.host), declared.get(outcome.host)];
      const minor = kubelet?.minor ?? null;
      const decode = minor === null ? undefined : (fields: JsonObject) => decodeDeclaredFields(fields, { catalogue, minor });
      const fields = host === undefined ? undefined : declaredConfiguration(host);
      return driftOf(outcome, { kubelet, evidence: { history: histories.get(outcome.host), decode, declared: fields } });
    };
    const details = {
      drifts: new Map(outcomes.map((outcome) => [outcome.host, driftsOfHost(outcome)])),
      nodes: readsDetails && nodes !== null ? await assessNodes(cluster, [], { now: clock.now() }) : null,
      rollouts: readsDetails && nodes !== null ? await knownRollouts(cluster) : [],
    };
    return {
      rows: outcomes.map((outcome) => {
        const { ssh, groups = [] } = declared.get(outcome.host) ?? {};
        const found = inspected.get(outcome.host) ?? null;
        const host = { host: outcome.host, address: ssh?.address ?? outcome.host, groups };
        return rowOf(host, found, { nodes, drift: found === null ? null : driftsOf(outcome, found) });
      }),
      certificates,
      details: readsDetails ? details : undefined,
      failure: fleetFailure({ outcomes: unreached, stopped: null }, { signal, only: 'reads' }),
    };
  });
}

/** The Nodes of a cluster, as objects and with their dynamic configuration, and its rollouts. */
interface ClusterNodes {
  readonly byName: ReadonlyMap<string, KubeObject>;
  readonly assessed: readonly AssessedNode[];
  readonly rollouts: readonly Rollout[];
}

/** @returns null when the credentials may not list Nodes */
export async function readClusterNodes(cluster: Cluster, now: Date): Promise<ClusterNodes | null> {
  const byName = await nodesOf(cluster);
  return byName === null ? null : { byName, assessed: await assessNodes(cluster, [], { now }), rollouts: await knownRollouts(cluster) };
}

/** A host that is inspected without a fleet file, or without the cluster of its fleet file. */
export interface InspectedTarget extends Pick<HostStatusRow, 'host' | 'groups'> {
  readonly target: HostTarget;
}

/**
 * The status of hosts as far as SSH shows it: reachability, kubelet, health, certificates and unconfirmed changes.
 * @param nodes the Nodes of the cluster; null: unknown
 */
export async function inspectHosts(
  services: ComparePorts,
  hosts: readonly InspectedTarget[],
  { nodes, parallel }: { readonly nodes: ClusterNodes | null; readonly parallel: number },
): Promise<FleetStatus> {
  const { clock, signal } = services;
  const catalogue = await loadCatalogue();
  const certificates: HostCertificate[] = [];
  const problems: Problem[] = [];
  const queries = { ...FACTS.queries, ...NODE_SOURCE_FACTS.queries, ...nodeCertificates.queries };
  const rows = await inParallel(hosts, parallel, async ({ target, ...named }) => {
    const { host: name } = named;
    const address = target.member?.ssh.address ?? target.address ?? name;
    const read = onHost(services, target, async (connection) => {
      const host = runHost(connection, { clock, parseText: parseEqualTextsOnce() }, queries);
      const inspected = await inspectHost(host, catalogue, signal);
      certificates.push(...(await readCertificates(services, host, { name, role: 'control-plane' })));
      return inspected;
    });
    const inspected = await read.catch((error: unknown) => {
      if (!isAppError(error) || signal.aborted) throw error;
      problems.push(...error.problems.map((problem) => ({ ...problem, host: name })));
      return null;
    });
    return rowOf({ ...named, address }, inspected, { nodes: nodes?.byName ?? null, drift: null });
  });
  const details = { drifts: new Map(), nodes: nodes?.assessed ?? null, rollouts: nodes?.rollouts ?? [] };
  return { rows, certificates, details, failure: problems.length === 0 ? null : new AppError(problems) };
}

/** The facts of a host that a status shows in addition to its plan. */
async function inspectHost(host: Host, catalogue: Catalogue, signal: AbortSignal | undefined): Promise<Inspected> {
  const { status, commit } = await observe(host, FACTS, signal);
  const { host: source } = await observeNodeSource(host, signal);
  const kubelet = await observeKubeletStatus(host, catalogue, signal);
  // Without a configuration file the kubelet has the default port.
  const url = (await observeHealthzUrl({ host, signal })) ?? (kubelet.configHash === null ? healthzUrl({}) : null);
  const health = await observe(host, kubeletHealthNow(url), signal);
  return { ...statusOf(status), ...kubelet, commit, source, health: healthText(health) };
}

/** The certificates of a host, validated as by `certs check`; their keys stay here. */
async function readCertificates(
  { clock, signal }: Pick<ComparePorts, 'clock' | 'signal'>,
  host: Host,
  { name, role }: Pick<ResolvedHost, 'name' | 'role'>,
): Promise<readonly HostCertificate[]> {
  const found = await observeCertificates(host, signal);
  const options = { withinMs: 0, now: found.now ?? clock.now() };
  const settings = { cluster: null, certificatesDir: null };
  const controlPlane = role === 'control-plane' ? await inspectCertificates({ host, cluster: null, signal }, settings) : null;
  const verdicts = [...validateCertificates(found, options), ...(controlPlane === null ? [] : validateControlPlane(controlPlane, options))];
  return verdicts.map((one) => ({
    host: name,
    role: one.role,
    path: one.path,
    notAfter: one.notAfter,
    state: one.state,
    notes: one.notes,
  }));
}

/** Drops warnings of the plan: they concern only the plan command. */
function quiet(ports: FleetPorts): FleetPorts {
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

/**
 * @param inspected null: the host was not inspected
 * @param nodes null: unknown
 * @param drift null: unknown, the host was compared with no fleet file
 */
function rowOf(
  host: Pick<HostStatusRow, 'host' | 'address' | 'groups'>,
  inspected: Inspected | null,
  { nodes, drift }: { readonly nodes: ReadonlyMap<string, KubeObject> | null; readonly drift: readonly string[] | null },
): HostStatusRow {
  const node = inspected?.nodeName === null || inspected === null ? undefined : nodes?.get(inspected.nodeName);
  return {
    ...host,
    reachable: inspected !== null,
    kubelet: inspected?.kubeletVersion ?? null,
    config: inspected?.configHash ?? null,
    source: inspected === null ? null : resolveNodeSource(inspected.source, node ?? null),
    health: inspected?.health ?? null,
    node: inspected === null || nodes === null ? null : node === undefined ? 'none' : isNodeReady(node) ? 'Ready' : 'NotReady',
    nodeName: inspected?.nodeName ?? null,
    drift: inspected === null || drift === null ? null : drift.join(', ') || 'none',
    unconfirmed: inspected?.commit?.state === 'armed' ? { owner: inspected.commit.owner, revertsAt: revertTime(inspected.commit) } : null,
  };
}

function revertTime(commit: CommitRecord): string {
  return `${new Date(revertsAt(commit) * 1000).toISOString().slice(0, 19)}Z`;
}

/** How a host differs from the fleet file, and its kubelet from the files on the host, as clauses for one table cell. */
function driftsOf(outcome: HostOutcome, { commit, nodeName, pending, failures }: Inspected): readonly string[] {
  const found = pendingOf(outcome, nodeName === null ? { pending: [], failures: [] } : { pending, failures });
  const overrides = overridesOf(outcome).length;
  return [
    ...(commit?.state === 'armed' ? [`unconfirmed change, rolls back at ${revertTime(commit)}`] : []),
    ...(commit?.state === 'reverting' ? ['is being rolled back'] : []),
    ...plannedDrift(outcome, nodeName),
    ...(found.pending.length > 0 ? ['pending restart'] : []),
    ...(found.failures.length > 0 ? ['a restart would fail'] : []),
    ...(overrides > 0 ? [`${overrides} ${overrides === 1 ? 'field' : 'fields'} overridden`] : []),
  ];
}

function plannedDrift({ plan, error, status }: HostOutcome, nodeName: string | null): readonly string[] {
  if (nodeName === null) return ['not joined'];
  if (status !== 'pending' || plan === null) return error === null ? [] : [`unknown: ${error.code}`];
  if (plan.host.phases.some(({ phase }) => phase === 'join')) return ['not joined as control plane'];
  const changes = changesOf(plan.host).changes.filter(({ kind }) => kind !== 'confirm-commit');
  const count = shownChanges(changes, 0).length;
  return count === 0 ? [] : [`${count} ${count === 1 ? 'change' : 'changes'}`];
}
