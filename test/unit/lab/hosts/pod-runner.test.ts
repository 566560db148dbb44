import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { podLosses, runningPods } from '../../../../src/kubelet/health/baseline.ts';
import { PROBE_NAME, probePod, readProbe } from '../../../../src/kubelet/health/probe-pod.ts';
import { podsOfNode, readPod } from '../../../../src/kubelet/workload/pod.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakePods } from '../../../support/fake-pods.ts';

const NODE = 'node-1';
const MANIFESTS = '/etc/kubernetes/manifests';
const CONFIG = { staticPodPath: MANIFESTS, clusterDNS: ['10.96.0.10'], resolvConf: '/etc/resolv.conf', maxPods: 110 };
const PROBE = JSON.stringify(probePod(PROBE_NAME, 'registry.k8s.io/pause:3.10'));
const PROBE_REF = { apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system', name: `${PROBE_NAME}-${NODE}` };

function newNode() {
  const clock = fakeClock();
  const cluster = fakeCluster({ now: () => clock.now(), objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } }] });
  const files = new Map([['/etc/resolv.conf', '']]);
  const pods = fakePods({
    cluster,
    nodeName: NODE,
    now: () => clock.now(),
    files: {
      exists: (path) => files.has(path),
      texts: (directory) => new Map([...files].filter(([path]) => path.startsWith(`${directory}/`))),
    },
  });
  const all = async () => (await cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: podsOfNode(NODE) })).items;
  return {
    cluster,
    files,
    pods,
    all,
    start: async (config: JsonObject) => {
      pods.start(config);
      await pods.settled();
    },
    add: async (name: string, spec: JsonObject = {}) => {
      clock.advance(1_000);
      const containers = [{ name: 'main', image: 'registry.k8s.io/pause:3.10' }];
      const metadata = { name, namespace: 'default' };
      await cluster.create({ apiVersion: 'v1', kind: 'Pod', metadata, spec: { nodeName: NODE, containers, ...spec } });
      await pods.settled();
    },
    put: async (name: string, text: string | null) => {
      if (text === null) files.delete(`${MANIFESTS}/${name}`);
      else files.set(`${MANIFESTS}/${name}`, text);
      pods.filesChanged();
      await pods.settled();
    },
    states: async () => Object.fromEntries((await all()).map((pod) => [pod.metadata.name, stateOf(pod)])),
    probe: async () => readProbe(await cluster.get(PROBE_REF)),
    events: async () =>
      (await cluster.list({ apiVersion: 'v1', kind: 'Event' })).items.map(({ reason, message }) => `${reason}: ${message}`),
  };
}

function stateOf(pod: KubeObject): string {
  const { phase, reason, waiting } = readPod(pod);
  return [phase, reason, ...waiting.map((container) => container.reason)].filter(Boolean).join(' ');
}

const requests = (amounts: JsonObject) => ({ containers: [{ name: 'main', image: 'x', resources: { requests: amounts } }] });

