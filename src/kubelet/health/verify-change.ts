import type { Clock } from '../../base/clock.ts';
import { AppError } from '../../base/errors.ts';
import { API_PAUSE } from '../../base/wait-until.ts';
import { observe } from '../../host/access/observe.ts';
import { unitState } from '../../host/facts/unit.ts';
import type { PhaseContext, VerifyCommit } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { conditionOf, isNodeReady } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { fieldsToShow } from '../diff/diff-configs.ts';
import {
  assessSignals,
  configzSignals,
  type FoundSignal,
  nodeSignals,
  type Observation,
  podSignals,
  type SignalTimes,
  worstOf,
} from './assess.ts';
import { waitOnKubelet } from './crash-watch.ts';
import {
  findNode,
  type KubeletVerification,
  type NodeChange,
  type NodeToVerify,
  observeChange,
  pathNotChecked,
  pressuresOf,
  reachKubelet,
  readNode,
} from './observe-change.ts';
import { limitsOf } from './signals.ts';
import { recordPods, reportUnchecked } from './verify-pods.ts';

/** Interval between checks whether the change still waits for its confirmation. */
const CHECK_MS = 5_000;
const LIMITS = limitsOf('ssh');

/**
 * Inspects the Node and its pods before a change of its kubelet.
 * @returns a function that waits until the API server shows the change: the Node is Ready again if it was
 *   before, by a newer heartbeat, the API server reaches the kubelet, its configz has the new values, its pods still
 *   run, and a probe pod starts. Facts that were not visible before, or not permitted, are not required
 * @param change the effective configuration of all files and flags before (null: none) and after it; `restarts`: the status of
 *   the Node must be newer than the restart
 */
export async function prepareVerification(
  context: PhaseContext,
  verification: KubeletVerification,
  { phase, before, after, restarts }: Pick<NodeChange, 'phase' | 'restarts'> & { readonly before: string | null; readonly after: string },
): Promise<VerifyCommit> {
  const found = await findNode(context, verification.nodeName);
  if ('why' in found || !isNodeReady(found.node)) {
    reportUnchecked(context, phase, 'why' in found ? found.why : notReady(verification.nodeName));
    return async () => undefined;
  }
  const config = { reader: verification, after, fields: fieldsToShow(before, after, verification) };
  const isReached = await checkReached(context, found.cluster, verification.nodeName, phase);
  return prepareReady(context, { ...found, verification, phase, restarts, startedAt: null, config, isReadyNeeded: true, isReached });
}

/**
 * Inspects the Node and its pods before a restart of its kubelet in another environment, which may separate the kubelet
 * from the API server.
 * @returns a function that waits until the restarted kubelet has reported its state to the API server, and for a Node that
 *   was Ready until the same is visible as for `prepareVerification`. If the API server or the Node was not visible before, or
 *   the kubelet did not report to it, the function returns that the connection is unknown
 */
export async function prepareRestartVerification(context: PhaseContext, verification: NodeToVerify, phase: string): Promise<VerifyCommit> {
  const { nodeName } = verification;
  const found = await findNode(context, nodeName);
  if ('why' in found || !isReporting(found.node)) {
    const why = 'why' in found ? found.why : `the kubelet of Node ${nodeName} did not report to the API server before the change`;
    reportUnchecked(context, phase, why);
    return async () => `it is unknown whether the kubelet reaches the API server: ${why}; see kubectl get nodes`;
  }
  const isReached = await checkReached(context, found.cluster, nodeName, phase);
  const change = { ...found, verification, phase, restarts: true, startedAt: null, config: null, isReached };
  const isReady = isNodeReady(found.node);
  if (!isReady) reportUnchecked(context, phase, notReady(nodeName));
  const verify = isReady ? await prepareReady(context, { ...change, isReadyNeeded: true }) : null;
  return async (deadline, checkOpen) => {
    // The previous process may have reported between the inspection and the restart.
    const startedAt = (await observe(context.host, unitState('kubelet'), context.signal))?.startedAt ?? null;
    const reported = await waitUntilVerified(
      context,
      { ...change, startedAt, isReadyNeeded: false },
      { pods: null, deadline, checkOpen: everyMs(context.clock, CHECK_MS, checkOpen) },
    );
    return verify === null ? reported : verify(deadline, checkOpen);
  };
}

async function prepareReady(context: PhaseContext, change: NodeChange): Promise<VerifyCommit> {
  const { cluster, node: found, verification } = change;
  const pods = change.restarts ? await recordPods(context, change) : null;
  // A probe takes time, in which the previous kubelet may have sent another heartbeat.
  const node = pods === null ? found : ((await readNode(cluster, verification.nodeName, context)) ?? found);
  return async (deadline, checkOpen) => {
    try {
      const open = everyMs(context.clock, CHECK_MS, checkOpen);
      return await waitUntilVerified(context, { ...change, node }, { pods, deadline, checkOpen: open });
    } finally {
      await pods?.end();
    }
  };
}

