import { AppError, firstMessage, isAppError, settle } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { parseQuantity, quantityValue } from '../../base/text/quantity.ts';
import { API_PAUSE } from '../../base/wait-until.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { type Cluster, pollClient } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { valueAt } from '../documents/values.ts';
import { isActive, isProbe, podsOfNode, readPod } from '../workload/pod.ts';
import { type PodLoss, podLosses, runningPods } from './baseline.ts';
import type { NodeChange } from './observe-change.ts';
import { type ApiProbe, apiProbe, deleteStaleProbePods, type ProbeOutcome, pauseImageOn, runProbe } from './run-probe.ts';
import { ADMISSION_MS, limitsOf, PROBE_MS } from './signals.ts';

/** Evidence that a changed kubelet still runs pods. Recorded before the change. */
export interface PodVerification {
  /** A probe pod was tried: the kubelet may have reported its state again in the meantime. */
  readonly hasProbed: boolean;
  /**
   * Lists the pods of the node once, after the change. `pending`: reason to wait although no pod is lost, as
   * a clause; null: none.
   */
  observePods(): Promise<{ readonly losses: readonly PodLoss[]; readonly pending: string | null }>;
  /**
   * Waits until a probe pod starts. Null: the node could not start one before the change.
   * @throws AppError PROBE_POD_FAILED; errors of `meanwhile`
   */
  readonly probe: ((timeoutMs: number, meanwhile: () => Promise<void>) => Promise<void>) | null;
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
export async function recordWorkload(context: PhaseContext, change: NodeChange): Promise<PodVerification> {
  const { cluster, node, phase, verification } = change;
  const nodeName = node.metadata.name;
  const items = await listPods(cluster, nodeName);
  if (isAppError(items)) {
    reportUnchecked(context, phase, firstMessage(items));
    return UNCHECKED;
  }
  await deleteStaleProbePods(context, change, items);
  const watch = watchPods(context, change, items);
  const unused = (why: string): void => {
    watch.waitForAdmission();
    reportUnused(context, phase, nodeName, 'info', why);
  };
  const image = pauseImageOn(node) ?? verification.probeImage;
  if (image === undefined || !hasRoom(node, items)) {
    unused(image === undefined ? NO_IMAGE : NO_ROOM);
    return { hasProbed: false, observePods: () => watch.observe(false), probe: null };
  }
  // No polls: the host reverts a change that is not confirmed in time.
  const run = { cluster, nodeName, image, phase };
  const baseline = await probeOverApi(context, run, BASELINE_MS);
  if (baseline.state !== 'started') {
    unused(`before the change, ${baseline.why}`);
    return { hasProbed: true, observePods: () => watch.observe(false), probe: null };
  }
  const probe = async (timeoutMs: number, meanwhile: () => Promise<void>): Promise<void> => {
    if (!hasRoom(node, watch.latest())) return unused(NO_ROOM);
    const outcome = await probeOverApi(context, run, Math.min(timeoutMs, PROBE_MS.ssh), meanwhile);
    if (outcome.state === 'not-run') unused(outcome.why);
    // The node had the image before the change.
    else if (outcome.state !== 'started') throw probePodFailed(context.host.name, run, outcome);
  };
  return { hasProbed: true, observePods: () => watch.observe(true), probe };
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
  { cluster, node, phase, probeImage }: Pick<NodeChange, 'cluster' | 'node' | 'phase'> & { readonly probeImage: string | undefined },
  meanwhile: () => Promise<void>,
): Promise<void> {
  const nodeName = node.metadata.name;
  const image = pauseImageOn(node) ?? probeImage;
  const unused = (why: string): void => reportUnused(context, phase, nodeName, 'warning', why);
  if (image === undefined) return unused(NO_IMAGE);
  const items = await listPods(cluster, nodeName);
  if (!isAppError(items)) await deleteStaleProbePods(context, { cluster, phase }, items);
  const run = { cluster, reads: pollClient(cluster), nodeName, image, phase };
  const outcome = await probeOverApi(context, run, NEW_NODE_MS, meanwhile);
  if (outcome.state === 'failed') throw probePodFailed(context.host.name, run, outcome);
  if (outcome.state !== 'started') unused(outcome.why);
}

/** The outcome with the name of the pod. */
async function probeOverApi(
  context: PhaseContext,
  run: ApiProbe,
  timeoutMs: number,
  meanwhile?: () => Promise<void>,
): Promise<ProbeOutcome & { readonly pod: string }> {
  const driver = apiProbe(context, run);
  const wait = { timeoutMs, meanwhile, pauseMs: API_PAUSE, failedMs: FAILED_MS };
  return { ...(await runProbe({ ...context, phase: run.phase }, driver, wait)), pod: driver.name };
}

const NO_IMAGE = 'no pause image was found';
const NO_ROOM = 'the node has no room for another pod';

function reportUnused({ host, reporter }: PhaseContext, phase: string, nodeName: string, level: 'info' | 'warning', why: string): void {
  const message = `kubeletadm cannot test with a probe pod whether Node ${nodeName} can start new pods: ${why}`;
  const verbosity = level === 'info' ? 1 : 0;
  reporter.report({ level, code: 'PROBE_POD_UNUSED', host: host.name, phase, message, verbosity });
}

/** Fields that decide when the kubelet evicts pods, which a restarted kubelet does every 10 s. */
const EVICTION_FIELDS = /^(?:eviction|(?:kube|system)Reserved|mergeDefaultEvictionSettings|localStorageCapacityIsolation)/;

/** @param items the pods before the change */
function watchPods({ clock }: PhaseContext, { cluster, node, verification, config }: NodeChange, items: readonly KubeObject[]) {
  const mayLosePods = verification.mayLosePods === true;
  const mayEvict = config?.fields.some((path) => EVICTION_FIELDS.test(path)) === true;
  const before = runningPods(items.filter((item) => !isProbe(item)).map(readPod));
  let startedAt: number | null = null;
  let admissionMs = 0;
  let latest = items;
  const pendingReason = (watchedMs: number): string | null => {
    if (mayLosePods || before.length === 0) return null;
    if (mayEvict && watchedMs < EVICTION_MS) return 'checking that the kubelet evicts no pods';
    return watchedMs < admissionMs ? 'checking that the kubelet rejects no pods' : null;
  };
  return {
    /** The pods of the latest check. */
    latest: () => latest,
    /** No probe pod shows that the kubelet has admitted its pods: they are watched for some time. */
    waitForAdmission: () => {
      admissionMs = ADMISSION_MS;
    },
    observe: async (usesProbe: boolean) => {
      const now = clock.now().getTime();
      startedAt ??= now;
      const found = await listPods(cluster, node.metadata.name);
      if (isAppError(found)) return { losses: [], pending: `the pods of the node cannot be listed: ${firstMessage(found)}` };
      latest = found;
      return { losses: mayLosePods ? [] : podLosses(before, found.map(readPod), usesProbe), pending: pendingReason(now - startedAt) };
    },
  };
}

async function listPods(cluster: Cluster, nodeName: string): Promise<readonly KubeObject[] | AppError> {
  const found = await settle(cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: podsOfNode(nodeName) }));
  return 'error' in found ? found.error : found.value.items;
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
  { phase, nodeName }: ApiProbe,
  { pod, why }: { readonly pod: string; readonly why: string },
): AppError {
  return new AppError({
    host,
    code: 'PROBE_POD_FAILED',
    message: `${phase}: Node ${nodeName} cannot start new pods, because the probe pod ${pod} failed: ${printable(why, 500)}`,
    hint: 'Fix the cause in the message. See journalctl -u kubelet on the host',
  });
}
