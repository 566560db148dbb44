import { AppError, isAppError } from '../../base/errors.ts';
import { API_PAUSE, type Probed } from '../../base/wait-until.ts';
import { observe } from '../../host/access/observe.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import { unitState } from '../../host/facts/unit.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { type Cluster, firstThenPollClient } from '../../kube/cluster.ts';
import { isTemporaryError } from '../../kube/cluster-problems.ts';
import { isNodeReady, nodeIssues, readyHeartbeat } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { kubeletMessage } from '../../kubelet/facts/kubelet-issue.ts';
import { checkCrashes, waitOnKubelet } from '../../kubelet/health/crash-watch.ts';
import { probeNewNode } from '../../kubelet/health/verify-pods.ts';

export interface WaitNodeInput {
  readonly nodeName: string;
  /** Timeout for the Node to be registered. */
  readonly timeoutMs: number;
  /** Timeout for the Node to become Ready; null: do not wait for it. */
  readonly readyMs: number | null;
  /** Image of the probe pod that shows whether a Ready node starts pods, if the node has no pause image. */
  readonly probeImage?: string | undefined;
  /** The administrator's cluster, if configured. */
  readonly admin: Cluster | null;
}

const NAME = 'kubelet-wait-bootstrap/node';
/** A kubelet usually registers its Node within 200 ms after it is healthy. */
const REGISTRATION_PAUSE: typeof API_PAUSE = (waitedMs, tries) => (waitedMs < 300 ? 50 : API_PAUSE(waitedMs, tries));

/** The observed Node; `unseen`: the credentials are not allowed to read it. */
type Observed = { readonly init: 'systemd' | 'openrc' | null; readonly node: KubeObject | null | 'unseen' };

/**
 * Waits until the kubelet has registered its Node and, with `readyMs`, until the Node is Ready. kubeadm waits
 * for neither. With `readyMs`, the node must also start a probe pod.
 */
export const waitNode = definePhase<WaitNodeInput, Observed>({
  name: NAME,
  short: 'Wait until the Node is registered; with --wait-ready, until it is Ready and starts a probe pod',
  cluster: ({ admin }) => admin,
  ready: (context, input) => waitForNode(context, input),
  observe: inspect,
  plan: ({ init, node }, { nodeName, readyMs }) => {
    if (init !== 'systemd') return { changes: [], deferred: 'the kubelet registers its Node when the host boots with these files' };
    if (node === 'unseen')
      return { changes: [], noop: `not waiting for Node ${nodeName}: the credentials are not allowed to read the Node` };
    if (node === null) return { changes: [], deferred: `waits until the kubelet has registered Node ${nodeName}` };
    if (isNodeReady(node)) return { changes: [], noop: `Node ${nodeName} is Ready` };
    if (readyMs !== null) return { changes: [], deferred: `waits until Node ${nodeName} is Ready` };
    return { changes: [], noop: `Node ${nodeName} is registered but not Ready: ${nodeIssues(node).join('; ')}` };
  },
});

async function inspect(context: PhaseContext, input: WaitNodeInput): Promise<Observed> {
  const init = await observe(context.host, initSystem, context.signal);
  return { init, node: await findNode(context.cluster, input) };
}

async function findNode(cluster: Cluster | null, { nodeName, admin }: WaitNodeInput): Promise<Observed['node']> {
  try {
    return (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) ?? null;
  } catch (error) {
    // A bootstrap token may expire during the wait.
    const expired = admin === null && isAppError(error, 'CLUSTER_UNAUTHORIZED');
    if (expired || isAppError(error, 'CLUSTER_FORBIDDEN')) return 'unseen';
    throw error;
  }
}

/** An API server may recover before the timeout: until then, its error is the pending problem. */
async function probeNode(cluster: Cluster | null, input: WaitNodeInput): Promise<Probed<KubeObject | 'unseen', AppError | null>> {
  try {
    const node = await findNode(cluster, input);
    return node === null ? { pending: null } : { done: node };
  } catch (error) {
    if (isTemporaryError(error)) return { pending: error };
    throw error;
  }
}

/**
 * Waits until a Node is registered and, with `readyMs`, Ready; returns immediately where systemd does not
 * run, or without permission to read the Node. With `readyMs` also waits until the node starts a probe pod.
 * @param phase shown in messages
 * @throws AppError NODE_NOT_REGISTERED, NODE_NOT_READY, with the kubelet's error; PROBE_POD_FAILED; errors of
 *   `Cluster` at the timeout
 */
export async function waitForNode(context: PhaseContext, input: WaitNodeInput, phase = NAME): Promise<void> {
  const { host, signal, cluster } = context;
  const { readyMs, probeImage } = input;
  if ((await observe(host, initSystem, signal)) !== 'systemd') return;
  const node = await waitUntilRegistered(context, input, phase);
  if (readyMs === null) return;
  const isReady = node !== 'unseen' && isNodeReady(node) && (await hasReported(context, node));
  const ready = isReady ? node : await waitUntilReady(context, { ...input, readyMs }, phase);
  if (cluster !== null) await probeNewNode(context, { cluster, node: ready, probeImage, phase }, checkCrashes(context, phase));
}

