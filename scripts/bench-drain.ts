// npm run bench:drain: time and requests of the forecast of 500 nodes with 15,000 pods, whose budgets are in 50 namespaces or in one.

import { performance } from 'node:perf_hooks';
import type { Cluster } from '../src/kube/cluster.ts';
import type { KubeObject } from '../src/kube/object.ts';
import { drainForecaster } from '../src/maintenance/forecast/forecast.ts';
import { readClusterView } from '../src/maintenance/forecast/read-cluster-view.ts';
import { drainBudget, drainNode, drainPod, scaled } from '../test/support/drain-objects.ts';

const [NODES, PODS, REPLICAS] = [500, 15_000, 10];
const APPS = PODS / REPLICAS;
const MOST_CPU_MS = 3_000;
const of = <T>(count: number, make: (i: number) => T): readonly T[] => Array.from({ length: count }, (_, i) => make(i));

/** Each fiftieth budget allows no eviction at any scale. */
function budgetOf(i: number, namespace: string): KubeObject {
  const maxUnavailable = i % 50 === 0 ? 0 : 1;
  const counts = { disruptionsAllowed: maxUnavailable, currentHealthy: REPLICAS, desiredHealthy: REPLICAS - maxUnavailable };
  return {
    ...drainBudget(`app-${i}`, `app-${i}`, { maxUnavailable }, namespace),
    status: { ...counts, expectedPods: REPLICAS, observedGeneration: 1 },
  };
}

function objectsIn(namespaces: number): Readonly<Record<string, readonly KubeObject[]>> {
  const namespaceOf = (app: number): string => `team-${app % namespaces}`;
  return {
    Node: of(NODES, (i) => drainNode(`n${i}`, { labels: { 'topology.kubernetes.io/zone': 'abc'[i % 3] as string } })),
    PodDisruptionBudget: of(APPS, (i) => budgetOf(i, namespaceOf(i))),
    Pod: of(PODS, (i) => {
      const number = Math.floor(i / REPLICAS);
      const app = `app-${number}`;
      const requests = { cpu: '50m', memory: '64Mi' };
      return drainPod(`pod-${i}`, `n${i % NODES}`, { of: `ReplicaSet/${app}`, app, namespace: namespaceOf(number), requests });
    }),
  };
}

async function measure(namespaces: number) {
  const objects = objectsIn(namespaces);
  let requests = 0;
  const counted = async <T>(answer: T): Promise<T> => {
    requests++;
    return answer;
  };
  const cluster: Pick<Cluster, 'version' | 'list' | 'get'> = {
    version: () => counted('v1.36.2'),
    list: ({ kind }) => counted({ items: objects[kind] ?? [], resourceVersion: '1' }),
    get: ({ kind, name }) => counted(scaled(`${kind}/${name}`, REPLICAS)),
  };
  const cpu = process.cpuUsage();
  const start = performance.now();
  const view = await readClusterView(cluster as Cluster);
  const read = performance.now();
  const rules = { ignoreDaemonSets: true, deleteEmptyDirData: false, force: false, gracePeriodSeconds: null, selects: () => true };
  const names = of(NODES, (i) => `n${i}`);
  const { nodes, budgets, atOnce } = drainForecaster(view)(names, rules, null);
  const end = performance.now();
  return {
    namespaces,
    budgets: budgets.length,
    blocked: nodes.filter(({ state }) => state === 'blocked').length,
    'at once': atOnce,
    'read ms': Math.round(read - start),
    'forecast ms': Math.round(end - read),
    'CPU ms': Math.round(process.cpuUsage(cpu).user / 1000),
    requests,
  };
}

const rows = [await measure(50), await measure(1)];
console.log(`${NODES} nodes, ${PODS} pods:`);
console.table(rows);
if (rows.some((row) => row['CPU ms'] > MOST_CPU_MS)) {
  console.error(`a forecast took more than ${MOST_CPU_MS / 1000} s of CPU time`);
  process.exitCode = 1;
}
