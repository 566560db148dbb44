// npm run bench:controller: requests, reconcile durations, memory and CPU time of the controller with 20 rollouts.
//
// BENCH_NODES=1000        stand-in nodes at the API server double, over HTTPS, in a process of its own
// BENCH_SIMULATED=5000    nodes of the simulation: the same controller on a cluster in memory and a simulated clock
// BENCH_ONLY=             one of: server, simulation
import { fork, spawnSync } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/base/adapters/clock-system.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { virtualClock } from '../../test/support/virtual-clock.ts';
import { measure } from './measure.ts';
import { benchCluster, runNodes } from './world.ts';

const { BENCH_NODES = 1_000, BENCH_SIMULATED = 5_000, BENCH_ONLY } = process.env;

async function benchServer(): Promise<void> {
  const nodes = Number(BENCH_NODES);
  const server = fork(fileURLToPath(new URL('server.ts', import.meta.url)), [String(nodes)]);
  process.once('exit', () => server.kill());
  const [text] = (await Promise.race([
    once(server, 'message'),
    once(server, 'exit').then(() => Promise.reject(new Error('the API server double ended'))),
  ])) as [string];
  const cluster = kubeCluster({ kubeconfig: { text, file: 'admin.conf' }, env: {} });
  await measure('over HTTPS', cluster, systemClock, { nodes, minReadySeconds: 1 });
}

async function benchSimulation(): Promise<void> {
  const nodes = Number(BENCH_SIMULATED);
  const clock = virtualClock(new Date());
  const { cluster } = await benchCluster(nodes, clock);
  const { signal } = new AbortController();
  // Each stand-in agent waits with this signal.
  setMaxListeners(0, signal);
  void runNodes(cluster, nodes, clock, signal);
  await measure('simulated', cluster, clock, { nodes, minReadySeconds: 30 });
}

const parts: Readonly<Record<string, () => Promise<void>>> = { server: benchServer, simulation: benchSimulation };
if (BENCH_ONLY !== undefined) {
  await parts[BENCH_ONLY]?.();
  process.exit();
}
console.log(`${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}, Node.js ${process.version}`);
// Each in its own process, so that its memory is its own.
for (const name of Object.keys(parts)) {
  const { status } = spawnSync(process.execPath, [...process.execArgv, fileURLToPath(import.meta.url)], {
    stdio: 'inherit',
    env: { ...process.env, BENCH_ONLY: name },
  });
  if (status !== 0) process.exitCode = 1;
}
