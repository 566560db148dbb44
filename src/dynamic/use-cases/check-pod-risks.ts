import { isAppError, type Problem } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { JsonObject } from '../../base/json.ts';
import type { FieldChange } from '../../host/plan/impact.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { KUBELET_DIR } from '../../kube/well-known.ts';
import { type Catalogue, NEWEST_MINOR } from '../../kubelet/catalogue.ts';
import type { ConfigSource } from '../../kubelet/config-source.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/decode.ts';
import { readConfigz } from '../../kubelet/effective/configz.ts';
import { configFieldChanges } from '../../kubelet/effective/field-changes.ts';
import { configzPath } from '../../kubelet/kubelet-path.ts';
import { loadCatalogue } from '../../kubelet/load-catalogue.ts';
import type { PodRisk } from '../../kubelet/workload/pod-risk.ts';
import { findPodRisks } from '../../kubelet/workload/pod-risks.ts';
import { type PodInput, readDnsServices, readPodInput } from '../../kubelet/workload/read-pod-input.ts';
import { OVERLAY_API_VERSION, OVERLAY_KIND } from '../agent/overlay.ts';
import type { PayloadNode } from '../agent/payload-changes.ts';
import { type PreparedPayload, preparePayload } from '../agent/prepare-payload.ts';
import { payloadRefused, podsAtRisk } from '../dynamic-problems.ts';
import type { NodeConfig } from '../node-config.ts';

/** The nodes and the ConfigMap that they would be assigned. */
export interface CheckedPayload {
  readonly nodes: readonly NodeConfig[];
  readonly source: ConfigSource;
  /** `data` of the ConfigMap. */
  readonly data: Readonly<Record<string, string>>;
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
 * its configz, its pods and its Node; what cannot be read is unknown and causes no finding. Files and other
 * facts of hosts are checked by the agent on each host.
 * @returns a problem for each node that would refuse the payload, for each node with a loss, and one for each node with a warning; and the changed fields of each node
 */
export async function checkPodRisks(cluster: Cluster, { nodes, source, data }: CheckedPayload): Promise<CheckedRisks> {
  const catalogue = await loadCatalogue();
  let read: Promise<PodInput['dnsServices']> | null = null;
  const services = (): Promise<PodInput['dnsServices']> => {
    read ??= readDnsServices(cluster);
    return read;
  };
  const payload = { source, data, catalogue, services };
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

const FATAL = { impact: 'unsafe', why: 'the kubelet would exit' } as const;

interface NodeEffects {
  readonly refusal: Refusal | null;
  readonly risks: readonly PodRisk[];
  readonly fields: readonly FieldChange[] | null;
}

interface Refusal {
  readonly problem: Problem;
  /** False: the fields of the local configuration, which cannot be read through the API server, may permit the payload. */
  readonly isCertain: boolean;
}

async function effectsOn(cluster: Cluster, node: NodeConfig, { source, data, catalogue, services }: Payload): Promise<NodeEffects> {
  const { name, group, backend } = node;
  if (node.minor === null) return { refusal: null, risks: [], fields: null };
  const minor = Math.min(node.minor, NEWEST_MINOR);
  // The proxy to a kubelet that is down would delay the command.
  const running = node.isReady ? await runningConfig(cluster, name, { minor, catalogue }) : null;
  const key = source.kubeletConfigKey;
  const payloadNode: PayloadNode = {
    name,
    group,
    directory: KUBELET_DIR,
    minor,
    catalogue,
    // The local configuration is not readable through the API server; fields without an overlay stay as they run.
    local: { path: 'configz', text: JSON.stringify({ apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND, ...running }) },
    flags: [],
    dropIns: [],
    running,
    cgroupVersion: null,
  };
  const prepare = (content: Payload['data']): PreparedPayload =>
    preparePayload({ identity: { ...source, uid: '', resourceVersion: '' }, data: content }, payloadNode, {
      allow: 'unsafe',
      isCordoned: false,
    });
  // A kubelet up to 1.23 merges no layers.
  const prepared = prepare(backend === 'agent' ? data : { [key]: data[key] ?? '' });
  const refusal = refusalOn(node, prepared, { running, ofRunning: () => prepare({ [key]: EMPTY_OVERLAY }) });
  if (prepared.config === null) return { refusal, risks: [], fields: null };
  const change = { before: running, after: prepared.config };
  const risks = findPodRisks({
    ...change,
    ...(await readPodInput(cluster, name, change, services)),
    nodeName: name,
    minor,
    catalogue,
    host: null,
  });
  if (running !== null) {
    const fatal = new Set(risks.filter(({ stopsKubelet }) => stopsKubelet === true).map(({ path }) => fieldOf(path)));
    const fields = configFieldChanges(running, prepared.config, { catalogue, minor });
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
function refusalOn(
  node: NodeConfig,
  { refusal, sets }: PreparedPayload,
  { running, ofRunning }: { readonly running: JsonObject | null; readonly ofRunning: () => PreparedPayload },
): Refusal | null {
  if (refusal === null) return null;
  const isComplete = sets === null;
  if (refusal.code === 'VALIDATION_FAILED' && !isComplete && (running === null || ofRunning().refusal?.cause === refusal.cause))
    return null;
  // An assigned overlay replaces another one: its fields return to those of the local configuration.
  const isCertain = refusal.code === 'LOAD_FAILED' || isComplete || node.status?.active == null;
  return { problem: payloadRefused(node.name, refusal, isCertain), isCertain };
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
  try {
    return readConfigz(await cluster.getRaw(configzPath(node)), node, options);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}
