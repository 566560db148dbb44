import { settle, unlessRefused } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { entriesAt, numberAt } from '../../kubelet/documents/values.ts';
import { type DrainPod, isToEvict, readDrainPod } from '../forecast/drain-pod.ts';
import type { DrainPorts } from './drain-node.ts';
import { notSettled } from './drain-problems.ts';

/** A controller whose pods are evicted, and how many of its pods were Ready before. */
export interface EvictedWorkload {
  readonly ref: ObjectRef & { readonly namespace: string };
  readonly uid: string;
  /** `StatefulSet shop/db`. */
  readonly name: string;
  /** A selector of all its pods, and maybe of others; empty: all pods of the namespace. */
  readonly labels: string;
  readonly readyBefore: number;
}

/** Pods of a Job may just finish; controllers of other kinds are not observed. */
const OBSERVED: ReadonlySet<string> = new Set(['ReplicaSet', 'StatefulSet', 'ReplicationController']);
const AT_ONCE = 8;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 10_000;

/** The controllers of the pods that a drain evicts. What cannot be read is not observed. */
export async function readEvictedWorkloads(cluster: Cluster, pods: readonly KubeObject[]): Promise<readonly EvictedWorkload[]> {
  const evicted = pods.map(readDrainPod).filter((pod) => isToEvict(pod, { selects: () => true }));
  const controllers = new Map(
    evicted.flatMap(({ controller, namespace }) =>
      controller === null || !OBSERVED.has(controller.kind) ? [] : [[controller.uid, { ...controller, namespace }] as const],
    ),
  );
  const found = await inParallel([...controllers.values()], AT_ONCE, async ({ uid, ...ref }): Promise<readonly EvictedWorkload[]> => {
    const object = await unlessRefused(cluster.get(ref));
    if (object !== null && object.metadata.uid !== uid) return [];
    const labels = object === null ? '' : labelsOf(object);
    const workload = { ref, uid, name: `${ref.kind} ${ref.namespace}/${ref.name}`, labels };
    const readyBefore = readyOf((await podsOf(cluster, workload)) ?? []);
    return readyBefore === 0 ? [] : [{ ...workload, readyBefore }];
  });
  return found.flat();
}

/** By `matchLabels`, or by the plain selector of a ReplicationController. */
function labelsOf(controller: KubeObject): string {
  const selector = entriesAt(controller, controller.kind === 'ReplicationController' ? 'spec.selector' : 'spec.selector.matchLabels');
  return selector.map(([key, value]) => `${key}=${String(value)}`).join(',');
}

/** The running or starting pods of a controller; null: they cannot be read. */
async function podsOf(
  cluster: Cluster,
  { ref: { namespace }, uid, labels }: Pick<EvictedWorkload, 'ref' | 'uid' | 'labels'>,
): Promise<readonly DrainPod[] | null> {
  const options = labels === '' ? {} : { labelSelector: labels };
  const list = await unlessRefused(cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace }, options));
  const pods = list?.items.map(readDrainPod).filter((pod) => pod.controller?.uid === uid && !pod.isTerminating && !ENDED.has(pod.phase));
  return pods ?? null;
}

const ENDED: ReadonlySet<string> = new Set(['Succeeded', 'Failed']);

function readyOf(pods: readonly DrainPod[]): number {
  return pods.filter(({ isReady }) => isReady).length;
}

/**
 * Waits until each controller has as many Ready pods as before the drain, or as many as it is scaled to now. After the time
 * limit a warning names the others, and the run continues. An interruption ends the wait.
 */
export async function waitSettled(
  { cluster, run, signal, reporter }: DrainPorts,
  node: string,
  workloads: readonly EvictedWorkload[],
  timeoutMs: number,
): Promise<void> {
  if (workloads.length === 0 || timeoutMs === 0) return;
  let left: readonly { readonly workload: EvictedWorkload; readonly text: string }[] = [];
  let waiting = workloads;
  const waited = waitUntil(
    { clock: run.clock, reporter, signal, host: { name: node } },
    {
      probe: async () => {
        left = (await inParallel(waiting, AT_ONCE, (each) => missingPods(cluster, each))).flat();
        waiting = left.map(({ workload }) => workload);
        return left.length === 0 ? { done: true } : { pending: left };
      },
      timeoutMs,
      pauseMs: (_, tries) => Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tries - 1)),
      timedOut: () => false,
      describe: (pending, waitedMs) =>
        `waiting for replacements of the evicted pods to be Ready, ${Math.round(waitedMs / 1000)} s: ${pending.map(({ text }) => text).join(', ')}`,
      changed: (pending) => pending.map(({ text }) => text).join(),
    },
  );
  const result = await settle(waited);
  if ('error' in result && !signal.aborted) throw result.error;
  if (!('value' in result)) return;
  if (!result.value)
    reporter.report({
      level: 'warning',
      ...notSettled(
        node,
        left.map(({ text }) => text),
        timeoutMs,
      ),
    });
  else {
    const message = 'no controller of an evicted pod has fewer Ready pods than before, or than it is scaled to now';
    reporter.report({ level: 'info', code: 'PODS_SETTLED', host: node, message, verbosity: 1 });
  }
}

/**
 * Empty: none are missing, or the controller was deleted. One that cannot be read now is not settled. The controller is read
 * only if it has fewer pods than before: it may have been scaled.
 */
async function missingPods(cluster: Cluster, workload: EvictedWorkload) {
  const { ref, uid, name, readyBefore } = workload;
  const unread = [{ workload, text: `${name} (cannot be read)` }];
  const pods = await podsOf(cluster, workload);
  if (pods === null) return unread;
  const ready = readyOf(pods);
  const missing = (wanted: number) => (ready >= wanted ? [] : [{ workload, text: `${name} (${ready} of ${wanted} Ready)` }]);
  if (pods.length >= readyBefore) return missing(readyBefore);
  const read = await settle(cluster.get(ref));
  if ('error' in read) return unread;
  if (read.value === null || read.value.metadata.uid !== uid) return [];
  return missing(Math.min(readyBefore, numberAt(read.value, 'spec.replicas') ?? 1));
}
