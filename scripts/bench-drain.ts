// npm run bench:drain: time and requests of the forecast of 500 nodes with 15,000 pods in 50 namespaces.

import { performance } from 'node:perf_hooks';
import type { Cluster } from '../src/kube/cluster.ts';
import type { KubeObject } from '../src/kube/object.ts';
import { forecastDrain } from '../src/maintenance/forecast/forecast.ts';
import { readClusterView } from '../src/maintenance/forecast/read-cluster-view.ts';
import { drainBudget, drainNode, drainPod, readyScaled } from '../test/support/drain-objects.ts';

const [NODES, PODS, REPLICAS] = [500, 15_000, 10];
const APPS = PODS / REPLICAS;
const namespaceOf = (app: number): string => `team-${app % 50}`;
const of = <T>(count: number, make: (i: number) => T): readonly T[] => Array.from({ length: count }, (_, i) => make(i));
/** Each fiftieth budget allows no eviction at any scale. */
const budgetOf = (i: number): KubeObject => {
  const maxUnavailable = i % 50 === 0 ? 0 : 1;
  const counts = { disruptionsAllowed: maxUnavailable, currentHealthy: REPLICAS, desiredHealthy: REPLICAS - maxUnavailable };
  return {
    ...drainBudget(`app-${i}`, `app-${i}`, { maxUnavailable }, namespaceOf(i)),
    status: { ...counts, expectedPods: REPLICAS, observedGeneration: 1 },
  };
};
const objects: Readonly<Record<string, readonly KubeObject[]>> = {
  Node: of(NODES, (i) => drainNode(`n${i}`, { labels: { 'topology.kubernetes.io/zone': 'abc'[i % 3] as string } })),
  PodDisruptionBudget: of(APPS, budgetOf),
  Pod: of(PODS, (i) => {
    const number = Math.floor(i / REPLICAS);
    const app = `app-${number}`;
    return drainPod(`pod-${i}`, `n${i % NODES}`, {
      of: `ReplicaSet/${app}`,
      app,
      namespace: namespaceOf(number),
      requests: { cpu: '50m', memory: '64Mi' },
    });
  }),
};
let requests = 0;
const counted = async <T>(answer: T): Promise<T> => {
  requests++;
  return answer;
};
const cluster: Pick<Cluster, 'version' | 'list' | 'get'> = {
  version: () => counted('v1.36.2'),
  list: ({ kind }) => counted({ items: objects[kind] ?? [], resourceVersion: '1' }),
  get: ({ kind, name }) => counted(readyScaled(`${kind}/${name}`, REPLICAS)),
};
const cpu = process.cpuUsage();
const start = performance.now();
const view = await readClusterView(cluster as Cluster);
const read = performance.now();
const rules = { ignoreDaemonSets: true, deleteEmptyDirData: false, force: false, gracePeriodSeconds: null, selects: () => true };
const { nodes, budgets, atOnce } = forecastDrain(
  view,
  of(NODES, (i) => `n${i}`),
  rules,
  null,
);
const end = performance.now();
const cpuMs = Math.round(process.cpuUsage(cpu).user / 1000);
const blocked = nodes.filter(({ state }) => state === 'blocked').length;
console.log(`${NODES} nodes, ${PODS} pods, ${budgets.length} budgets: ${blocked} nodes blocked, ${atOnce} at once`);
console.log(
  `read ${Math.round(read - start)} ms, forecast ${Math.round(end - read)} ms, ${cpuMs} ms of CPU time; ${requests} requests, ${(requests / NODES).toFixed(2)} per node`,
);
if (cpuMs > 3_000) {
  console.error('the forecast took more than 3 s of CPU time');
  process.exitCode = 1;
}
