import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { Host } from '../../../../src/host/access/host.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import type { WorkloadBaseline } from '../../../../src/kubelet/health/baseline.ts';
import { type ProbedKubelet, removeStaleProbe } from '../../../../src/kubelet/health/run-probe.ts';
import { PROBE_MS } from '../../../../src/kubelet/health/signals.ts';
import { trialPods } from '../../../../src/kubelet/health/trial-pods.ts';
import { PROBE_LABEL } from '../../../../src/kubelet/workload/pod.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const NODE = 'node-1';
const MANIFESTS = '/etc/kubernetes/manifests';
const DIRECTORY = { type: 'directory', mode: 0o755, owner: 'root:root' } as const;
const FILE = `${MANIFESTS}/kubeletadm-probe.yaml`;
const KUBELET: ProbedKubelet = { staticPodPath: MANIFESTS, maxPods: 110, image: 'registry.k8s.io/pause:3.10' };
const RUNS: JsonObject = { phase: 'Running', containerStatuses: [{ name: 'probe', state: { running: {} } }] };
const waiting = (reason: string): JsonObject => ({
  phase: 'Pending',
  containerStatuses: [{ name: 'probe', state: { waiting: { reason } } }],
});

function pod(name: string, status: JsonObject = { phase: 'Running' }): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: { nodeName: NODE, containers: [] },
    status,
  };
}

/** A node whose kubelet starts the static probe pod with the next of the given statuses; null: not at all. */
function world(objects: readonly KubeObject[], statuses: readonly (JsonObject | null)[] = [], directories = [MANIFESTS]) {
  const clock = fakeClock();
  const cluster = fakeCluster({
    now: () => clock.now(),
    objects: [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other' } }, ...objects],
  });
  const journal = { text: '' };
  const host = fakeHost({
    commands: { journalctl: () => ({ stdout: journal.text }) },
    files: Object.fromEntries(directories.map((path) => [path, DIRECTORY])),
  });
  const left = [...statuses];
  const issues: string[] = [];
  const stop = new AbortController();
  const react = async (): Promise<void> => {
    const name = /name: (kubeletadm-probe-\w+)/.exec(host.files.get(FILE)?.content ?? '')?.[1];
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system' });
    for (const { metadata } of items)
      if (metadata.name !== `${name}-${NODE}`)
        await cluster.delete({ apiVersion: 'v1', kind: 'Pod', namespace: 'kube-system', name: metadata.name });
    const status = name === undefined ? null : (left.shift() ?? null);
    if (status === null) return;
    const annotations = { 'kubernetes.io/config.mirror': 'x' };
    const metadata = { name: `${name}-${NODE}`, namespace: 'kube-system', annotations, labels: { [PROBE_LABEL]: 'true' } };
    await cluster.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata,
      spec: { nodeName: NODE, containers: [{ name: 'probe', image: 'p' }] },
      status,
    });
  };
  const watched: Host = {
    ...host,
    perform: async (operations, options) => {
      await host.perform(operations, options);
      await react();
    },
  };
  let random = 0;
  const pods = trialPods({
    host: watched,
    nodeName: NODE,
    cluster,
    clock,
    random: () => (random = (random + 0.123) % 1),
    onIssue: (message) => issues.push(message),
    signal: stop.signal,
  });
  /** As the agent does. */
  const watch = {
    before: (kubelet: ProbedKubelet, isHealthy: boolean) =>
      pods.before(kubelet, isHealthy ? null : 'the kubelet was not healthy before the change'),
    inspect: async (before: WorkloadBaseline, kubelet: ProbedKubelet, pid: number | null) => {
      const { losses } = await pods.losses(before);
      return { losses, probe: await pods.probe(before, kubelet, pid) };
    },
    end: pods.end,
  };
  /** Gives the watch of the pods its turns. */
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await clock.sleep(1);
  };
  return { clock, cluster, host, watch, issues, settle, stop, journal };
}

