import { performance } from 'node:perf_hooks';
import type { Clock } from '../../src/base/clock.ts';
import { readNodeConfig } from '../../src/dynamic/status/node-config.ts';
import { AGENT_NAMESPACE } from '../../src/kube/agent-namespace.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { Rollout } from '../../src/rollouts/api/rollout.ts';
import { ControllerMetrics } from '../../src/rollouts/controller/metrics.ts';
import { runController } from '../../src/rollouts/controller/run-controller.ts';
import { createRollouts, groupOf, maxPodsOf, ROLLOUTS } from './world.ts';

const MOST_P99_MS = 1_000;
const MOST_MINUTES = 15;

/** Measures in real time also on a simulated clock: from the beginning of a step, or the end of the previous decision. */
class Measured extends ControllerMetrics {
  readonly durations: number[] = [];
  steps = 0;
  rss = 0;
  heap = 0;
  #last = 0;
  readonly #onComplete: () => void;

  constructor(onComplete: () => void) {
    super();
    this.#onComplete = onComplete;
  }

  override show(rollouts: readonly Pick<Rollout, 'name' | 'status'>[]): void {
    super.show(rollouts);
    this.steps++;
    const { rss, heapUsed } = process.memoryUsage();
    this.rss = Math.max(this.rss, rss);
    this.heap = Math.max(this.heap, heapUsed);
    if (rollouts.length === ROLLOUTS && rollouts.every(({ status }) => status.phase === 'Complete')) this.#onComplete();
    this.#last = performance.now();
  }

  override reconciled(seconds: number): void {
    super.reconciled(seconds);
    this.durations.push(performance.now() - this.#last);
    this.#last = performance.now();
  }
}

/** Runs the controller until all rollouts are complete, and prints its figures. Sets the exit code if a target is missed. */
export async function measure(title: string, cluster: Cluster, clock: Clock, options: { nodes: number; minReadySeconds: number }) {
  await createRollouts(cluster, options.minReadySeconds);
  const stop = new AbortController();
  const metrics = new Measured(() => stop.abort(new Error('complete')));
  const { cluster: counted, requests } = counting(cluster);
  const warnings = new Set<string>();
  const ports = {
    cluster: counted,
    metrics,
    clock,
    self: { name: 'bench@host', id: 1, machine: 'a', isRunning: () => true },
    signal: stop.signal,
    random: Math.random,
    reporter: {
      report: ({ level, message = '' }: { level: string; message?: string }) => void (level === 'warning' && warnings.add(message)),
    },
    web: { get: () => Promise.reject(new Error('no rollout has a query')) },
  };
  void clock.sleep(MOST_MINUTES * 60_000, stop.signal).then(
    () => stop.abort(new Error('too slow')),
    () => undefined,
  );
  const [begun, cpu, start] = [clock.now().getTime(), process.cpuUsage(), performance.now()];
  await runController(ports, { namespace: AGENT_NAMESPACE, identity: 'bench' });
  const { user, system } = process.cpuUsage(cpu);
  const sorted = metrics.durations.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round((sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN) * 10) / 10;
  console.log(
    `\n${title}: ${options.nodes} nodes, ${ROLLOUTS} rollouts, at most 10% unavailable, minReadySeconds ${options.minReadySeconds}`,
  );
  console.table({
    'time of the rollouts': `${((clock.now().getTime() - begun) / 1000).toFixed(0)} s`,
    'real time': `${((performance.now() - start) / 1000).toFixed(1)} s`,
    'CPU time': `${((user + system) / 1e6).toFixed(1)} s`,
    'steps, decisions': `${metrics.steps}, ${sorted.length}`,
    'reconcile p50, p99, max': `${at(0.5)}, ${at(0.99)}, ${at(1)} ms`,
    'highest RSS, heap': `${mib(metrics.rss)}, ${mib(metrics.heap)} MiB`,
  });
  printRequests(requests, options.nodes);
  for (const warning of warnings) console.log(`warning: ${warning}`);
  const wrong = await wrongNodes(cluster, options.nodes);
  if (wrong.length > 0) miss(`${wrong.length} nodes do not run the configuration of their rollout: ${wrong.slice(0, 5).join(', ')}`);
  if (!(at(0.99) < MOST_P99_MS)) miss(`p99 of a reconcile is not below ${MOST_P99_MS} ms`);
}

function miss(message: string): void {
  console.error(message);
  process.exitCode = 1;
}

const mib = (bytes: number): number => Math.round(bytes / 2 ** 20);

function printRequests(requests: ReadonlyMap<string, number>, nodes: number): void {
  const all = [...requests].sort(([, a], [, b]) => b - a);
  const perNode = (count: number): number => Math.round((count / nodes) * 100) / 100;
  console.log('requests, in total and for each changed node:');
  console.table(Object.fromEntries(all.map(([request, total]) => [request, { total, 'per node': perNode(total) }])));
  console.log(`${perNode(all.reduce((sum, [, count]) => sum + count, 0))} requests for each changed node`);
}

/** Counts requests by verb and kind. */
function counting(cluster: Cluster): { readonly cluster: Cluster; readonly requests: ReadonlyMap<string, number> } {
  const requests = new Map<string, number>();
  const verbs = ['get', 'list', 'watch', 'getRaw', 'create', 'update', 'patch', 'delete', 'evict', 'version'];
  const counted = new Proxy(cluster, {
    get: (target, verb) => {
      const method: unknown = Reflect.get(target, verb);
      if (typeof method !== 'function' || !verbs.includes(String(verb))) return method;
      return (...words: readonly unknown[]) => {
        const { kind = 'of a kubelet' } = Object(words[0]) as { kind?: string };
        const request = `${String(verb)} ${kind}`;
        requests.set(request, (requests.get(request) ?? 0) + 1);
        return Reflect.apply(method, target, words);
      };
    },
  });
  return { cluster: counted, requests };
}

/** Nodes that do not report the configuration of their rollout. */
async function wrongNodes(cluster: Cluster, nodes: number): Promise<readonly string[]> {
  const [found, maps] = await Promise.all([
    cluster.list({ apiVersion: 'v1', kind: 'Node' }),
    cluster.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE }),
  ]);
  const byName = new Map(found.items.map((node) => [node.metadata.name, readNodeConfig(node)]));
  const text = new Map(maps.items.map(({ metadata, data }) => [metadata.name, JSON.stringify(data)]));
  return Array.from({ length: nodes }, (_, i) => i).flatMap((i) => {
    const active = byName.get(`n${i}`)?.status?.active?.name ?? '';
    const isRight = active.startsWith(`${groupOf(i)}-`) && text.get(active)?.includes(`\\"maxPods\\": ${maxPodsOf(i)}`);
    return isRight === true ? [] : [`n${i}`];
  });
}