/** Waits until the Node, its configz, its pods and a probe pod show the change; returns the part that cannot be verified. */
function waitUntilVerified(
  context: PhaseContext,
  change: NodeChange,
  {
    pods,
    deadline,
    checkOpen,
  }: { readonly pods: Awaited<ReturnType<typeof recordPods>> | null; readonly deadline: number; readonly checkOpen: () => Promise<void> },
): Promise<string | undefined> {
  const { clock, host } = context;
  const { phase, node } = change;
  const before = { isReady: true, pressures: pressuresOf(node) };
  const startedAt = clock.now().getTime();
  let lastAt = startedAt;
  let times: SignalTimes = {};
  const observePods = async () => (await pods?.observe()) ?? { losses: [], pending: null };
  return waitOnKubelet<string | undefined, string>(context, phase, {
    probe: async () => {
      const { pending: why, unproven, ...seen } = await observeChange(change);
      let listed = await observePods();
      const isShown = why === null && signalsOf(before, { ...seen, ...listed }).length === 0;
      const probe = isShown && pods !== null ? await pods.probe() : null;
      // The kubelet admits its pods before it starts a probe pod.
      if (probe?.state === 'started') listed = await observePods();
      const found = signalsOf(before, { ...seen, ...listed, probe });
      const now = clock.now().getTime();
      const { failure, ...assessed } = assessSignals(times, found, now - lastAt, LIMITS);
      [times, lastAt] = [assessed.times, now];
      if (failure?.pod !== undefined) throw podsLost(host.name, phase, failure.cause, failure.pod);
      if (probe?.state === 'failed' && failure !== null && pods !== null) throw await pods.probeFailed(probe.why);
      if (failure !== null) throw notProven(host.name, phase, failure.cause, now - startedAt);
      const starting = probe?.state === 'starting' ? `probe pod: ${probe.seen}` : null;
      const pending = worstOf(found)?.cause ?? why ?? listed.pending ?? starting;
      if (pending === null) return { done: unproven };
      // A change that the host has reverted is never confirmed.
      await checkOpen();
      return { pending };
    },
    timeoutMs: deadline - startedAt,
    pauseMs: API_PAUSE,
    progressMs: 5_000,
    describe: (why, waitedMs) => `waiting to confirm, ${Math.round(waitedMs / 1000)} s: ${why}`,
    timedOut: (why, waitedMs) => {
      throw notProven(host.name, phase, why, waitedMs);
    },
  });
}

/** The signals of a change, the worst first. */
export function signalsOf(
  before: Parameters<typeof nodeSignals>[0],
  { ready = null, pressures = [], differing = null, losses = [], unreached = null, probe = null }: Partial<Observation>,
): readonly FoundSignal[] {
  return [
    ...podSignals(before, { losses, probe }),
    ...nodeSignals(before, { ready, pressures }),
    ...(unreached === null ? [] : [{ signal: 'not-reached', seen: unreached } as const]),
    ...configzSignals(differing ?? []),
  ];
}

/** Calls an action at most once per interval; the first time immediately. */
function everyMs(clock: Clock, intervalMs: number, action: () => Promise<void>): () => Promise<void> {
  let next = 0;
  return async () => {
    const now = clock.now().getTime();
    if (now < next) return;
    next = now + intervalMs;
    await action();
  };
}

/** Whether the API server reaches the kubelet before a change; otherwise the change need not reach it, which is reported. */
async function checkReached({ host, reporter }: PhaseContext, cluster: Cluster, nodeName: string, phase: string): Promise<boolean> {
  const { issue } = await reachKubelet(cluster, nodeName);
  if (issue === null) return true;
  reporter.report({ ...pathNotChecked(host.name, issue), phase });
  return false;
}

function notReady(nodeName: string): string {
  return `Node ${nodeName} was not Ready before the change`;
}

/** Whether the kubelet reports to the API server: the status is Unknown if it stopped. */
function isReporting(node: KubeObject): boolean {
  const ready = conditionOf(node, 'Ready');
  return ready?.lastHeartbeatTime !== undefined && ready.status !== 'Unknown';
}

function podsLost(host: string, phase: string, cause: string, pod: string): AppError {
  const [namespace = '', name = ''] = pod.split('/');
  return new AppError({
    host,
    code: 'PODS_LOST',
    message: `${phase}: ${cause}`,
    hint: `Change the fields that keep the pods from running, or drain the node first. See kubectl describe pod -n ${namespace} ${name}`,
  });
}

function notProven(host: string, phase: string, why: string, waitedMs: number): AppError {
  const message = `${phase}: the change could not be confirmed within ${Math.round(waitedMs / 1000)}s: ${why}`;
  return new AppError({
    host,
    code: 'COMMIT_NOT_PROVEN',
    message,
    hint: 'See journalctl -u kubelet on the host. The next message shows whether the host was rolled back',
  });
}