describe('the pods of a node in a trial', () => {
  it('are those running before the trial, also with equal names in two namespaces', async () => {
    const other = { ...pod('a'), metadata: { name: 'a', namespace: 'other', uid: 'uid-other' } };
    const { watch } = world([pod('a'), other, pod('done', { phase: 'Succeeded' })], [RUNS]);
    expect(await watch.before(KUBELET, true)).toEqual({
      pods: [
        { uid: expect.any(String), name: 'default/a', isStatic: false },
        { uid: expect.any(String), name: 'other/a', isStatic: false },
      ],
      noProbe: null,
      staticPodPath: MANIFESTS,
    });
    await watch.end();
  });

  it('are compared with the current ones', async () => {
    const { watch, cluster, settle } = world([pod('a'), pod('b')], [RUNS, RUNS]);
    const before = await watch.before(KUBELET, true);
    const failed = { status: { phase: 'Failed', reason: 'OutOfpods', message: 'no room' } };
    await cluster.patch({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'a' }, 'merge', failed, { subresource: 'status' });
    await settle();
    const { losses } = await watch.inspect(before, KUBELET, 7);
    expect(losses).toEqual([{ kind: 'pod-rejected', pod: 'default/a', seen: 'OutOfpods: no room' }]);
    await watch.end();
  });

  it.each([
    ['a loss while its manifest exists', false, [{ kind: 'static-pod-gone', pod: `default/web-${NODE}`, seen: 'the static pod is gone' }]],
    ['no loss when its manifest was removed', true, []],
  ] as const)('are compared with the manifests: a static pod that is gone is %s', async (_, isRemoved, losses) => {
    const mirror = pod(`web-${NODE}`);
    const metadata = { ...mirror.metadata, annotations: { 'kubernetes.io/config.mirror': 'x' } };
    const { watch, cluster, host, settle } = world([{ ...mirror, metadata }], [RUNS]);
    const content = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n';
    await host.perform([{ kind: 'write-file', path: `${MANIFESTS}/web.yaml`, mode: 0o600, owner: 'root:root', content }]);
    const before = await watch.before(KUBELET, true);
    if (isRemoved) await host.perform([{ kind: 'remove-file', path: `${MANIFESTS}/web.yaml` }]);
    await cluster.delete({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: `web-${NODE}` });
    await settle();
    // The directory of the trial is another one: only the one before counts.
    expect((await watch.inspect(before, { ...KUBELET, staticPodPath: '/no/such' }, 7)).losses).toEqual(losses);
    await watch.end();
  });

  it.each([
    ['without a probe pod', KUBELET, false, ['pod-not-started']],
    ['with a probe pod', KUBELET, true, []],
  ] as const)('may have a container that cannot be started again: counted only %s', async (_, kubelet, isHealthy, kinds) => {
    const { watch, cluster, settle } = world([pod('a')], [RUNS, RUNS]);
    const before = await watch.before(kubelet, isHealthy);
    const status = { ...waiting('RunContainerError'), phase: 'Running' };
    await cluster.patch({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'a' }, 'merge', { status }, { subresource: 'status' });
    await settle();
    expect((await watch.inspect(before, kubelet, 7)).losses?.map(({ kind }) => kind)).toEqual(kinds);
    await watch.end();
  });

  it('are not known while the API server cannot be read', async () => {
    const { watch, cluster, issues } = world([pod('a')]);
    for (let i = 0; i < 9; i++) cluster.failNext('list Pod', new Error('forbidden'));
    expect(await watch.before(KUBELET, true)).toEqual({
      pods: null,
      noProbe: 'the pods of the node could not be listed',
      staticPodPath: MANIFESTS,
    });
    expect(issues[0]).toContain('forbidden');
    await watch.end();
  });
});

