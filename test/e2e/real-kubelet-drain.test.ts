import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { imageArchive } from '../support/container-images.ts';
import { adoptCluster } from '../support/first-node.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { whyNoKubelet } from '../support/real-apiserver.ts';
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const missing = whyNoKubelet() ?? whyNoLabHosts();
const PAUSE = 'registry.k8s.io/pause:3.10.2';
/** The container is the first process of its namespace and has no handler for SIGTERM: only SIGKILL ends it. */
const GRACE_SECONDS = 6;
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node1' } as const;
const pod = (name: string, namespace = 'default') => ({ apiVersion: 'v1', kind: 'Pod', namespace, name });
const STATIC = pod('static-web-node1', 'kube-system');

/** Pods of a real kubelet with containerd. No scheduler runs: new pods of controllers stay without a node. */
describe.skipIf(requirement('drain of a real kubelet', missing))('drain of a real kubelet', () => {
  let cluster: Cluster;
  let lab: LabHosts;
  let close: RealCluster['close'] | undefined;
  let access: readonly string[];
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-real-kubelet-drain-'));

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(1, directory, CONFIG));
    access = ['--kubeconfig', join(directory, 'admin.conf')];
    const images = ['3.6', '3.8', '3.10.2'].map((tag) => `registry.k8s.io/pause:${tag}`);
    lab.importImage('node1', imageArchive({ names: images, programs: ['/bin/sleep'], entrypoint: ['sleep', '2147483647'] }));
    lab.run('node1', 'mkdir -p /etc/kubernetes/manifests');
    const joined = await runCommand([...(await adoptCluster(directory)), '--ssh-config', lab.sshConfig, '--host', 'node1']);
    expect(joined.code, joined.stderr).toBe(0);
    lab.run('node1', `cat > /etc/kubernetes/manifests/static-web.yaml <<'X'\n${STATIC_POD}X`);
    // The controllers adopt these pods.
    for (const name of ['web', 'logs']) await cluster.create(podOf(name, 'node1'));
    await cluster.create({ ...controller('ReplicaSet', 'web'), spec: { replicas: 1, ...template('web') } });
    await cluster.create({ ...controller('DaemonSet', 'logs'), spec: { updateStrategy: { type: 'OnDelete' }, ...template('logs') } });
    for (const name of ['web', 'logs'])
      await untilTrue(
        async () => (await runs(pod(name))) && (await cluster.get(pod(name)))?.metadata.ownerReferences !== undefined,
        60_000,
      );
    await untilTrue(() => runs(STATIC), 60_000);
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const statusOf = async (ref: ReturnType<typeof pod>): Promise<PodStatus> => ((await cluster.get(ref))?.status ?? {}) as PodStatus;
  const runs = async (ref: ReturnType<typeof pod>): Promise<boolean> => (await statusOf(ref)).phase === 'Running';
  const identity = async (ref: ReturnType<typeof pod>) => {
    const [container] = (await statusOf(ref)).containerStatuses ?? [];
    return { uid: (await cluster.get(ref))?.metadata.uid, id: container?.containerID, restarts: container?.restartCount };
  };
  const tasks = (): string => lab.run('node1', 'ctr -n k8s.io tasks ls');
  const isCordoned = async (): Promise<boolean> =>
    ((await cluster.get(NODE))?.spec as { readonly unschedulable?: boolean } | undefined)?.unschedulable === true;
  const condition = async (type: string): Promise<unknown> => {
    const { conditions = [] } = ((await cluster.get(NODE))?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
    return conditions.find((one) => one.type === type)?.status;
  };

  it('ends a pod after its grace period, and leaves static pods and those of DaemonSets', async () => {
    const kept = await Promise.all([identity(STATIC), identity(pod('logs'))]);
    const container = String((await identity(pod('web'))).id).replace('containerd://', '');
    expect(tasks()).toContain(container);
    const began = Date.now();
    const draining = runCommand(['drain', 'node1', '--ignore-daemonsets', ...access]);
    await untilTrue(async () => (await cluster.get(pod('web')))?.metadata.deletionTimestamp !== undefined, 60_000);
    const evicted = Date.now();
    // Still runs: the kubelet waits for the grace period.
    expect(tasks()).toContain(container);
    const { code, stderr } = await draining;
    expect(code, stderr).toBe(0);
    expect(Date.now() - evicted).toBeGreaterThanOrEqual((GRACE_SECONDS - 1) * 1000);
    expect(Date.now() - began).toBeLessThan((GRACE_SECONDS + 30) * 1000);
    expect(await cluster.get(pod('web'))).toBeNull();
    expect(tasks()).not.toContain(container);
    expect(await Promise.all([identity(STATIC), identity(pod('logs'))])).toEqual(kept);
    expect(await Promise.all([isCordoned(), condition('Drained'), condition('Ready')])).toEqual([true, 'True', 'True']);
    // Its controller has created another pod, which waits for a node.
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'default' });
    expect(items.filter(isPendingWeb)).toHaveLength(1);

    expect((await runCommand(['uncordon', 'node1', ...access])).code).toBe(0);
    expect(await isCordoned()).toBe(false);
  }, 180_000);

  it('drains a node for a change that needs it, and uncordons it when the change is proven', async () => {
    await cluster.create(podOf('web-2', 'node1', 'web'));
    await untilTrue(() => runs(pod('web-2')), 60_000);
    const kept = await Promise.all([identity(STATIC), identity(pod('logs'))]);
    const change = ['--set', 'topologyManagerScope=pod', '--allow', 'drain', '--ssh-config', lab.sshConfig, '--host', 'node1'];
    const { code, stdout, stderr } = await runCommand(['upgrade', 'node', ...change, ...access]);
    expect(code, stdout + stderr).toBe(0);
    expect(stderr, stdout).toContain('drained: 1 pod has left');
    expect(await cluster.get(pod('web-2'))).toBeNull();
    expect(await Promise.all([identity(STATIC), identity(pod('logs'))])).toEqual(kept);
    expect(await Promise.all([isCordoned(), condition('Ready')])).toEqual([false, 'True']);
    expect(lab.run('node1', 'cat /var/lib/kubelet/config.yaml')).toContain('topologyManagerScope: pod');
  }, 300_000);
});

interface PodStatus {
  readonly phase?: string;
  readonly containerStatuses?: readonly { readonly containerID?: string; readonly restartCount?: number }[];
}

function isPendingWeb({ metadata, spec }: KubeObject): boolean {
  return metadata.labels?.app === 'web' && (spec as { readonly nodeName?: string }).nodeName === undefined;
}

function podSpec(): JsonObject {
  return {
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    tolerations: [{ operator: 'Exists' }],
    containers: [{ name: 'c', image: PAUSE }],
  };
}

function podOf(name: string, nodeName: string, app = name): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app } },
    spec: { ...podSpec(), nodeName },
  };
}

function controller(kind: string, name: string): KubeObject {
  return { apiVersion: 'apps/v1', kind, metadata: { name, namespace: 'default' } };
}

function template(app: string): JsonObject {
  return { selector: { matchLabels: { app } }, template: { metadata: { labels: { app } }, spec: podSpec() } };
}

const STATIC_POD = `apiVersion: v1
kind: Pod
metadata: {name: static-web, namespace: kube-system}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: ${PAUSE}}
`;

const CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
