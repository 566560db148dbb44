import { setTimeout as sleep } from 'node:timers/promises';
import { isAppError } from '../../src/base/errors.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { readDrainPod } from '../../src/maintenance/forecast/drain-pod.ts';

const POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'default' } as const;

/** Replaces the scheduler and the kubelets: keeps Nodes Ready, places pods, and reports them as Ready after a second. */
export async function runStandInNodes(cluster: Cluster, names: readonly string[], signal: AbortSignal): Promise<void> {
  const startedAt = new Map<string, number>();
  for (let beat = 0; !signal.aborted; beat++, await sleep(200)) {
    try {
      if (beat % 25 === 0) for (const name of names) await heartbeat(cluster, name);
      for (const pod of (await cluster.list(POD)).items) {
        const { node, phase, uid } = readDrainPod(pod);
        if (node === '') await place(cluster, pod.metadata.name, names);
        else if (phase === 'Pending') {
          if (!startedAt.has(uid)) startedAt.set(uid, Date.now());
          if (Date.now() - (startedAt.get(uid) ?? 0) < 1_000) continue;
          const conditions = [{ type: 'Ready', status: 'True' }];
          const ref = { ...POD, name: pod.metadata.name };
          await cluster.patch(ref, 'strategic', { status: { phase: 'Running', conditions } }, { subresource: 'status' });
        }
      }
    } catch (error) {
      // The pod was deleted meanwhile, or the API server is being stopped.
      if (!isAppError(error)) throw error;
    }
  }
}

async function heartbeat(cluster: Cluster, name: string): Promise<void> {
  const time = new Date().toISOString().replace(/\.\d+/, '');
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: time }];
  const allocatable = { cpu: '4', memory: '8Gi', pods: '110' };
  await cluster.patch(
    { apiVersion: 'v1', kind: 'Node', name },
    'strategic',
    { status: { conditions, allocatable, capacity: allocatable } },
    { subresource: 'status' },
  );
}

/** On the Node with the fewest pods of those that may be used. */
async function place(cluster: Cluster, pod: string, names: readonly string[]): Promise<void> {
  const pods = (await cluster.list(POD)).items.map(readDrainPod);
  const nodes = await Promise.all(names.map((name) => cluster.get({ apiVersion: 'v1', kind: 'Node', name })));
  const free = names.filter((_, i) => (nodes[i]?.spec as { unschedulable?: boolean } | undefined)?.unschedulable !== true);
  const countOf = (name: string): number => pods.filter(({ node }) => node === name).length;
  const [name] = free.toSorted((a, b) => countOf(a) - countOf(b));
  if (name === undefined) return;
  // The API server answers with a Status instead of the Binding.
  await cluster
    .create({
      ...{ apiVersion: 'v1', kind: 'Binding', metadata: { name: pod, namespace: 'default' } },
      target: { apiVersion: 'v1', kind: 'Node', name },
    })
    .catch((error: unknown) => {
      if (!isAppError(error, 'CLUSTER_ANSWER_INVALID')) throw error;
    });
}
