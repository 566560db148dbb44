// npm run bench:health: good configurations on a node whose pods change all the time; no trial may fail.
//
// BENCH_CHANGES=500     configurations
// BENCH_TRIAL=30        seconds of a trial
// BENCH_SEED=1          start of the random numbers
//
// The node and the API server are in memory, and the time is simulated: the agent is the real one.
import { seededRandom } from '../../test/support/seeded-random.ts';
import { virtualClock } from '../../test/support/virtual-clock.ts';
import { newWorld, payload } from '../../test/unit/dynamic/agent/world.ts';
import { churnOf, MANIFESTS } from './churn.ts';

const CHANGES = Number(process.env.BENCH_CHANGES ?? 500);
const TRIAL_SECONDS = Number(process.env.BENCH_TRIAL ?? 30);
const SEED = Number(process.env.BENCH_SEED ?? 1);
const LONGEST_MS = 3_600_000;
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';

const random = seededRandom(SEED);
const between = (least: number, most: number): number => least + Math.floor(random() * (most - least + 1));
/** Fields with values that no pod of the bench depends on. */
const FIELDS: readonly (() => string)[] = [
  () => `maxPods: ${between(60, 250)}`,
  () => `podPidsLimit: ${between(500, 5000)}`,
  () => `systemReserved: {cpu: ${between(50, 400)}m, memory: ${between(100, 500)}Mi}`,
  () => `kubeReserved: {cpu: ${between(50, 400)}m, ephemeral-storage: ${between(1, 5)}Gi}`,
  () => `evictionHard: {memory.available: ${between(50, 300)}Mi, nodefs.available: ${between(1, 10)}%}`,
  () => `clusterDNS: [169.254.20.${between(1, 250)}]`,
  () => `containerLogMaxSize: ${between(5, 50)}Mi`,
  () => `imageGCHighThresholdPercent: ${between(85, 99)}`,
  () => `registryPullQPS: ${between(5, 50)}`,
  () => `eventRecordQPS: ${between(10, 100)}`,
  () => `resolvConf: ${between(0, 1) === 0 ? '""' : '/run/systemd/resolve/resolv.conf'}`,
  () => `shutdownGracePeriod: ${between(30, 90)}s\nshutdownGracePeriodCriticalPods: 10s`,
];

const clock = virtualClock();
const local = payload(110, `staticPodPath: ${MANIFESTS}\nclusterDNS: [10.96.0.10]\n`);
const world = newWorld({ pods: true, clock, random, local, timing: { trialMs: TRIAL_SECONDS * 1000 } });
const content = 'nameserver 10.0.0.1\n';
await world.host.perform([{ kind: 'write-file', path: '/run/systemd/resolve/resolv.conf', mode: 0o644, owner: 'root:root', content }]);
await world.cluster.create({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'kube-dns', namespace: 'kube-system' },
  spec: { clusterIP: '10.96.0.10', ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] },
});
const churn = churnOf(world, random);
await churn.start();
world.start();

const started = performance.now();
let [reverts, refusals, probed, slowest] = [0, 0, 0, 0];
for (let i = 0; i < CHANGES; i++) {
  const name = `change-${i}`;
  const fields = FIELDS.filter(() => random() < 0.25).map((field) => field());
  // A number of its own, so that no configuration was tried before.
  await world.push(name, `${OVERLAY}nodeStatusMaxImages: ${i + 1}\n${fields.map((field) => `${field}\n`).join('')}`, { immutable: true });
  const begin = clock.elapsedMs;
  await world.assign(name);
  const { state, isProbed } = await settled(name);
  const took = clock.elapsedMs - begin;
  if (isProbed) probed++;
  if (state === 'good') slowest = Math.max(slowest, took);
  if (state === 'fallen-back') reverts++;
  if (state === 'rejected') refusals++;
  if (state !== 'good')
    process.stdout.write(
      `${state} after ${Math.round(took / 1000)} s: ${fields.join(', ')}: ${String((await world.condition()).message)}\n`,
    );
}
churn.stop();
await world.stop();

process.stdout.write(
  `${CHANGES} changes in ${Math.round((performance.now() - started) / 1000)} s (${(clock.elapsedMs / 3_600_000).toFixed(1)} h of the node), seed ${SEED}: ${reverts} reverts, ${refusals} refusals before the change, ${probed} trials with a probe pod, slowest trial ${Math.round(slowest / 1000)} s\n`,
);
for (const [kind, count] of churn.counts) process.stdout.write(`     ${kind}: ${count}\n`);
for (const error of new Set(churn.errors)) process.stdout.write(`error of the simulation: ${error}\n`);
process.exit(reverts > 0 || refusals > 0 || churn.errors.length > 0 ? 1 : 0);

/** Waits until the agent has decided about an assignment. */
async function settled(name: string): Promise<{ readonly state: string; readonly isProbed: boolean }> {
  const end = clock.elapsedMs + LONGEST_MS;
  for (let isProbed = false; clock.elapsedMs < end; await clock.sleep(1_000)) {
    const { state } = world;
    if (state === null || state.phase === 'local' || state.assigned.identity.name !== name) continue;
    isProbed ||= state.baseline?.noProbe === null;
    if (state.phase !== 'trial') return { state: state.phase, isProbed };
  }
  throw new Error(`no decision about ${name}: ${JSON.stringify(await world.condition())}`);
}
