import { AppError, firstMessage, settle } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { parseQuantity, quantityValue } from '../../base/text/quantity.ts';
import { API_PAUSE } from '../../base/wait-until.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { pollClient } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { valueAt } from '../documents/values.ts';
import { podsOfNode } from '../workload/pod.ts';
import type { PodLoss } from './baseline.ts';
import type { NodeChange } from './observe-change.ts';
import { podWatch } from './pod-watch.ts';
import type { ProbeResult } from './probe-pod.ts';
import { apiProbe, deleteStaleProbePods, explained, type ProbeDriver, pauseImageOn, runProbe } from './run-probe.ts';
import { ADMISSION_MS, limitsOf, PROBE_MS } from './signals.ts';

/** The kubelet compares its eviction signals with the thresholds every 10 s. */
const EVICTION_MS = 15_000;
const BEFORE = { failedMs: limitsOf('ssh')['probe-pod'], pauseMs: API_PAUSE };
/** A new node may have to pull the image. */
const NEW_NODE_MS = 60_000;
/** All processes of the changed kubelet use the same probe pod. */
const PROCESS = 1;

/**
 * Records the running pods of a node, and whether it can start a probe pod, as evidence that a changed kubelet still runs pods. Parts that cannot be checked are
 * reported with their reason and not required later (PODS_NOT_CHECKED, PROBE_POD_UNUSED).
 * @throws the signal's reason
 */
export async function recordPods(context: PhaseContext, change: NodeChange) {
  const { clock } = context;
  const { cluster, node, phase, verification, config } = change;
  const nodeName = node.metadata.name;
  const image = pauseImageOn(node) ?? verification.probeImage;
  let driver: ProbeDriver | null = null;
  const watch = podWatch({
    ...{ ...context, phase, nodeName, before: BEFORE },
    source: { read: (options) => readPods(context, change, options), end: () => undefined },
    newProbe: ({ image: known }) => {
      // No polls: the host reverts a change that is not confirmed in time.
      driver = apiProbe(context, { cluster, nodeName, image: known, phase });
      return driver;
    },
    // An Event about the pod is no failure: the kubelet tries again. It is read when the pod has failed.
    after: { explainedMs: Number.POSITIVE_INFINITY, lateMs: PROBE_MS.ssh, needsImage: true },
  });
  const kubelet = { staticPodPath: null, maxPods: podsAllocatable(node), image: image ?? '' };
  let before = await watch.before(kubelet, image === undefined ? NO_IMAGE : null);
  const hasPods = before.pods !== null && before.pods.length > 0 && verification.mayLosePods !== true;
  if (before.pods === null) reportUnchecked(context, phase, before.noProbe ?? '');
  else if (before.noProbe !== null) reportUnused(context, phase, nodeName, 'info', before.noProbe);
  const mayEvict = config?.fields.some((path) => EVICTION_FIELDS.test(path)) === true;
  let startedAt: number | null = null;

  return {
    /** Lists the pods once, after the change. `pending`: reason to wait although no pod is lost, as a clause; null: none. */
    observe: async (): Promise<{ readonly losses: readonly PodLoss[]; readonly pending: string | null }> => {
      if (before.pods === null) return { losses: [], pending: null };
      const now = clock.now().getTime();
      startedAt ??= now;
      const { losses, why } = await watch.losses(before);
      if (why !== null) return { losses: [], pending: `the pods of the node cannot be listed: ${why}` };
      const isPending = hasPods && now - startedAt < (mayEvict ? EVICTION_MS : before.noProbe === null ? 0 : ADMISSION_MS);
      const pending = `checking that the kubelet ${mayEvict ? 'evicts' : 'rejects'} no pods`;
      return { losses: verification.mayLosePods === true ? [] : (losses ?? []), pending: isPending ? pending : null };
    },
    /** The probe pod, which is started at first. Null: none is used. */
    probe: async (): Promise<ProbeResult | null> => {
      const seen = await watch.probe(before, kubelet, PROCESS);
      if (seen?.state !== 'unusable') return seen;
      reportUnused(context, phase, nodeName, 'info', seen.why);
      before = { ...before, noProbe: seen.why };
      return { state: 'starting', seen: 'no probe pod is used' };
    },
    probeFailed: async (why: string): Promise<AppError> =>
      probePodFailed(
        context.host.name,
        { phase, nodeName },
        { pod: driver?.name ?? '', why: driver === null ? why : await explained(driver, why) },
      ),
    end: watch.end,
  };
}

/** The pods of a node; a text: why they cannot be listed. Before the change, the probe pods of killed runs are deleted. */
async function readPods(
  context: PhaseContext,
  change: Pick<NodeChange, 'cluster' | 'node' | 'phase'>,
  { isFirst }: { readonly isFirst: boolean },
): Promise<readonly KubeObject[] | string> {
  const fieldSelector = podsOfNode(change.node.metadata.name);
  const found = await settle(change.cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector }));
  if ('error' in found) return firstMessage(found.error);
  const { items } = found.value;
  if (isFirst) await deleteStaleProbePods(context, change, items);
  return items;
}

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
  await readPods(context, { cluster, node, phase }, { isFirst: true });
  const driver = apiProbe(context, { cluster, reads: pollClient(cluster), nodeName, image, phase });
  const outcome = await runProbe({ ...context, phase }, driver, { ...BEFORE, timeoutMs: NEW_NODE_MS, meanwhile });
  if (outcome.state === 'failed') throw probePodFailed(context.host.name, { phase, nodeName }, { pod: driver.name, why: outcome.why });
  if (outcome.state !== 'started') unused(outcome.why);
}

const NO_IMAGE = 'no pause image was found';

function reportUnused({ host, reporter }: PhaseContext, phase: string, nodeName: string, level: 'info' | 'warning', why: string): void {
  const message = `kubeletadm cannot test with a probe pod whether Node ${nodeName} can start new pods: ${why}`;
  const verbosity = level === 'info' ? 1 : 0;
  reporter.report({ level, code: 'PROBE_POD_UNUSED', host: host.name, phase, message, verbosity });
}

/** Fields that decide when the kubelet evicts pods, which a restarted kubelet does every 10 s. */
const EVICTION_FIELDS = /^(?:eviction|(?:kube|system)Reserved|mergeDefaultEvictionSettings|localStorageCapacityIsolation)/;

/** The allocatable pods of a node; not reported: no limit. */
function podsAllocatable(node: KubeObject): number {
  const quantity = parseQuantity(String(valueAt(node, 'status.allocatable.pods') ?? ''));
  return quantity === null ? Number.POSITIVE_INFINITY : Number(quantityValue(quantity));
}

/** A kubelet cannot start a new pod. `why` is a clause. */
function probePodFailed(
  host: string,
  { phase, nodeName }: { readonly phase: string; readonly nodeName: string },
  { pod, why }: { readonly pod: string; readonly why: string },
): AppError {
  return new AppError({
    host,
    code: 'PROBE_POD_FAILED',
    message: `${phase}: Node ${nodeName} cannot start new pods, because the probe pod ${pod} failed: ${printable(why, 500)}`,
    hint: 'Fix the cause in the message. See journalctl -u kubelet on the host',
  });
}