describe('the probe pod of a trial', () => {
  it('is started before and after the restart, and removed each time', async () => {
    const { watch, host, cluster, settle } = world([], [RUNS, RUNS]);
    const before = await watch.before(KUBELET, true);
    expect(before.noProbe).toBeNull();
    expect(host.files.has(FILE)).toBe(false);
    expect((await watch.inspect(before, KUBELET, null)).probe?.state).toBe('starting');
    await watch.inspect(before, KUBELET, 7);
    await settle();
    expect((await watch.inspect(before, KUBELET, 7)).probe).toEqual({ state: 'started' });
    expect(host.files.has(FILE)).toBe(false);
    const writes = host.performed.filter(({ kind }) => kind === 'write-file').length;
    expect((await watch.inspect(before, KUBELET, 7)).probe).toEqual({ state: 'started' });
    expect(host.performed.filter(({ kind }) => kind === 'write-file')).toHaveLength(writes);
    expect((await cluster.list({ apiVersion: 'v1', kind: 'Pod' })).items).toEqual([]);
    await watch.end();
  });

  it.each([
    ['its container cannot be started', waiting('RunContainerError'), 'RunContainerError'],
    ['the kubelet rejects it', { phase: 'Failed', reason: 'OutOfpods', message: 'full' }, 'OutOfpods: full'],
  ] as const)('fails when %s', async (_, status, why) => {
    const { watch, settle } = world([], [RUNS, status]);
    const before = await watch.before(KUBELET, true);
    await watch.inspect(before, KUBELET, 7);
    await settle();
    expect((await watch.inspect(before, KUBELET, 7)).probe).toEqual({ state: 'failed', why });
    await watch.end();
  });

  it('fails with the error that the kubelet logs', async () => {
    const { watch, clock, host, journal } = world([], [RUNS, null]);
    const before = await watch.before(KUBELET, true);
    await watch.inspect(before, KUBELET, 7);
    const name = /name: (kubeletadm-probe-\w+)/.exec(host.files.get(FILE)?.content ?? '')?.[1];
    journal.text = `E1123 pod_workers.go:1] "Error syncing pod" err="open /no/such: no such file" pod="kube-system/${name}-${NODE}"\n`;
    expect((await watch.inspect(before, KUBELET, 7)).probe?.state).toBe('starting');
    clock.advance(3_000);
    expect((await watch.inspect(before, KUBELET, 7)).probe).toEqual({ state: 'failed', why: 'open /no/such: no such file' });
    await watch.end();
  });

  it('fails when it has not started in time', async () => {
    const { watch, clock } = world([], [RUNS, null]);
    const before = await watch.before(KUBELET, true);
    await watch.inspect(before, KUBELET, 7);
    clock.advance(PROBE_MS.agent - 1);
    expect((await watch.inspect(before, KUBELET, 7)).probe?.state).toBe('starting');
    clock.advance(1);
    expect((await watch.inspect(before, KUBELET, 7)).probe).toEqual({
      state: 'failed',
      why: 'not started within 20 s: the kubelet has not reported the pod',
    });
    await watch.end();
  });

  it.each([
    [
      'it did not start before the trial',
      KUBELET,
      [waiting('CreateContainerError')],
      [MANIFESTS],
      'a probe pod did not start before the change: CreateContainerError',
    ],
    [
      'its image is missing',
      KUBELET,
      [waiting('ErrImagePull')],
      [MANIFESTS],
      'a probe pod did not start before the change: the image of the probe pod is not available: ErrImagePull',
    ],
    [
      'the kubelet has no directory for static pods',
      { ...KUBELET, staticPodPath: null },
      [],
      [MANIFESTS],
      'the kubelet has no staticPodPath',
    ],
    ['that directory does not exist', KUBELET, [], [], `${MANIFESTS} is not a directory`],
    ['the node is full', { ...KUBELET, maxPods: 1 }, [], [MANIFESTS], 'the node has no room for a new pod (1 of 1 pods)'],
  ] as const)('is not used when %s', async (_, kubelet, statuses, directories, why) => {
    const { watch, host } = world([pod('a')], statuses, [...directories]);
    const before = await watch.before(kubelet, true);
    expect(before.noProbe).toBe(why);
    expect((await watch.inspect(before, kubelet, 7)).probe).toBeNull();
    expect(host.files.has(FILE)).toBe(false);
    await watch.end();
  });

  it('is not used when the kubelet was not healthy before the trial', async () => {
    const { watch, host } = world([], [RUNS]);
    expect((await watch.before(KUBELET, false)).noProbe).toBe('the kubelet was not healthy before the change');
    expect(host.performed).toEqual([]);
    await watch.end();
  });

  it('fails without being started when the new limit leaves no room for it', async () => {
    const { watch, host } = world([pod('a'), pod('b')], [RUNS]);
    const before = await watch.before(KUBELET, true);
    const { probe } = await watch.inspect(before, { ...KUBELET, maxPods: 1 }, 7);
    expect(probe).toEqual({ state: 'failed', why: 'the node has no room for a new pod (2 of 1 pods)' });
    expect((await watch.inspect(before, { ...KUBELET, maxPods: 2 }, 8)).probe?.state).toBe('failed');
    expect(host.files.has(FILE)).toBe(false);
    await watch.end();
  });

  it('is not used when other pods have filled the node since', async () => {
    const { watch, cluster, settle } = world([pod('a')], [RUNS]);
    const before = await watch.before({ ...KUBELET, maxPods: 2 }, true);
    await cluster.create(pod('b'));
    await settle();
    const { probe } = await watch.inspect(before, { ...KUBELET, maxPods: 2 }, 7);
    expect(probe).toEqual({ state: 'unusable', why: 'the node has no room for a new pod (2 of 2 pods)' });
    await watch.end();
  });

  it('is removed when the trial ends, and when an agent was killed', async () => {
    const { watch, host } = world([], [RUNS, null]);
    const before = await watch.before(KUBELET, true);
    await watch.inspect(before, KUBELET, 7);
    expect(host.files.has(FILE)).toBe(true);
    await watch.end();
    expect(host.files.has(FILE)).toBe(false);
    await host.perform([{ kind: 'write-file', path: FILE, mode: 0o600, owner: 'root:root', content: 'kind: Pod\n' }]);
    await removeStaleProbe({ host, signal: new AbortController().signal }, KUBELET);
    expect(host.files.has(FILE)).toBe(false);
  });
});