/**
 * Whether the running kubelet has reported condition Ready: after a reset the Node still has the condition of the earlier
 * kubelet. A kubelet reports its status immediately after its start. Both times are of the host, in seconds. Between two crashes
 * no kubelet runs; without a loaded unit its start is unknown, and the condition is accepted.
 * @see kubernetes/kubernetes pkg/kubelet/kubelet_node_status.go `tryUpdateNodeStatus`, `isUpdateStatusPeriodExpired` (1.36)
 */
async function hasReported({ host, signal }: PhaseContext, node: KubeObject): Promise<boolean> {
  const heartbeat = readyHeartbeat(node);
  const unit = await observe(host, unitState('kubelet'), signal);
  if (heartbeat === null || unit?.loadState !== 'loaded') return true;
  if (unit.startedAt === null) return unit.activeState === 'active';
  return Date.parse(heartbeat) / 1000 >= unit.startedAt;
}

function waitUntilRegistered(context: PhaseContext, input: WaitNodeInput, phase: string): Promise<KubeObject | 'unseen'> {
  const { nodeName, timeoutMs } = input;
  const next = firstThenPollClient(context.cluster);
  return waitOnKubelet(context, phase, {
    probe: () => probeNode(next(), input),
    timeoutMs,
    pauseMs: REGISTRATION_PAUSE,
    progressMs: 5_000,
    describe: async (away, waitedMs) => {
      if (away !== null) return `waiting for Node ${nodeName}, ${seconds(waitedMs)}: ${away.problems[0]?.message ?? ''}`;
      const reported = await kubeletMessage(context, waitedMs);
      return `waiting for Node ${nodeName} to be registered, ${seconds(waitedMs)}${reported === null ? '' : `: ${reported}`}`;
    },
    timedOut: async (away, waitedMs) => {
      if (away !== null) throw away;
      const reported = await kubeletMessage(context, waitedMs);
      const after = `after ${Math.round(waitedMs / 1000)}s${reported === null ? '' : `: ${reported}`}`;
      const message = `${phase}: the kubelet has its certificate, but Node ${nodeName} is not registered ${after}`;
      const hint = 'See journalctl -u kubelet on the host, then rerun the command';
      throw new AppError({ host: context.host.name, code: 'NODE_NOT_REGISTERED', message, hint });
    },
  });
}

async function waitUntilReady(
  context: PhaseContext,
  input: WaitNodeInput & { readonly readyMs: number },
  phase: string,
): Promise<KubeObject> {
  const { host } = context;
  const { nodeName, readyMs } = input;
  const next = firstThenPollClient(context.cluster);
  return waitOnKubelet<KubeObject, AppError | string>(context, phase, {
    probe: async () => {
      const probed = await probeNode(next(), input);
      if ('pending' in probed) return { pending: probed.pending ?? `Node ${nodeName} does not exist` };
      const node = probed.done;
      if (node === 'unseen') throw mayNotRead(host.name, phase, nodeName);
      if (!isNodeReady(node)) return { pending: nodeIssues(node).join('; ') };
      return (await hasReported(context, node)) ? { done: node } : { pending: 'the kubelet has not reported since its start' };
    },
    timeoutMs: readyMs,
    pauseMs: API_PAUSE,
    progressMs: 5_000,
    describe: (pending, waitedMs) => {
      const why = typeof pending === 'string' ? pending : (pending.problems[0]?.message ?? '');
      return `waiting for Node ${nodeName} to be Ready, ${seconds(waitedMs)}: ${why}`;
    },
    timedOut: (pending) => {
      throw typeof pending === 'string' ? notReady(host.name, phase, { ...input, why: pending }) : pending;
    },
  });
}

function mayNotRead(host: string, phase: string, nodeName: string): AppError {
  const message = `${phase}: the credentials are not allowed to read Node ${nodeName}`;
  return new AppError({ host, code: 'CLUSTER_FORBIDDEN', message, hint: 'Pass an administrator kubeconfig with --kubeconfig' });
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`;
}

function notReady(
  host: string,
  phase: string,
  { nodeName, readyMs, why }: { readonly nodeName: string; readonly readyMs: number; readonly why: string },
): AppError {
  const message = `${phase}: Node ${nodeName} is not Ready after ${Math.round(readyMs / 1000)}s: ${why}`;
  const hint = /cni|network/i.test(why)
    ? 'Install a CNI network plugin, or check why its Pod does not run on this node'
    : `See kubectl describe node ${nodeName}, and journalctl -u kubelet on the host`;
  return new AppError({ host, code: 'NODE_NOT_READY', message, hint: `${hint}. Rerun the command to continue waiting` });
}
