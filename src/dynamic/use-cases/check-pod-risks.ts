import { isAppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { JsonObject } from '../../base/json.ts';
import { type FieldChange, highestImpact, needsDrain } from '../../host/plan/impact.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { mayDrain } from '../../kube/has-permission.ts';
import { configMapData } from '../../kube/object.ts';
import { KUBELET_DIR } from '../../kube/well-known.ts';
import { type Catalogue, NEWEST_MINOR } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/documents/decode.ts';
import { readConfigz } from '../../kubelet/effective/configz.ts';
import { configFieldChanges } from '../../kubelet/effective/field-changes.ts';
import { configzPath } from '../../kubelet/health/observe-change.ts';
import type { ConfigIdentity, ConfigSource } from '../../kubelet/layers/config-source.ts';
import type { PodRisk } from '../../kubelet/workload/pod-risk.ts';
import { findPodRisks } from '../../kubelet/workload/pod-risks.ts';
import { type PodInput, readDnsServices, readPodInput } from '../../kubelet/workload/read-pod-input.ts';
import { OVERLAY_API_VERSION, OVERLAY_KIND } from '../agent/overlay.ts';
import type { PayloadNode } from '../agent/payload-changes.ts';
import { type PreparedPayload, preparePayload } from '../agent/prepare-payload.ts';
import { payloadRefused, podsAtRisk } from '../status/dynamic-problems.ts';
import type { NodeConfig } from '../status/node-config.ts';

/** The nodes and the ConfigMap that they would be assigned. */
export interface CheckedPayload {
  readonly nodes: readonly NodeConfig[];
  readonly source: ConfigSource;
  /** `data` of the ConfigMap. */
  readonly data: Readonly<Record<string, string>>;
  /** Nodes whose change needs it are drained before: the pods that a drain evicts are not at risk. */
  readonly drains: boolean;
}

/** The effects of an assignment. */
export interface CheckedRisks {
  /** Nodes whose kubelet would refuse the payload or fail to start with it. */
  readonly refusals: readonly Problem[];
  readonly losses: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Changed fields of the running configuration, by node; null: that configuration is unknown. */
  readonly fields: ReadonlyMap<string, readonly FieldChange[] | null>;
}

/** Number of nodes that are read at the same time. */
const AT_ONCE = 16;

/**
 * Finds the nodes that could not start with a payload, and the pods that an assignment would end, before it is made. Each node costs at most three requests:
 * its configz, its pods and its Node, and three more for the right to drain it; what cannot be read is unknown and causes no finding. Files and other
 * facts of hosts are checked by the agent on each host.
 * @returns a problem for each node that would refuse the payload, for each node with a loss, and one for each node with a warning; and the changed fields of each node
 */
export async function checkPodRisks(cluster: Cluster, { nodes, source, data, drains }: CheckedPayload): Promise<CheckedRisks> {
  const catalogue = await loadCatalogue();
  let read: Promise<PodInput['dnsServices']> | null = null;
  const services = (): Promise<PodInput['dnsServices']> => (read ??= readDnsServices(cluster));
  const payload = { source, data, drains, catalogue, services };
  const found = await inParallel(nodes, AT_ONCE, async (node) => ({ node, ...(await effectsOn(cluster, node, payload)) }));
  const problems = (severity: PodRisk['severity']): readonly Problem[] =>
    found.flatMap(({ node, risks }) => {
      const own = risks.filter((risk) => risk.severity === severity);
      return own.length === 0 ? [] : [podsAtRisk(node.name, own, severity)];
    });
  const refusals = found.flatMap(({ refusal }) => (refusal?.isCertain === true ? [refusal.problem] : []));
  const doubts = found.flatMap(({ refusal }) => (refusal?.isCertain === false ? [refusal.problem] : []));
  const fields = new Map(found.map((one) => [one.node.name, one.fields]));
  return { refusals, losses: problems('loss'), warnings: [...doubts, ...problems('warning')], fields };
}

interface Payload extends Omit<CheckedPayload, 'nodes'> {
  readonly catalogue: Catalogue;
  readonly services: () => Promise<PodInput['dnsServices']>;
}

/** `--allow` of the agent is its own decision. */
const EVERY_CHANGE = { allow: 'unsafe', isDrained: false } as const;

const FATAL = { impact: 'unsafe', why: 'the kubelet would exit' } as const;

interface Refusal {
  readonly problem: Problem;
  /** False: the fields of the local configuration, which cannot be read through the API server, may permit the payload. */
  readonly isCertain: boolean;
}

async function effectsOn(
  cluster: Cluster,
  node: NodeConfig,
  { source, data, drains, catalogue, services }: Payload,
): Promise<{ readonly refusal: Refusal | null; readonly risks: readonly PodRisk[]; readonly fields: readonly FieldChange[] | null }> {
  const { name, group, backend } = node;
  if (node.minor === null) return { refusal: null, risks: [], fields: null };
  const minor = Math.min(node.minor, NEWEST_MINOR);
  // The proxy to a kubelet that is down would delay the command.
  const running = node.isReady ? await runningConfig(cluster, name, { minor, catalogue }) : null;
  const key = source.kubeletConfigKey;
  const nodeWith = (base: JsonObject | null): PayloadNode => ({
    name,
    group,
    directory: KUBELET_DIR,
    minor,
    catalogue,
    // The local configuration is not readable through the API server; fields without an overlay stay as they run.
    local: { path: 'configz', text: JSON.stringify({ apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND, ...base }) },
    flags: [],
    dropIns: [],
    running,
    cgroupVersion: null,
  });
  const prepare = (content: Payload['data'], { of = source, on = running } = {}): PreparedPayload =>
    preparePayload({ identity: { ...of, uid: '', resourceVersion: '' }, data: content }, nodeWith(on), EVERY_CHANGE);
  // A kubelet up to 1.23 merges no layers.
  const own = backend === 'agent' ? data : { [key]: data[key] ?? '' };
  const prepared = prepare(own);
  const refusal = await refusalOn(node, prepared, {
    running,
    ofRunning: () => prepare({ [key]: EMPTY_OVERLAY }),
    ofLocal: (fields) => prepare(own, { on: without(running, fields) }),
    fieldsOf: (active) => fieldsSetBy(cluster, active, (content) => prepare(content, { of: active })),
  });
  if (prepared.config === null) return { refusal, risks: [], fields: null };
  const change = { before: running, after: prepared.config };
  const fields = running === null ? null : configFieldChanges(running, prepared.config, { catalogue, minor });
  // An agent checks the pods of its node again; a kubelet up to 1.23 does not.
  const isToDrain = drains && backend === 'agent' && needsDrain(highestImpact((fields ?? []).map(({ impact }) => impact)));
  const isDrained = async (): Promise<boolean> => isToDrain && (await unlessFailed(mayDrain(cluster, name))) === true;
  const risks = findPodRisks({
    ...change,
    ...(await readPodInput(cluster, name, change, { services, isDrained })),
    nodeName: name,
    minor,
    catalogue,
    host: null,
  });
  if (fields !== null) {
    const fatal = new Set(risks.filter(({ stopsKubelet }) => stopsKubelet === true).map(({ path }) => fieldOf(path)));
    // The class of a field does not know the capacity of the node.
    return { refusal, risks, fields: fields.map((field) => (fatal.has(fieldOf(field.field)) ? { ...field, ...FATAL } : field)) };
  }
  // Without the running configuration, a default value may be no change.
  const set = new Set(prepared.candidate.changes.map((text) => fieldOf(text)));
  return { refusal, risks: risks.filter(({ path }) => set.has(fieldOf(path))), fields: null };
}

const EMPTY_OVERLAY = JSON.stringify({ apiVersion: OVERLAY_API_VERSION, kind: OVERLAY_KIND });

/**
 * The refusal of a payload, by the rules with which the agent or the kubelet validates it. An overlay is validated on
 * the running configuration; without it, or if that configuration fails by the same rule, nothing is concluded.
 */
async function refusalOn(
  node: NodeConfig,
  { refusal, sets }: PreparedPayload,
  facts: {
    readonly running: JsonObject | null;
    /** The running configuration as a payload. */
    readonly ofRunning: () => PreparedPayload;
    /** The payload on the running configuration without fields. */
    readonly ofLocal: (fields: ReadonlySet<string>) => PreparedPayload;
    /** The fields that the active ConfigMap sets; null: all, or not known. */
    readonly fieldsOf: (active: ConfigIdentity) => Promise<ReadonlySet<string> | null>;
  },
): Promise<Refusal | null> {
  if (refusal === null) return null;
  const isComplete = sets === null;
  const { code, cause } = refusal;
  if (code === 'VALIDATION_FAILED' && !isComplete && (facts.running === null || facts.ofRunning().refusal?.cause === cause)) return null;
  const active = node.status?.active ?? null;
  if (code === 'LOAD_FAILED' || isComplete || active === null)
    return { problem: payloadRefused(node.name, refusal, true), isCertain: true };
  // An assigned overlay replaces another one, whose fields return to the unknown values of the local configuration.
  const replaced = await facts.fieldsOf(active);
  const isCertain =
    replaced !== null && ![...replaced].some((field) => cause.includes(field)) && facts.ofLocal(replaced).refusal?.cause === cause;
  return { problem: payloadRefused(node.name, refusal, isCertain), isCertain };
}

/** Null: the ConfigMap is complete, cannot be read, or was changed. */
async function fieldsSetBy(
  cluster: Cluster,
  { namespace, name, uid, resourceVersion }: ConfigIdentity,
  prepare: (data: CheckedPayload['data']) => PreparedPayload,
): Promise<ReadonlySet<string> | null> {
  const object = await unlessFailed(cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name }));
  if (object === null || object.metadata.uid !== uid) return null;
  if (object.immutable !== true && object.metadata.resourceVersion !== resourceVersion) return null;
  const { sets } = prepare(configMapData(object));
  return sets === null ? null : new Set(sets.map(fieldOf));
}

function without(config: JsonObject | null, fields: ReadonlySet<string>): JsonObject | null {
  return config === null ? null : Object.fromEntries(Object.entries(config).filter(([name]) => !fields.has(name)));
}

async function unlessFailed<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

/** The field at the beginning of a path or of a change. */
function fieldOf(text: string): string {
  return /^\w*/.exec(text)?.[0] ?? '';
}

/** Null: unknown. */
async function runningConfig(
  cluster: Cluster,
  node: string,
  options: { readonly minor: number; readonly catalogue: Catalogue },
): Promise<JsonObject | null> {
  return unlessFailed(cluster.getRaw(configzPath(node)).then((answer) => readConfigz(answer, node, options)));
}
