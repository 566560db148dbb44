import { firstMessage, isAppError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { ReportEvent } from '../../base/reporter.ts';
import { API_PAUSE, waitUntil } from '../../base/wait-until.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isNodeReady, nodeIssues, readyHeartbeat } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { DEFAULT_MINOR, type KubeletReader, type Minor, nearestKnownMinor } from '../catalogue/catalogue.ts';
import { fieldsNotInForce } from '../diff/diff-configs.ts';
import { textAt } from '../documents/values.ts';
import { readConfigz } from '../effective/configz.ts';
import { sourceInForce } from '../effective/node-source.ts';
import { type ConfigSource, describeSource } from '../layers/config-source.ts';
import type { Observation } from './assess.ts';

/**
 * Sends a request to the kubelet of a Node through the API server, as `kubectl logs`, `kubectl exec` and metrics-server do.
 * Only unexpected errors are thrown.
 * @returns the response of `/configz`; null: none, or the kubelet has no such path (`enableDebuggingHandlers: false`).
 *   `issue`: why the kubelet cannot be reached, or access to it is denied, as a clause; null: it answered
 */
export async function reachKubelet(
  cluster: Cluster,
  nodeName: string,
): Promise<{ readonly configz: JsonObject | null; readonly issue: string | null }> {
  try {
    return { configz: await cluster.getRaw(configzPath(nodeName)), issue: null };
  } catch (error) {
    if (!isAppError(error)) throw error;
    if (error.code === 'CLUSTER_NOT_FOUND') return { configz: null, issue: null };
    const message = firstMessage(error);
    return { configz: null, issue: NO_CERTIFICATE.test(message) ? `${message}. ${APPROVE}` : message };
  }
}

/** Path of the configz of a Node at the API server. */
export function configzPath(nodeName: string): string {
  return `/api/v1/nodes/${encodeURIComponent(nodeName)}/proxy/configz`;
}

/** A kubelet without a serving certificate ends the handshake with this alert (pkg/kubelet/certificate/kubelet.go, 1.36). */
const NO_CERTIFICATE = /tls: internal error/;
const APPROVE = 'The kubelet has no serving certificate (serverTLSBootstrap): approve its CSR with kubeletadm csr approve';

/** The message for a kubelet that was unreachable before a change, shown with `-v 1`. */
export function pathNotChecked(host: string, issue: string): ReportEvent {
  const message = `the connection from the API server to the kubelet is not checked: ${issue}`;
  return { level: 'info', code: 'KUBELET_PATH_NOT_CHECKED', host, message, verbosity: 1 };
}

/** The Node of a changed kubelet. */
export interface NodeToVerify {
  readonly nodeName: string;
  /** Image of the probe pod on a node without a pause image. Absent: such a node starts no probe pod. */
  readonly probeImage?: string;
  /** The operator permits the change to end pods (`--allow-pod-loss`). */
  readonly mayLosePods?: boolean;
}

/** Evidence for a changed kubelet configuration, in addition to the kubelet's health. */
export interface KubeletVerification extends KubeletReader, NodeToVerify {}

/** A change of the kubelet of a Node that was visible before. */
export interface NodeChange {
  readonly cluster: Cluster;
  /** Before the change. */
  readonly node: KubeObject;
  readonly verification: NodeToVerify;
  readonly phase: string;
  readonly restarts: boolean;
  /** Start of the restarted kubelet, in Unix seconds of the host's clock; null: unknown. */
  readonly startedAt: number | null;
  /** Null: the configuration does not change. */
  readonly config: { readonly reader: KubeletVerification; readonly after: string; readonly fields: readonly string[] } | null;
  /** The Node must be Ready, not only report to the API server. */
  readonly isReadyNeeded: boolean;
  /** The API server reached the kubelet before the change. */
  readonly isReached: boolean;
}

const POLL_MS = 2_000;

/** The Node before a change, or the reason why it is not visible. */
export async function findNode(
  context: PhaseContext,
  nodeName: string,
): Promise<{ readonly cluster: Cluster; readonly node: KubeObject } | { readonly why: string }> {
  const { cluster } = context;
  if (cluster === null) return { why: 'this command has no connection to an API server' };
  const node = await readNode(cluster, nodeName, context);
  return node === null ? { why: `Node ${nodeName} cannot be read` } : { cluster, node };
}

/** Null if the Node cannot be read: it does not exist, access is denied, or the API server does not respond within two seconds. */
export async function readNode(cluster: Cluster, nodeName: string, { clock, signal }: PhaseContext): Promise<KubeObject | null> {
  return waitUntil(
    { clock, signal },
    {
      probe: async () => {
        try {
          return { done: await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName }) };
        } catch (error) {
          if (!isAppError(error)) throw error;
          return error.code === 'CLUSTER_UNREACHABLE' ? { pending: null } : { done: null };
        }
      },
      timeoutMs: POLL_MS,
      pauseMs: API_PAUSE,
      timedOut: () => null,
    },
  );
}

/** The Node, its kubelet as the API server reaches it, and configz; `pending`: reason to wait that is no signal. */
export async function observeChange(change: NodeChange): Promise<
  Partial<Pick<Observation, 'ready' | 'pressures' | 'differing' | 'unreached'>> & {
    readonly pending: string | null;
    readonly unproven?: string;
  }
