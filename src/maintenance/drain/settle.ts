import { settle, unlessRefused } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { numberAt } from '../../kubelet/documents/values.ts';
import { type DrainPod, isToEvict, readDrainPod } from '../forecast/drain-pod.ts';
import type { DrainPorts } from './drain-node.ts';
import { notSettled } from './drain-problems.ts';

/** A controller whose pods are evicted, and how many of its pods were Ready before. */
export interface EvictedWorkload {
  readonly ref: ObjectRef & { readonly namespace: string };
  readonly uid: string;
  /** `StatefulSet shop/db`. */
  readonly name: string;
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
  const found = await podsByController(cluster, [...controllers.values()]);
  return [...controllers.values()].flatMap(({ uid, ...ref }) => {
    const readyBefore = readyOf(found.get(ref.namespace)?.get(uid));
    return readyBefore === 0 ? [] : [{ ref, uid, name: `${ref.kind} ${ref.namespace}/${ref.name}`, readyBefore }];
  });
}

type PodsOfNamespace = ReadonlyMap<string, readonly DrainPod[]>;

/** The running or starting pods by the UID of their controller, by namespace: one list each; null: it cannot be read. */
async function podsByController(
  cluster: Cluster,
  places: readonly { readonly namespace: string }[],
): Promise<ReadonlyMap<string, PodsOfNamespace | null>> {
  const namespaces = [...new Set(places.map(({ namespace }) => namespace))];
  const found = await inParallel(namespaces, AT_ONCE, async (namespace) => {
    const list = await unlessRefused(cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace }));
    const pods = list?.items.map(readDrainPod).filter(({ isTerminating, phase }) => !isTerminating && !ENDED.has(phase));
    return [namespace, pods === undefined ? null : groupBy(pods, ({ controller }) => controller?.uid ?? '')] as const;
  });
  return new Map(found);
}

const ENDED: ReadonlySet<string> = new Set(['Succeeded', 'Failed']);

function readyOf(pods: readonly DrainPod[] = []): number {
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
        const pods = await podsByController(
          cluster,
          waiting.map(({ ref }) => ref),
        );
        left = (await inParallel(waiting, AT_ONCE, (each) => missingPods(cluster, each, pods.get(each.ref.namespace)))).flat();
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
async function missingPods(cluster: Cluster, workload: EvictedWorkload, found: PodsOfNamespace | null = null) {
  const { ref, uid, name, readyBefore } = workload;
  const unread = [{ workload, text: `${name} (cannot be read)` }];
  if (found === null) return unread;
  const pods = found.get(uid) ?? [];
  const ready = readyOf(pods);
  const missing = (wanted: number) => (ready >= wanted ? [] : [{ workload, text: `${name} (${ready} of ${wanted} Ready)` }]);
  if (pods.length >= readyBefore) return missing(readyBefore);
  const read = await settle(cluster.get(ref));
  if ('error' in read) return unread;
  if (read.value === null || read.value.metadata.uid !== uid) return [];
  return missing(Math.min(readyBefore, numberAt(read.value, 'spec.replicas') ?? 1));
}
