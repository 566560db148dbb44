import { settle, unlessRefused } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import type { Reporter } from '../../base/reporter.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { numberAt } from '../../kubelet/documents/values.ts';
import { isToEvict, readDrainPod } from '../forecast/drain-pod.ts';
import { notSettled } from './drain-problems.ts';
import type { HoldRun } from './hold.ts';

/** A controller whose pods are evicted, and how many of its pods were Ready before. */
export interface EvictedWorkload {
  readonly ref: ObjectRef;
  readonly uid: string;
  /** `StatefulSet shop/db`. */
  readonly name: string;
  readonly readyBefore: number;
}

/** Controllers that report the number of their Ready pods. Pods of a Job may just finish; other controllers are not observed. */
const OBSERVED: ReadonlySet<string> = new Set(['ReplicaSet', 'StatefulSet', 'ReplicationController']);
const AT_ONCE = 8;
const POLL_MS = 2_000;

/** The controllers of the pods that a drain evicts, one request each. What cannot be read is not observed. */
export async function readEvictedWorkloads(cluster: Cluster, pods: readonly KubeObject[]): Promise<readonly EvictedWorkload[]> {
  const evicted = pods.map(readDrainPod).filter((pod) => isToEvict(pod, { selects: () => true }));
  const controllers = new Map(
    evicted.flatMap(({ controller, namespace }) =>
      controller === null || !OBSERVED.has(controller.kind) ? [] : [[controller.uid, { ...controller, namespace }] as const],
    ),
  );
  const found = await inParallel([...controllers.values()], AT_ONCE, async ({ uid, ...ref }): Promise<readonly EvictedWorkload[]> => {
    const object = await unlessRefused(cluster.get(ref));
    const readyBefore = object === null || object.metadata.uid !== uid ? 0 : readyOf(object).ready;
    return readyBefore === 0 ? [] : [{ ref, uid, name: `${ref.kind} ${ref.namespace}/${ref.name}`, readyBefore }];
  });
  return found.flat();
}

function readyOf(object: KubeObject): { readonly ready: number; readonly replicas: number } {
  return { ready: numberAt(object, 'status.readyReplicas') ?? 0, replicas: numberAt(object, 'spec.replicas') ?? 1 };
}

/**
 * Waits until each controller has as many Ready pods as before the drain, or as many as it is scaled to now. After the time
 * limit a warning names the others, and the run continues. An interruption ends the wait.
 */
export async function waitSettled(
  {
    cluster,
    run,
    signal,
    reporter,
  }: { readonly cluster: Cluster; readonly run: HoldRun; readonly signal: AbortSignal; readonly reporter: Reporter },
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
        left = (await inParallel(waiting, AT_ONCE, (workload) => missingPods(cluster, workload))).flat();
        waiting = left.map(({ workload }) => workload);
        return left.length === 0 ? { done: true } : { pending: left };
      },
      timeoutMs,
      pauseMs: () => POLL_MS,
      timedOut: () => false,
      describe: (pending, waitedMs) =>
        `waiting for the evicted pods to be Ready elsewhere, ${Math.round(waitedMs / 1000)} s: ${pending.map(({ text }) => text).join(', ')}`,
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

/** Empty: none are missing, or the controller was deleted. One that cannot be read now is not settled. */
async function missingPods(cluster: Cluster, workload: EvictedWorkload) {
  const { ref, uid, name, readyBefore } = workload;
  const read = await settle(cluster.get(ref));
  if ('error' in read) return [{ workload, text: `${name} (cannot be read)` }];
  if (read.value === null || read.value.metadata.uid !== uid) return [];
  const { ready, replicas } = readyOf(read.value);
  const wanted = Math.min(readyBefore, replicas);
  return ready >= wanted ? [] : [{ workload, text: `${name} (${ready} of ${wanted} Ready)` }];
}
