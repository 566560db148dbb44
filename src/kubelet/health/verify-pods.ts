import { AppError, firstMessage, isAppError } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { parseQuantity, quantityValue } from '../../base/text/quantity.ts';
import { API_PAUSE } from '../../base/wait-until.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { type Cluster, pollClient } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { valueAt } from '../documents/values.ts';
import { isActive, isProbe, podsOfNode, readPod } from '../workload/pod.ts';
import { type PodBefore, type PodLoss, podLosses, runningPods, withoutStartErrors } from './baseline.ts';
import { type ApiProbe, apiProbe, deleteStaleProbePods, type ProbeOutcome, type ProbeWait, pauseImageOn, runProbe } from './run-probe.ts';
import { ADMISSION_MS, limitsOf, PROBE_MS } from './signals.ts';

/** Evidence that a changed kubelet still runs pods. Recorded before the change. */
export interface PodVerification {
  /** A probe pod was tried: the kubelet may have reported its state again in the meantime. */
  readonly hasProbed: boolean;
  /** Lists the pods of the node once, after the change. */
  observePods(): Promise<ObservedPods>;
  /**
   * Waits until a probe pod starts. Null: the node could not start one before the change.
   * @throws AppError PROBE_POD_FAILED; errors of `meanwhile`
   */
  readonly probe: ((timeoutMs: number, meanwhile: () => Promise<void>) => Promise<void>) | null;
}

/** The pods of a node after a change. */
interface ObservedPods {
  readonly losses: readonly PodLoss[];
  /** Reason to wait although no pod is lost, as a clause; null: none. */
  readonly pending: string | null;
}

interface WorkloadTarget {
  readonly cluster: Cluster;
  /** The Node before the change, or a new Node; it was Ready. */
  readonly node: KubeObject;
  /** Shown in messages. */
  readonly phase: string;
  /** Image of the probe pod if the node has no pause image. Absent: no probe pod then. */
  readonly probeImage: string | undefined;
  /** The operator permits the change to end pods; a probe pod must start nevertheless. */
  readonly mayLosePods: boolean;
  /** The change affects evictions, which a restarted kubelet decides every 10 s. */
  readonly mayEvict: boolean;
}

/** The kubelet compares its eviction signals with the thresholds every 10 s. */
const EVICTION_MS = 15_000;
const FAILED_MS = limitsOf('ssh')['probe-pod'];
const BASELINE_MS = 15_000;
/** A new node may have to pull the image. */
const NEW_NODE_MS = 60_000;

/**
 * Records the running pods of a node, and whether it can start a probe pod. Parts that cannot be checked are
 * reported with their reason and not required later (PODS_NOT_CHECKED, PROBE_POD_UNUSED).
 * @throws the signal's reason
 */
export async function recordWorkload(context: PhaseContext, target: WorkloadTarget): Promise<PodVerification> {
  const { cluster, node, phase } = target;
  const items = await listPods(target);
  if (isAppError(items)) {
    reportUnchecked(context, phase, firstMessage(items));
    return UNCHECKED;
  }
  await deleteStaleProbePods(context, target, items);
  const before = runningPods(items.filter((item) => !isProbe(item)).map(readPod));
  const watch = watchPods(context, target, before);
  const nodeName = node.metadata.name;
  const unused = (why: string): void => {
    watch.waitForAdmission();
    reportUnused(context, { phase, nodeName, level: 'info', why });
  };
  const image = pauseImageOn(node) ?? target.probeImage;
  if (image === undefined || !hasRoom(node, items)) {
    unused(image === undefined ? NO_IMAGE : NO_ROOM);
    return { hasProbed: false, observePods: () => watch.observe(podLosses), probe: null };
  }
  // No polls: the host reverts a change that is not confirmed in time.
  const run = { cluster, nodeName, image, phase };
  const baseline = await probeOverApi(context, run, { timeoutMs: BASELINE_MS });
  if (baseline.state !== 'started') {
    unused(`before the change, ${baseline.why}`);
    return { hasProbed: true, observePods: () => watch.observe(podLosses), probe: null };
  }
  const probe = async (timeoutMs: number, meanwhile: () => Promise<void>): Promise<void> => {
    if (!hasRoom(node, watch.latest())) return unused(NO_ROOM);
    const outcome = await probeOverApi(context, run, { timeoutMs: Math.min(timeoutMs, PROBE_MS.ssh), meanwhile });
    if (outcome.state === 'not-run') unused(outcome.why);
    // The node had the image before the change.
    else if (outcome.state !== 'started') throw probePodFailed(context.host.name, { ...outcome, phase, nodeName });
  };
  const withProbe: FindLosses = (...pods) => withoutStartErrors(podLosses(...pods));
  return { hasProbed: true, observePods: () => watch.observe(withProbe), probe };
}

/** No pods are checked. */
export const UNCHECKED: PodVerification = { hasProbed: false, observePods: async () => ({ losses: [], pending: null }), probe: null };

/** Reports that a change is confirmed without its pods. `why` is a clause. */
export function reportUnchecked({ host, reporter }: PhaseContext, phase: string, why: string): void {
  const message = `the pods of the node are not checked: ${why}`;
  reporter.report({ level: 'info', code: 'PODS_NOT_CHECKED', host: host.name, phase, message, verbosity: 1 });
}

