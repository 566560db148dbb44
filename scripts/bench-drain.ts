// npm run bench:drain: time and requests of the forecast of 500 nodes with 15,000 pods, whose budgets are in 50 namespaces or in one,
// and the requests of a run that drains these nodes for a change.

import { performance } from 'node:perf_hooks';
import { inParallel } from '../src/base/in-parallel.ts';
import type { Cluster } from '../src/kube/cluster.ts';
import type { KubeObject } from '../src/kube/object.ts';
import { plannedDrains } from '../src/maintenance/drain/planned-drains.ts';
import { whileDrained } from '../src/maintenance/drain/while-drained.ts';
import { drainForecaster } from '../src/maintenance/forecast/forecast.ts';
import { readClusterView } from '../src/maintenance/forecast/read-cluster-view.ts';
import { isCordoned } from '../src/maintenance/node-hold.ts';
import { drainBudget, drainNode, drainPod, scaled } from '../test/support/drain-objects.ts';
import { virtualClock } from '../test/support/virtual-clock.ts';
import { drainCluster } from './drain-cluster.ts';

const [NODES, PODS, REPLICAS] = [500, 15_000, 10];
const APPS = PODS / REPLICAS;
const MOST_CPU_MS = 3_000;
const MOST_REQUESTS = 500;
const of = <T>(count: number, make: (i: number) => T): readonly T[] => Array.from({ length: count }, (_, i) => make(i));

/** Each fiftieth budget allows no eviction at any scale, if `hasDeadlocks`. */
function budgetOf(i: number, namespace: string, hasDeadlocks: boolean): KubeObject {
  const maxUnavailable = hasDeadlocks && i % 50 === 0 ? 0 : 1;
  const counts = { disruptionsAllowed: maxUnavailable, currentHealthy: REPLICAS, desiredHealthy: REPLICAS - maxUnavailable };
  return {
    ...drainBudget(`app-${i}`, `app-${i}`, { maxUnavailable }, namespace),
    status: { ...counts, expectedPods: REPLICAS, observedGeneration: 1 },
  };
}

function objectsIn(namespaces: number, hasDeadlocks = true): Readonly<Record<string, readonly KubeObject[]>> {
  const namespaceOf = (app: number): string => `team-${app % namespaces}`;
  return {
    Node: of(NODES, (i) => drainNode(`n${i}`, { labels: { 'topology.kubernetes.io/zone': 'abc'[i % 3] as string } })),
    PodDisruptionBudget: of(APPS, (i) => budgetOf(i, namespaceOf(i), hasDeadlocks)),
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

/** The requests of a run that drains all nodes, 10 at once, as `apply` does around the change of each host. */
async function measureRun() {
  const clock = virtualClock();
  const controllers = of(APPS, (i) => {
    const controller = scaled(`ReplicaSet/app-${i}`, REPLICAS, `team-${i % 50}`);
    return { ...controller, spec: { replicas: REPLICAS, selector: { matchLabels: { app: `app-${i}` } } } };
  });
  const { cluster, requests } = drainCluster({ ...objectsIn(50, false), ReplicaSet: controllers }, clock);
  const self = { name: 'bench@host', id: 1, machine: 'a', isRunning: () => true };
  const run = { run: 'run-1', self, clock, reason: 'a benchmark' };
  const ports = { cluster, run, signal: new AbortController().signal, reporter: { report: () => undefined } };
  const policy = { isAllowed: true, isForced: false, timeoutMs: 600_000, settleMs: 120_000 };
  const planned = plannedDrains(run);
  const names = of(NODES, (i) => `n${i}`);
  await planned.add(cluster, names);
  await inParallel(names, 10, async (node) => {
    await whileDrained(ports, { node, impact: 'drain', isRestored: () => true }, policy, () => clock.sleep(5_000));
    await planned.remove(node);
  });
  const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' });
  const left = items.filter((node) => isCordoned(node) || JSON.stringify(node.status).includes('Maintenance'));
  if (left.length > 0) throw new Error(`${left.length} nodes are not in service`);
  return { minutes: Math.round(clock.elapsedMs / 60_000), requests };
}

const rows = [await measure(50), await measure(1)];
console.log(`${NODES} nodes, ${PODS} pods:`);
console.table(rows);
if (rows.some((row) => row['CPU ms'] > MOST_CPU_MS)) {
  console.error(`a forecast took more than ${MOST_CPU_MS / 1000} s of CPU time`);
  process.exitCode = 1;
}
const { requests, minutes } = await measureRun();
console.log(`drain of ${NODES} nodes for a change, 10 at once, in ${minutes} simulated minutes; requests for each node:`);
const all = [...requests].sort(([, a], [, b]) => b - a);
const perNode = (count: number): number => Math.round((count / NODES) * 10) / 10;
console.table(Object.fromEntries(all.map(([request, count]) => [request, perNode(count)])));
const total = perNode(all.reduce((sum, [, count]) => sum + count, 0));
console.log(`${total} requests for each node with ${PODS / NODES} pods`);
if (total > MOST_REQUESTS) {
  console.error(`more than ${MOST_REQUESTS} requests for each node`);
  process.exitCode = 1;
}
