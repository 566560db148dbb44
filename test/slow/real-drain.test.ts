import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { readDrainPod } from '../../src/maintenance/forecast/drain-pod.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer, whyNoControlPlane } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { runStandInNodes } from '../support/stand-in-nodes.ts';
import { untilTrue } from '../support/until-true.ts';

const TITLE = 'drain against kube-apiserver and the controllers of kube-controller-manager';
const binaries = findRealBinaries();
const missing = whyNoControlPlane();
const POD = { apiVersion: 'v1', kind: 'Pod' } as const;
const BUDGET = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', namespace: 'default', name: 'web' } as const;
const nodeRef = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });

describe.skipIf(requirement(TITLE, typeof binaries === 'string' ? binaries : missing))(TITLE, () => {
  let server: RealApiServer;
  let cluster: Cluster;
  let directory: string;
  let access: readonly string[];
  const stop = new AbortController();
  let standIn: Promise<void> = Promise.resolve();

  beforeAll(async () => {
    server = await startRealApiServer(binaries as Exclude<typeof binaries, string>, { withControllerManager: true });
    const text = server.adminKubeconfig();
    cluster = kubeCluster({ kubeconfig: { text, file: 'admin.conf' } });
    directory = await mkdtemp(join(tmpdir(), 'kubeletadm-real-drain-'));
    await writeFile(join(directory, 'admin.conf'), text);
    access = ['--kubeconfig', join(directory, 'admin.conf')];
    for (const name of ['n1', 'n2']) await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
    await cluster.patch(nodeRef('n2'), 'merge', { spec: { unschedulable: true } });
    standIn = runStandInNodes(cluster, ['n1', 'n2'], stop.signal);
    await cluster.create(deployment(2));
    await cluster.create(budget(2));
    await untilTrue(async () => (await podsOf(cluster)).filter(({ isReady, node }) => isReady && node === 'n1').length === 2, 60_000);
    await cluster.patch(nodeRef('n2'), 'merge', { spec: { unschedulable: null } });
  }, 180_000);

  afterAll(async () => {
    stop.abort();
    await standIn;
    await cluster?.close();
    await server?.close();
    if (directory) await rm(directory, { recursive: true });
  });

  const status = async () => (await cluster.get(BUDGET))?.status as unknown as { disruptionsAllowed: number; currentHealthy: number };

  it('foretells that a budget of all replicas never allows the drain, and cordons nothing', async () => {
    await untilTrue(async () => (await status())?.currentHealthy === 2, 60_000);
    const { code, stderr } = await runCommand(['drain', 'n1', ...access]);
    expect([code, stderr]).toEqual([
      3,
      expect.stringContaining('PodDisruptionBudget default/web never allows an eviction: it needs 2 healthy pods of 2'),
    ]);
    const node = (await cluster.get(nodeRef('n1'))) as KubeObject;
    expect((node.spec as { unschedulable?: boolean }).unschedulable).toBeUndefined();
    expect(node.metadata.annotations?.['kubeletadm.dev/cordoned-by']).toBeUndefined();
    // The API server agrees: it refuses the eviction.
    const [pod] = await podsOf(cluster);
    expect(await cluster.evict({ namespace: 'default', name: pod?.name.split('/')[1] ?? '', uid: pod?.uid ?? '' })).toMatchObject({
      kind: 'refused',
      httpStatus: 429,
      why: expect.stringContaining('needs 2 healthy pods and has 2 currently'),
    });
  }, 120_000);

  it('evicts one pod after the other where the budget allows one, and never more', async () => {
    await cluster.patch(BUDGET, 'merge', { spec: { minAvailable: 1 } });
    await untilTrue(async () => (await status()).disruptionsAllowed === 1, 60_000);
    const samples: number[] = [];
    const sampling = new AbortController();
    const sampler = (async () => {
      while (!sampling.signal.aborted) {
        samples.push((await podsOf(cluster)).filter(({ isReady, isTerminating }) => isReady && !isTerminating).length);
        await sleep(100);
      }
    })();
    const drained = await runCommand(['drain', 'n1', '-o', 'json', '--node-timeout', '2m', ...access]);
    sampling.abort();
    await sampler;
    expect([drained.code, drained.stderr]).toEqual([0, expect.stringContaining('web')]);
    const { nodes } = JSON.parse(drained.stdout) as {
      nodes: readonly { outcome: string; pods: readonly { refusals: number }[]; requests: number }[];
    };
    expect(nodes).toMatchObject([{ outcome: 'drained' }]);
    // The second eviction was refused until the first pod was replaced.
    expect(nodes[0]?.pods.map(({ refusals }) => refusals > 0)).toContain(true);
    expect(samples.length).toBeGreaterThan(10);
    expect(Math.min(...samples)).toBe(1);
    expect((await podsOf(cluster)).map(({ node }) => node)).toEqual(['n2', 'n2']);
    const conditions = (await cluster.get(nodeRef('n1')))?.status as unknown as {
      conditions: readonly { type: string; status: string; reason: string }[];
    };
    expect(conditions.conditions).toContainEqual(expect.objectContaining({ type: 'Drained', status: 'True', reason: 'DrainCompleted' }));
    expect(await runCommand(['uncordon', 'n1', ...access])).toMatchObject({ code: 0, stdout: 'n1: uncordoned\n' });
    const after = (await cluster.get(nodeRef('n1'))) as KubeObject;
    expect((after.spec as { unschedulable?: boolean }).unschedulable).toBeUndefined();
    expect(JSON.stringify(after.status)).not.toContain('Drained');
  }, 240_000);

  it('evicts more pods than it evicts at the same time', async () => {
    await cluster.delete(BUDGET);
    await cluster.patch(nodeRef('n1'), 'merge', { spec: { unschedulable: true } });
    await cluster.patch({ apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'default', name: 'web' }, 'merge', {
      spec: { replicas: 20 },
    });
    await untilTrue(async () => (await podsOf(cluster)).filter(({ isReady, node }) => isReady && node === 'n2').length === 20, 60_000);
    await cluster.patch(nodeRef('n1'), 'merge', { spec: { unschedulable: null } });
    const { code, stdout, stderr } = await runCommand(['drain', 'n2', '-o', 'json', '--node-timeout', '1m', ...access]);
    expect([code, stderr]).toEqual([0, expect.anything()]);
    expect(JSON.parse(stdout).nodes[0].pods).toHaveLength(20);
    expect((await podsOf(cluster)).filter(({ node }) => node === 'n2')).toEqual([]);
    expect(await runCommand(['uncordon', 'n2', ...access])).toMatchObject({ code: 0 });
  }, 180_000);
});

async function podsOf(cluster: Cluster) {
  return (await cluster.list({ ...POD, namespace: 'default' })).items.map(readDrainPod);
}

function deployment(replicas: number): KubeObject {
  const labels = { app: 'web' };
  // Without a kubelet, nothing ends a grace period.
  const spec = {
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    containers: [{ name: 'web', image: 'example.org/web:1' }],
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  };
}

function budget(minAvailable: number): KubeObject {
  const { name, namespace, apiVersion, kind } = BUDGET;
  return { apiVersion, kind, metadata: { name, namespace }, spec: { minAvailable, selector: { matchLabels: { app: 'web' } } } };
}