/**
 * Waits until a new node starts a probe pod, at most one minute. A probe that cannot be run is a warning (PROBE_POD_UNUSED).
 * @param meanwhile called with each check of the probe pod; an error ends the wait
 * @throws AppError PROBE_POD_FAILED; the signal's reason; errors of `meanwhile`
 */
export async function probeNewNode(
  context: PhaseContext,
  { cluster, node, phase, probeImage }: Omit<WorkloadTarget, 'mayEvict' | 'mayLosePods'>,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const nodeName = node.metadata.name;
  const image = pauseImageOn(node) ?? probeImage;
  const unused = (why: string): void => reportUnused(context, { phase, nodeName, level: 'warning', why });
  if (image === undefined) return unused(NO_IMAGE);
  const items = await listPods({ cluster, node });
  if (!isAppError(items)) await deleteStaleProbePods(context, { cluster, phase }, items);
  const run = { cluster, reads: pollClient(cluster), nodeName, image, phase };
  const outcome = await probeOverApi(context, run, { timeoutMs: NEW_NODE_MS, meanwhile });
  if (outcome.state === 'failed') throw probePodFailed(context.host.name, { ...outcome, phase, nodeName });
  if (outcome.state !== 'started') unused(outcome.why);
}

/** The outcome with the name of the pod. */
async function probeOverApi(
  context: PhaseContext,
  run: ApiProbe,
  wait: Pick<ProbeWait, 'timeoutMs' | 'meanwhile'>,
): Promise<ProbeOutcome & { readonly pod: string }> {
  const driver = apiProbe(context, run);
  const outcome = await runProbe({ ...context, phase: run.phase }, driver, { ...wait, pauseMs: API_PAUSE, failedMs: FAILED_MS });
  return { ...outcome, pod: driver.name };
}

const NO_IMAGE = 'no pause image was found';
const NO_ROOM = 'the node has no room for another pod';

function reportUnused(
  { host, reporter }: PhaseContext,
  {
    phase,
    nodeName,
    level,
    why,
  }: { readonly phase: string; readonly nodeName: string; readonly level: 'info' | 'warning'; readonly why: string },
): void {
  const message = `kubeletadm cannot test with a probe pod whether Node ${nodeName} can start new pods: ${why}`;
  const verbosity = level === 'info' ? 1 : 0;
  reporter.report({ level, code: 'PROBE_POD_UNUSED', host: host.name, phase, message, verbosity });
}

type FindLosses = typeof podLosses;

interface PodWatch {
  observe(find: FindLosses): Promise<ObservedPods>;
  /** No probe pod shows that the kubelet has admitted its pods: they are watched for some time. */
  waitForAdmission(): void;
  /** The pods of the latest check. */
  latest(): readonly KubeObject[];
}

function watchPods(
  { clock }: PhaseContext,
  { cluster, node, mayEvict, mayLosePods }: WorkloadTarget,
  before: readonly PodBefore[],
): PodWatch {
  let startedAt: number | null = null;
  let admissionMs = 0;
  let latest: readonly KubeObject[] = [];
  const pendingReason = (watchedMs: number): string | null => {
    if (mayLosePods || before.length === 0) return null;
    if (mayEvict && watchedMs < EVICTION_MS) return 'checking that the kubelet evicts no pods';
    return watchedMs < admissionMs ? 'checking that the kubelet rejects no pods' : null;
  };
  return {
    latest: () => latest,
    waitForAdmission: () => {
      admissionMs = ADMISSION_MS;
    },
    observe: async (find) => {
      const now = clock.now().getTime();
      startedAt ??= now;
      const items = await listPods({ cluster, node });
      if (isAppError(items)) return { losses: [], pending: `the pods of the node cannot be listed: ${firstMessage(items)}` };
      latest = items;
      return { losses: mayLosePods ? [] : find(before, items.map(readPod)), pending: pendingReason(now - startedAt) };
    },
  };
}

async function listPods({ cluster, node }: Pick<WorkloadTarget, 'cluster' | 'node'>): Promise<readonly KubeObject[] | AppError> {
  try {
    return (await cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: podsOfNode(node.metadata.name) })).items;
  } catch (error) {
    if (isAppError(error)) return error;
    throw error;
  }
}

/** Whether the node, with its allocatable pods, admits one more pod. */
function hasRoom(node: KubeObject, items: readonly KubeObject[]): boolean {
  const allocatable = valueAt(node, 'status.allocatable.pods');
  const quantity = allocatable === undefined ? null : parseQuantity(String(allocatable));
  if (quantity === null) return true;
  return items.filter((item) => !isProbe(item) && isActive(readPod(item))).length < Number(quantityValue(quantity));
}

/** A kubelet cannot start a new pod. `why` is a clause. */
function probePodFailed(
  host: string,
  { phase, nodeName, pod, why }: { readonly phase: string; readonly nodeName: string; readonly pod: string; readonly why: string },
): AppError {
  return new AppError({
    host,
    code: 'PROBE_POD_FAILED',
    message: `${phase}: Node ${nodeName} cannot start new pods, because the probe pod ${pod} failed: ${printable(why, 500)}`,
    hint: 'Fix the cause in the message. See journalctl -u kubelet on the host',
  });
}