describe('the pods of a stand-in kubelet', () => {
  it('run after they are bound to the node', async () => {
    const node = newNode();
    await node.start(CONFIG);
    await node.add('web');
    const [pod] = await node.all();
    expect(pod?.status).toMatchObject({
      phase: 'Running',
      podIP: expect.stringMatching(/^10\.244\.0\.\d+$/),
      containerStatuses: [{ name: 'main', ready: true, restartCount: 0, state: { running: {} } }],
    });
    expect(pod === undefined ? null : readPod(pod)).toMatchObject({ isReady: true });
    expect(await node.events()).toEqual([]);
  });

  it('are admitted again after a restart, the oldest first, up to maxPods', async () => {
    const node = newNode();
    await node.start(CONFIG);
    for (const name of ['b', 'a', 'c']) await node.add(name);
    const before = runningPods((await node.all()).map(readPod));
    await node.start({ ...CONFIG, maxPods: 1 });
    expect(await node.states()).toEqual({ b: 'Running', a: 'Failed OutOfpods', c: 'Failed OutOfpods' });
    const seen = "OutOfpods: Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1";
    expect(podLosses(before, (await node.all()).map(readPod))).toEqual([
      { kind: 'pod-rejected', pod: 'default/a', seen },
      { kind: 'pod-rejected', pod: 'default/c', seen },
    ]);
    await node.start(CONFIG);
    expect(await node.states()).toEqual({ b: 'Running', a: 'Failed OutOfpods', c: 'Failed OutOfpods' });
  });

  it.each([
    ['cpu', { systemReserved: { cpu: '3500m' } }, { cpu: '600m' }, 'requested: 600, used: 0, capacity: 500'],
    ['memory', { kubeReserved: { memory: '7Gi' } }, { memory: '2Gi' }, 'requested: 2147483648, used: 0, capacity: 1073741824'],
  ])('are rejected when less %s is allocatable than they request', async (resource, more, amounts, why) => {
    const node = newNode();
    await node.start(CONFIG);
    await node.add('big', requests(amounts));
    expect(await node.states()).toEqual({ big: 'Running' });
    await node.start({ ...CONFIG, ...more });
    expect((await node.all())[0]?.status).toMatchObject({ reason: `OutOf${resource}`, message: expect.stringContaining(why) });
  });

  it('show a static pod as a mirror pod, and remove it with its file', async () => {
    const node = newNode();
    await node.start(CONFIG);
    await node.put('kubeletadm-probe.yaml', PROBE);
    expect(await node.probe()).toEqual({ state: 'started' });
    const mirror = await node.cluster.get(PROBE_REF);
    const hash = mirror?.metadata.annotations?.['kubernetes.io/config.hash'];
    expect(mirror?.metadata.annotations).toEqual({
      'kubernetes.io/config.hash': hash,
      'kubernetes.io/config.mirror': hash,
      'kubernetes.io/config.source': 'file',
    });
    expect(mirror?.spec).toMatchObject({ nodeName: NODE });
    await node.cluster.delete(PROBE_REF);
    await node.pods.settled();
    expect(await node.probe()).toEqual({ state: 'started' });
    await node.put('kubeletadm-probe.yaml', null);
    expect(await node.cluster.get(PROBE_REF)).toBeNull();
  });

  it('lose the static pods when staticPodPath is unset', async () => {
    const node = newNode();
    await node.put('kubeletadm-probe.yaml', PROBE);
    await node.start(CONFIG);
    expect(await node.probe()).toEqual({ state: 'started' });
    await node.start({ ...CONFIG, staticPodPath: '' });
    expect(await node.states()).toEqual({});
  });

  it('make room for a static pod', async () => {
    const node = newNode();
    await node.start({ ...CONFIG, maxPods: 1 });
    await node.add('web');
    await node.put('kubeletadm-probe.yaml', PROBE);
    expect(await node.states()).toEqual({ web: 'Failed Preempting', [PROBE_REF.name]: 'Running' });
  });

  it('reject a static pod that has no room, until a restart with more room', async () => {
    const node = newNode();
    await node.start({ ...CONFIG, maxPods: 0 });
    await node.put('kubeletadm-probe.yaml', PROBE);
    expect(await node.states()).toEqual({ [PROBE_REF.name]: 'Failed UnexpectedAdmissionError' });
    expect(await node.probe()).toMatchObject({ state: 'failed' });
    await node.start(CONFIG);
    expect(await node.probe()).toEqual({ state: 'started' });
  });

  it('get no sandbox when resolvConf does not exist, while running pods continue', async () => {
    const node = newNode();
    await node.start(CONFIG);
    await node.add('web');
    await node.start({ ...CONFIG, resolvConf: '/no/such' });
    await node.add('new');
    expect(await node.states()).toEqual({ web: 'Running', new: 'Pending ContainerCreating' });
    expect(await node.events()).toEqual(['FailedCreatePodSandBox: Failed to create pod sandbox: open /no/such: no such file or directory']);
    await node.start(CONFIG);
    expect(await node.states()).toEqual({ web: 'Running', new: 'Running' });
  });

  it('start no container with a podPidsLimit that is too low', async () => {
    const node = newNode();
    await node.start({ ...CONFIG, podPidsLimit: 1 });
    await node.put('kubeletadm-probe.yaml', PROBE);
    expect(await node.states()).toEqual({ [PROBE_REF.name]: 'Pending RunContainerError' });
    expect(await node.probe()).toMatchObject({ state: 'failed', why: expect.stringContaining('RunContainerError') });
  });

  it('wait for an image that no registry has', async () => {
    const node = newNode();
    await node.start(CONFIG);
    await node.add('web', { containers: [{ name: 'main', image: 'registry.invalid/app:1' }] });
    expect(await node.states()).toEqual({ web: 'Pending ImagePullBackOff' });
  });

  it('run without an address of the cluster DNS, which an Event reports', async () => {
    const node = newNode();
    await node.start({ ...CONFIG, clusterDNS: ['not-an-ip'] });
    await node.add('web');
    await node.add('plain', { dnsPolicy: 'Default' });
    expect(await node.states()).toEqual({ web: 'Running', plain: 'Running' });
    expect(await node.events()).toEqual([
      expect.stringMatching(/^MissingClusterDNS: pod: "web_default\(.*Falling back to "Default" policy\.$/),
    ]);
  });

  it.each([
    ['nodefs.available', 'ephemeral-storage'],
    ['memory.available', 'memory'],
  ])('are evicted by a threshold of 99% for %s, except static pods', async (signal, resource) => {
    const node = newNode();
    await node.put('kubeletadm-probe.yaml', PROBE);
    await node.start(CONFIG);
    await node.add('web');
    const before = runningPods((await node.all()).map(readPod));
    await node.start({ ...CONFIG, evictionHard: { [signal]: '99%' } });
    expect(await node.states()).toEqual({ web: 'Failed Evicted', [PROBE_REF.name]: 'Running' });
    expect(podLosses(before, (await node.all()).map(readPod))).toMatchObject([
      { kind: 'pod-evicted', pod: 'default/web', seen: expect.stringContaining(`The node was low on resource: ${resource}. `) },
    ]);
    await node.add('new');
    expect(await node.states()).toMatchObject({ new: 'Failed Evicted' });
  });
});