> {
  const { cluster, verification, config, isReadyNeeded, isReached } = change;
  const { nodeName } = verification;
  let override: ConfigSource | null;
  let pressures: readonly string[] = [];
  try {
    const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
    if (node === null) return { pending: `Node ${nodeName} no longer exists` };
    if (isReadyNeeded && !isNodeReady(node)) return { ready: { is: false, why: nodeIssues(node).join('; ') }, pending: null };
    if (!hasReported(node, change))
      return { pending: `Node ${nodeName}: the kubelet has not reported ${isReadyNeeded ? 'Ready' : 'its state'} since its restart` };
    // The evictions of a node under pressure are permitted with --allow-pod-loss.
    if (isReadyNeeded && verification.mayLosePods !== true) pressures = pressuresOf(node);
    override = sourceInForce(node);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { pending: firstMessage(error) };
  }
  const isCompared = config !== null && config.fields.length > 0;
  const reached = isReached || isCompared ? await reachKubelet(cluster, nodeName) : null;
  if (isReached && reached !== null && reached.issue !== null) return { pressures, unreached: reached.issue, pending: null };
  if (!isCompared) return { pressures, pending: null };
  const { reader, after, fields } = config;
  const shown = reached === null ? null : readShown(reached, reader);
  const missing = shown === null ? [] : fieldsNotInForce(shown, after, fields, reader);
  if (override !== null && (shown === null || missing.length > 0)) {
    const unknown = `configz cannot be read, so it is unknown whether the kubelet uses ${newValues(fields)}`;
    const what = shown === null ? unknown : `the kubelet does not use ${newValues(missing)}`;
    return { pressures, pending: null, unproven: overridden(nodeName, override, what) };
  }
  return { pressures, differing: missing, pending: null };
}

/** Whether the kubelet has reported since its restart. The host's clock sets the times of heartbeats. */
function hasReported(node: KubeObject, { node: before, restarts, startedAt }: NodeChange): boolean {
  const [heartbeat, now] = [readyHeartbeat(before), readyHeartbeat(node)];
  if (!restarts || heartbeat === null) return true;
  return now !== null && now !== heartbeat && (startedAt === null || Date.parse(now) / 1000 >= startedAt);
}

/** An active ConfigMap of the kubelet or its agent replaces the file, so that a change of the file has no effect. */
function overridden(nodeName: string, override: ConfigSource, what: string): string {
  return `ConfigMap ${describeSource(override)} overrides config.yaml on Node ${nodeName}: ${what}. Change the ConfigMap, or run kubeletadm dynamic reset ${nodeName}`;
}

function newValues(fields: readonly string[]): string {
  return `the new ${fields.length === 1 ? 'value' : 'values'} of ${fields.join(', ')}`;
}

/** Whether the API server shows the configz of the kubelet, so that a verification has compared it. */
export async function isConfigzReadable({ cluster }: PhaseContext, verification: KubeletVerification): Promise<boolean> {
  return cluster !== null && readShown(await reachKubelet(cluster, verification.nodeName), verification) !== null;
}

/** Null if configz cannot be read through the API server: access is denied, or the kubelet is unreachable. */
function readShown({ configz }: { readonly configz: JsonObject | null }, { nodeName, ...reader }: KubeletVerification): JsonObject | null {
  try {
    return configz === null ? null : readConfigz(configz, nodeName, reader);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

/**
 * Reads the state of a Node as far as it concerns the running kubelet, ignoring reports of a previous kubelet process.
 * @param node null: the API server is unreachable
 * @param startedAt start time of the kubelet, in milliseconds since 1970
 */
export function readNodeReport(node: KubeObject | null, startedAt: number): Pick<Observation, 'ready' | 'pressures'> {
  if (node === null) return { ready: null, pressures: [] };
  const issues = nodeIssues(node);
  const heartbeat = Date.parse(readyHeartbeat(node) ?? '');
  // Heartbeats are rounded to seconds.
  const isFresh = Number.isNaN(heartbeat) ? false : heartbeat >= Math.floor(startedAt / 1000) * 1000;
  const pressures = pressuresOf(node);
  if (isNodeReady(node)) return { ready: isFresh ? { is: true, why: '' } : null, pressures };
  const why = issues.find((text) => text.startsWith('Ready ')) ?? 'no reason reported';
  // The node controller sets Unknown when the kubelet reports nothing.
  return { ready: isFresh || why.startsWith('Ready is Unknown') ? { is: false, why } : null, pressures };
}

/** The minor of the catalogue nearest to the kubelet of a Node; the default if the Node has none. */
export function minorOfNode(node: KubeObject | null): Minor {
  const version = node === null ? '' : textAt(node, 'status.nodeInfo.kubeletVersion');
  return nearestKnownMinor(Number(/^v1\.(\d+)/.exec(version)?.[1] ?? DEFAULT_MINOR));
}

/** The pressure conditions of a Node that are True. */
export function pressuresOf(node: KubeObject): readonly string[] {
  return nodeIssues(node).flatMap((text) => /^(\w+Pressure) is True/.exec(text)?.[1] ?? []);
}
