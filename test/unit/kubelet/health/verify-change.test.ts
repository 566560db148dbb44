import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { waitForNode } from '../../../../src/kubeadm/phases/wait-node.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import type { KubeletVerification } from '../../../../src/kubelet/health/observe-change.ts';
import { prepareVerification } from '../../../../src/kubelet/health/verify-change.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { type FakePod, fakePod, podsIn, RUNNING, removePod, setPodStatus, startPods, waitingPod } from '../../../support/pods-on-node.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const catalogue = await loadCatalogue();
const PAUSE = 'registry.k8s.io/pause:3.10.2';
const TIMEOUT_MS = 285_000;
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'w1' };

const config = (line: string): string => `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${line}\n`;
const failed = (reason: string, message = ''): JsonObject => ({ phase: 'Failed', reason, message });

interface WorldOptions {
  readonly pods?: readonly FakePod[];
  /** The status of each probe pod, by its number from 1; default: all run. Null: not reported. */
  readonly probes?: (number: number, pod: KubeObject) => JsonObject | null;
  /** Status of the Node in addition to Ready. */
  readonly node?: JsonObject;
  readonly verification?: Partial<KubeletVerification>;
  readonly user?: { readonly name: string; readonly groups: readonly string[] };
  readonly signal?: AbortSignal;
  readonly before?: string;
  readonly after?: string;
  /** The requests that are sent as polls are recorded. */
  readonly countsPolls?: boolean;
}

async function world(options: WorldOptions = {}) {
  const { pods = [{ name: 'web' }], probes = () => RUNNING, node = {}, verification = {}, user, signal } = options;
  const [clock, reporter] = [fakeClock(), recordingReporter()];
  const objects = [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' } }, ...pods.map(fakePod)];
  const admin = fakeCluster({ objects, now: () => clock.now() });
  const cluster = user === undefined ? admin : fakeCluster({ sharedWith: admin, user });
  const heartbeat = (extra: JsonObject = {}): Promise<KubeObject> => {
    const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: clock.now().toISOString() };
    const { conditions = [], ...status } = { ...node, ...extra } as { readonly conditions?: readonly JsonObject[] };
    return admin.patch(NODE, 'merge', { status: { ...status, conditions: [ready, ...conditions] } }, { subresource: 'status' });
  };
  await heartbeat();
  let started = 0;
  startPods(admin, 'w1', (pod) => probes(++started, pod));
  const created: string[] = [];
  admin.store.subscribe(({ type, object }) => {
    if (type === 'ADDED' && object.kind === 'Pod') created.push(object.metadata.name);
  });
  const polls: string[] = [];
  const forPolls: Cluster = {
    ...cluster,
    get: (ref) => {
      polls.push(ref.kind);
      return cluster.get(ref);
    },
  };
  const context = {
    host: fakeHost({ units: {} }),
    cluster: (options.countsPolls ? { ...cluster, forPolls } : cluster) as Cluster,
    clock,
    reporter,
    ...(signal === undefined ? {} : { signal }),
  };
  const { before = config('maxPods: 110'), after = config('maxPods: 50') } = options;
  const prepare = () =>
    prepareVerification(
      context,
      { nodeName: 'w1', minor: 36, catalogue, probeImage: PAUSE, ...verification },
      { phase: 'kubelet-start', before, after, restarts: true },
    );
  /** Changes the kubelet: `effect` happens with its restart, one second later. */
  const change = async (effect: () => void = () => {}): Promise<string | undefined> => {
    const verify = await prepare();
    clock.advance(1_000);
    await heartbeat();
    effect();
    const began = clock.elapsedMs;
    try {
      return await verify(clock.now().getTime() + TIMEOUT_MS, async () => {});
    } finally {
      tookMs = clock.elapsedMs - began;
    }
  };
  let tookMs = -1;
  return { admin, cluster, clock, reporter, context, heartbeat, prepare, change, created, polls, tookMs: () => tookMs };
}

const leftProbes = (cluster: FakeCluster): readonly string[] =>
  podsIn(cluster)
    .filter(({ metadata }) => metadata.labels?.['kubeletadm.dev/probe'] === 'true')
    .map(({ metadata }) => metadata.name);

const READER = { name: 'reader', groups: [] };
const may = (verb: string, resource: string): readonly KubeObject[] => [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: resource },
    rules: [{ apiGroups: [''], resources: [resource], verbs: [verb] }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: resource },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: resource },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'reader' }],
  },
];

describe('a change of a kubelet, verified by the pods of its node', () => {
  it('sends no request as a poll, because the host reverts a change that is not confirmed in time', async () => {
    const it = await world({ countsPolls: true });
    await it.change();
    expect([it.created.length, it.polls]).toEqual([2, []]);
  });

  it.each<[string, FakePod, (cluster: FakeCluster) => void, string | null, number]>([
    [
      'rejects a pod',
      { name: 'web' },
      (it) => setPodStatus(it, 'web', failed('OutOfpods', "Node didn't have enough resource: pods")),
      "the kubelet rejected 1 pod that ran before: default/web (OutOfpods: Node didn't have enough resource: pods)",
      0,
    ],
    [
      'evicts a pod because of the node',
      { name: 'web' },
      (it) => setPodStatus(it, 'web', failed('Evicted', 'The node was low on resource: ephemeral-storage.')),
      'default/web (Evicted: The node was low on resource: ephemeral-storage.)',
      0,
    ],
    [
      'loses a static pod',
      { name: 'etcd-w1', isStatic: true },
      (it) => removePod(it, 'etcd-w1'),
      'default/etcd-w1 (the static pod is gone)',
      10_000,
    ],
    [
      'starts a probe pod, but not a container again',
      { name: 'web' },
      (it) => setPodStatus(it, 'web', waitingPod('RunContainerError', 'no such program', 'Running')),
      null,
      0,
    ],
    ['evicts a pod above its own limit', { name: 'web' }, (it) => setPodStatus(it, 'web', failed('Evicted', 'Pod exceeded it')), null, 0],
    ['has a deleted pod', { name: 'web' }, (it) => removePod(it, 'web'), null, 0],
    ['has a finished pod', { name: 'web' }, (it) => setPodStatus(it, 'web', { phase: 'Succeeded' }), null, 0],
    ['has a failed pod', { name: 'web' }, (it) => setPodStatus(it, 'web', failed('', 'exit code 1')), null, 0],
    ['has a crashing pod', { name: 'web' }, (it) => setPodStatus(it, 'web', waitingPod('CrashLoopBackOff', '', 'Running')), null, 0],
    ['rejects a pod that did not run', { name: 'web', status: {} }, (it) => setPodStatus(it, 'web', failed('OutOfpods')), null, 0],
  ])('when the kubelet %s', async (_, pod, effect, error, tookMs) => {
    const it = await world({ pods: [pod] });
    const changed = it.change(() => effect(it.admin));
    if (error === null) await expect(changed).resolves.toBeUndefined();
    else
      await expect(changed).rejects.toMatchObject({
        problems: [{ code: 'PODS_LOST', host: 'node1', message: expect.stringContaining(error), hint: expect.stringContaining('kubectl') }],
      });
    expect(it.tookMs()).toBe(tookMs);
    // Lost pods end the wait before a probe pod is created.
    expect([it.created.length, leftProbes(it.admin)]).toEqual([error === null ? 2 : 1, []]);
  });

  it('when the kubelet cannot start a container again, and no probe pod is used', async () => {
    const it = await world({ probes: () => waitingPod('ErrImagePull') });
    const changed = it.change(() => setPodStatus(it.admin, 'web', waitingPod('RunContainerError', 'pids.max', 'Running')));
    await expect(changed).rejects.toMatchObject({
      problems: [{ code: 'PODS_LOST', message: expect.stringContaining('default/web (container main: RunContainerError: pids.max)') }],
    });
    expect(it.tookMs()).toBe(10_000);
  });

  it('names at most five lost pods', async () => {
    const names = Array.from({ length: 7 }, (_, i) => `web-${i}`);
    const it = await world({ pods: names.map((name) => ({ name })) });
    const changed = it.change(() => {
      for (const name of names) setPodStatus(it.admin, name, failed('OutOfpods'));
    });
    await expect(changed).rejects.toMatchObject({
      message: expect.stringMatching(
        /: the kubelet rejected 7 pods that ran before: default\/web-0 \(OutOfpods\), .*default\/web-4 \(OutOfpods\) and 2 more\./,
      ),
    });
  });

  it('is confirmed when a static pod is created again within 10 s', async () => {
    const it = await world({ pods: [{ name: 'etcd-w1', isStatic: true }] });
    await it.change(() => {
      removePod(it.admin, 'etcd-w1');
      it.clock.at(it.clock.elapsedMs + 8_000, () => void it.admin.create(fakePod({ name: 'etcd-w1', isStatic: true })));
    });
    expect(it.tookMs()).toBeGreaterThanOrEqual(8_000);
    expect(it.reporter.messages('WAITING')).toContain(
      'waiting to confirm, 5 s: the kubelet stopped 1 static pod that ran before: default/etcd-w1 (the static pod is gone)',
    );
  });

  it('ignores evictions of a node that was under pressure before', async () => {
    const it = await world({ node: { conditions: [{ type: 'DiskPressure', status: 'True' }] } });
    await it.change(() => setPodStatus(it.admin, 'web', failed('Evicted', 'The node was low on resource: ephemeral-storage.')));
  });

  it.each<[string, readonly JsonObject[], number | null, string | null]>([
    ['has a pressure condition that it did not have before, for 20 s', [], null, 'the Node has DiskPressure'],
    ['has it for less than 20 s', [], 15_000, null],
    ['had it before', [{ type: 'DiskPressure', status: 'True' }], null, null],
  ])('is not confirmed while the Node %s', async (_, conditions, endsMs, error) => {
    const it = await world({ node: { conditions } });
    const changed = it.change(() => {
      void it.heartbeat({ conditions: [{ type: 'DiskPressure', status: 'True' }] });
      if (endsMs !== null) it.clock.at(it.clock.elapsedMs + endsMs, () => void it.heartbeat());
    });
    if (error === null) await expect(changed).resolves.toBeUndefined();
    else
      await expect(changed).rejects.toMatchObject({ code: 'COMMIT_NOT_PROVEN', message: expect.stringContaining(`within 20s: ${error}`) });
    const atLeast = endsMs ?? (error === null ? 0 : 20_000);
    expect([it.tookMs() >= atLeast, it.tookMs() < atLeast + 3_000]).toEqual([true, true]);
  });

  it('permits pods to end, but not a failed probe pod, with the permission of the operator', async () => {
    const permitted = { pods: [{ name: 'web' }], verification: { mayLosePods: true } };
    const lossy = await world(permitted);
    await expect(lossy.change(() => setPodStatus(lossy.admin, 'web', failed('OutOfpods')))).resolves.toBeUndefined();
    const evicting = await world(permitted);
    const pressure = { conditions: [{ type: 'MemoryPressure', status: 'True' }] };
    await expect(evicting.change(() => void evicting.heartbeat(pressure))).resolves.toBeUndefined();
    const broken = await world({ ...permitted, probes: (number) => (number === 1 ? RUNNING : failed('OutOfpods', 'full')) });
    await expect(broken.change()).rejects.toMatchObject({ code: 'PROBE_POD_FAILED' });
  });

  it('finds a pod that is rejected while the probe pod starts', async () => {
    const it = await world({ probes: (number) => (number === 1 ? RUNNING : waitingPod('ContainerCreating')) });
    const changed = it.change(() => it.clock.at(it.clock.elapsedMs + 4_000, () => setPodStatus(it.admin, 'web', failed('OutOfcpu'))));
    await expect(changed).rejects.toMatchObject({ code: 'PODS_LOST' });
    expect([it.tookMs(), leftProbes(it.admin)]).toEqual([4_000, []]);
  });

  it('finds a pod that is rejected just before the probe pod starts', async () => {
    const it = await world({
      probes: (number) => {
        if (number === 2) setPodStatus(it.admin, 'web', failed('OutOfcpu'));
        return RUNNING;
      },
    });
    await expect(it.change()).rejects.toMatchObject({ code: 'PODS_LOST' });
    expect([it.created.length, leftProbes(it.admin)]).toEqual([2, []]);
  });

  it('without a probe pod, finds a pod that is rejected after the kubelet has reported', async () => {
    const options = { verification: { probeImage: undefined as never } };
    const rejecting = await world(options);
    const reject = (): void => setPodStatus(rejecting.admin, 'web', failed('SMTAlignmentError'));
    const changed = rejecting.change(() => rejecting.clock.at(rejecting.clock.elapsedMs + 2_500, reject));
    await expect(changed).rejects.toMatchObject({ code: 'PODS_LOST' });
    const good = await world(options);
    await good.change();
    expect(good.tookMs()).toBeGreaterThanOrEqual(6_000);
    const empty = await world({ ...options, pods: [] });
    await empty.change();
    expect(empty.tookMs()).toBe(0);
  });

  it('waits for evictions after a change of their thresholds', async () => {
    const options = { before: config('maxPods: 110'), after: config('evictionHard: {nodefs.available: 99%}') };
    const evicting = await world(options);
    const evict = (): void => setPodStatus(evicting.admin, 'web', failed('Evicted', 'The node was low on resource: ephemeral-storage.'));
    const changed = evicting.change(() => evicting.clock.at(evicting.clock.elapsedMs + 11_000, evict));
    await expect(changed).rejects.toMatchObject({ code: 'PODS_LOST' });
    const good = await world(options);
    await good.change();
    expect(good.tookMs()).toBe(15_000);
    const empty = await world({ ...options, pods: [] });
    await empty.change();
    expect(empty.tookMs()).toBe(0);
  });

  it('waits while the pods cannot be listed', async () => {
    const it = await world();
    await it.change(() => it.admin.failNext('list Pod', new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'connection refused' })));
    expect(it.tookMs()).toBe(100);
  });
});

describe('the probe pod of a change', () => {
  const event = (name: string, reason: string, message: string, at: string, type = 'Warning'): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${name}.${reason.toLowerCase()}`, namespace: 'kube-system' },
    involvedObject: { kind: 'Pod', namespace: 'kube-system', name },
    type,
    reason,
    message,
    lastTimestamp: at,
  });

  it('starts before and after the change, on the node, and is deleted', async () => {
    const pods: KubeObject[] = [];
    const it = await world({
      probes: (_, pod) => {
        pods.push(pod);
        return RUNNING;
      },
    });
    await it.change();
    expect(pods).toHaveLength(2);
    expect(new Set(pods.map(({ metadata }) => metadata.name)).size).toBe(2);
    expect(pods[0]).toMatchObject({
      metadata: { namespace: 'kube-system', name: expect.stringMatching(/^kubeletadm-probe-w1-[0-9a-z]+$/) },
      spec: { nodeName: 'w1', terminationGracePeriodSeconds: 0, containers: [{ image: PAUSE }] },
    });
    expect([leftProbes(it.admin), it.tookMs()]).toEqual([[], 0]);
  });

  it('has failed although one answer is missing after the time for its start', async () => {
    const it = await world({ probes: (number) => (number === 1 ? RUNNING : null) });
    const error = new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'connection refused' });
    const changed = it.change(() => it.clock.at(it.clock.elapsedMs + 26_000, () => it.admin.failNext('get Pod', error)));
    await expect(changed).rejects.toMatchObject({ code: 'PROBE_POD_FAILED' });
    expect([it.tookMs() < 40_000, leftProbes(it.admin)]).toEqual([true, []]);
  });

  it('uses a pause image of the node', async () => {
    const images: unknown[] = [];
    const it = await world({
      node: { images: [{ names: ['example.org/web:1'] }, { names: ['mirror.test/pause@sha256:00', 'mirror.test/pause:3.9'] }] },
      probes: (_, { spec }) => {
        images.push((spec as { containers: { image: string }[] }).containers[0]?.image);
        return RUNNING;
      },
    });
    await it.change();
    expect(images).toEqual(['mirror.test/pause:3.9', 'mirror.test/pause:3.9']);
  });

  it.each<[string, JsonObject | null, string, number]>([
    ['its container cannot start', waitingPod('RunContainerError', 'pids.max'), 'RunContainerError: pids.max', 5_000],
    ['it is rejected', failed('OutOfpods', 'too many pods'), 'OutOfpods: too many pods', 5_000],
    [
      'its image is not available',
      waitingPod('ErrImagePull', 'denied'),
      'the image of the probe pod is not available: ErrImagePull: denied',
      5_000,
    ],
    [
      'it has no sandbox',
      waitingPod('ContainerCreating'),
      'its container has not started (Pending); FailedCreatePodSandBox: no such',
      30_000,
    ],
    ['it is not reported', null, 'its container has not started (no status); FailedCreatePodSandBox: no such', 30_000],
  ])('fails the change when %s', async (_, status, why, tookMs) => {
    const it = await world({
      probes: (number, { metadata: { name } }) => {
        if (number === 1) return RUNNING;
        // Events of the earlier and the present failure, and a later one that is no warning.
        if (tookMs === 30_000) {
          void it.admin.create(event(name, 'Failed', 'earlier', '2030-01-01T00:00:01Z'));
          void it.admin.create(event(name, 'FailedCreatePodSandBox', 'no such file', '2030-01-01T00:00:09Z'));
          void it.admin.create(event(name, 'Pulled', 'present', '2030-01-01T00:00:20Z', 'Normal'));
        }
        return status;
      },
    });
    await expect(it.change()).rejects.toMatchObject({
      problems: [{ code: 'PROBE_POD_FAILED', host: 'node1', message: expect.stringContaining(why) }],
    });
    expect([it.tookMs(), leftProbes(it.admin)]).toEqual([tookMs, []]);
  });

  it('may fail twice for less than 5 s', async () => {
    const it = await world({
      probes: (number, { metadata: { name } }) => {
        if (number === 1) return RUNNING;
        const later = (ms: number, status: JsonObject): void =>
          it.clock.at(it.clock.elapsedMs + ms, () => setPodStatus(it.admin, name, status, 'kube-system'));
        later(3_000, waitingPod('ContainerCreating'));
        later(4_000, waitingPod('RunContainerError'));
        later(8_000, RUNNING);
        return waitingPod('RunContainerError');
      },
    });
    await it.change();
    expect(it.tookMs()).toBe(8_000);
  });

  it('recovers from a failure of less than 5 s', async () => {
    const it = await world({
      probes: (number, { metadata: { name } }) => {
        if (number === 1) return RUNNING;
        it.clock.at(it.clock.elapsedMs + 4_000, () => setPodStatus(it.admin, name, RUNNING, 'kube-system'));
        return waitingPod('RunContainerError');
      },
    });
    await it.change();
    expect(it.tookMs()).toBe(4_000);
  });

  it.each<[string, WorldOptions, string, number]>([
    ['it does not start before', { probes: () => waitingPod('ContainerCreating') }, 'its container has not started (Pending)', 15_000],
    [
      'it fails before',
      { probes: () => waitingPod('RunContainerError', 'no') },
      'a probe pod did not start before the change: RunContainerError: no',
      5_000,
    ],
    ['its image is not available', { probes: () => waitingPod('ErrImagePull', 'gone') }, 'ErrImagePull: gone', 5_000],
    ['no image is known', { verification: { probeImage: undefined as never } }, 'no pause image was found', 0],
    ['the node is full', { node: { allocatable: { pods: '1' } } }, 'the node has no room for a new pod (1 of 1 pods)', 0],
  ])('is not required when %s', async (_, options, why, tookMs) => {
    const it = await world(options);
    await it.prepare();
    expect(it.clock.elapsedMs).toBe(tookMs);
    await it.change();
    expect(it.reporter.events).toContainEqual(
      expect.objectContaining({ level: 'info', code: 'PROBE_POD_UNUSED', verbosity: 1, message: expect.stringContaining(why) }),
    );
    // Then the pods are watched longer.
    expect([it.tookMs(), leftProbes(it.admin)]).toEqual([6_000, []]);
  });

  it.each(['CLUSTER_FORBIDDEN', 'CLUSTER_INVALID', 'CLUSTER_NOT_FOUND'])(
    'is not required when its creation is refused: %s',
    async (code) => {
      const it = await world();
      it.admin.failNext('create Pod', new AppError({ code, message: 'exceeded quota: pods' }));
      await it.change();
      expect(it.reporter.messages('PROBE_POD_UNUSED')[0]).toContain('can start new pods: exceeded quota: pods');
      expect(it.admin.calls.filter((call) => /^(create|delete) Pod/.test(call))).toHaveLength(1);
    },
  );

  it('is not required after the change when another client deletes it, or the node has become full', async () => {
    const deleted = await world({
      probes: (number, { metadata: { name } }) => {
        if (number === 1) return RUNNING;
        deleted.clock.at(deleted.clock.elapsedMs + 1_000, () => removePod(deleted.admin, name, 'kube-system'));
        return waitingPod('ContainerCreating');
      },
    });
    await deleted.change();
    expect(deleted.reporter.messages('PROBE_POD_UNUSED')[0]).toMatch(/probe pod kube-system\/.* was deleted by another client$/);
    const full = await world({ node: { allocatable: { pods: 2 } } });
    await full.change(() => void full.admin.create(fakePod({ name: 'scheduled' })));
    expect(full.reporter.messages('PROBE_POD_UNUSED')[0]).toContain('no room');
  });

  it('takes time in which the previous kubelet may report again: that is no evidence of the change', async () => {
    const it = await world({ probes: () => null });
    it.clock.at(5_000, () => void it.heartbeat());
    const verify = await it.prepare();
    await expect(verify(it.clock.now().getTime() + 3_000, async () => {})).rejects.toMatchObject({
      code: 'COMMIT_NOT_PROVEN',
      message: expect.stringContaining('the kubelet has not reported Ready since its restart'),
    });
  });

  it('ends, and is deleted, when the host has reverted the change meanwhile', async () => {
    const it = await world({ probes: (number) => (number === 1 ? RUNNING : waitingPod('ContainerCreating')) });
    const verify = await it.prepare();
    it.clock.advance(1_000);
    await it.heartbeat();
    const began = it.clock.elapsedMs;
    const checkOpen = async (): Promise<void> => {
      if (it.clock.elapsedMs - began >= 7_000) throw new AppError({ code: 'COMMIT_GONE', message: 'reverted' });
    };
    await expect(verify(it.clock.now().getTime() + TIMEOUT_MS, checkOpen)).rejects.toMatchObject({ code: 'COMMIT_GONE' });
    expect([it.clock.elapsedMs - began, leftProbes(it.admin)]).toEqual([10_000, []]);
  });

  it('is created again when the API server did not answer', async () => {
    const it = await world();
    const away = new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'connection refused' });
    await it.change(() => it.admin.failNext('create Pod', away));
    expect([it.tookMs(), it.created.length, leftProbes(it.admin)]).toEqual([100, 2, []]);
  });

  it('is deleted when the run is interrupted', async () => {
    const controller = new AbortController();
    const it = await world({ probes: () => null, signal: controller.signal });
    it.clock.at(3_000, () => {
      expect(leftProbes(it.admin)).toHaveLength(1);
      controller.abort(new AppError({ code: 'INTERRUPTED', message: 'interrupted' }, { exitCode: 130 }));
    });
    await expect(it.prepare()).rejects.toMatchObject({ code: 'INTERRUPTED' });
    expect([it.clock.elapsedMs, leftProbes(it.admin)]).toEqual([3_000, []]);
  });

  it('is reported when it cannot be deleted', async () => {
    const it = await world();
    it.admin.failNext('delete Pod', new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'connection refused' }));
    await it.change();
    expect(it.reporter.messages('PROBE_POD_LEFT')).toEqual([
      expect.stringMatching(
        /^probe pod kube-system\/(\S+) was not deleted: connection refused\. Delete the pod: kubectl delete pod -n kube-system \1$/,
      ),
    ]);
  });

  it('of a killed run is deleted first; the one of an agent and those of other nodes stay', async () => {
    const labels = { 'kubeletadm.dev/probe': 'true' };
    const it = await world({
      pods: [
        { name: 'killed', namespace: 'kube-system', labels },
        { name: 'agent', namespace: 'kube-system', labels, isStatic: true },
        { name: 'other', namespace: 'kube-system', labels, nodeName: 'w2' },
      ],
    });
    // The agent removes its static pod when its trial ends: that is no loss.
    await it.change(() => {
      expect(leftProbes(it.admin)).toEqual(['agent', 'other']);
      removePod(it.admin, 'agent', 'kube-system');
    });
    expect(leftProbes(it.admin)).toEqual(['other']);
  });
});

describe('pods that cannot be checked', () => {
  it('are not required without the permission to list them, which -v 1 shows', async () => {
    const it = await world({ user: READER });
    for (const object of may('get', 'nodes')) await it.admin.create(object);
    await it.change(() => setPodStatus(it.admin, 'web', failed('OutOfpods')));
    expect(it.reporter.events.filter(({ code }) => code !== 'KUBELET_PATH_NOT_CHECKED')).toMatchObject([
      { level: 'info', code: 'PODS_NOT_CHECKED', verbosity: 1, message: expect.stringContaining('cannot list resource "pods"') },
    ]);
    expect(it.created).toEqual([]);
  });

  it('are compared without the permission to create a probe pod', async () => {
    const it = await world({ user: READER });
    for (const object of [...may('get', 'nodes'), ...may('list', 'pods')]) await it.admin.create(object);
    await it.change();
    expect(it.reporter.messages('PROBE_POD_UNUSED')[0]).toContain('cannot create resource "pods"');
    await expect(it.change(() => setPodStatus(it.admin, 'web', failed('OutOfpods')))).rejects.toMatchObject({ code: 'PODS_LOST' });
  });

  it('are reported without an API server, and on a node that was not Ready', async () => {
    const it = await world();
    const verify = await prepareVerification(
      { ...it.context, cluster: null },
      { nodeName: 'w1', minor: 36, catalogue },
      { phase: 'kubelet-start', before: null, after: '', restarts: true },
    );
    await verify(0, async () => {});
    await it.admin.patch(NODE, 'merge', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }, { subresource: 'status' });
    await it.prepare();
    expect(it.reporter.messages('PODS_NOT_CHECKED')).toEqual([
      'the pods of the node are not checked: this command has no connection to an API server',
      'the pods of the node are not checked: Node w1 was not Ready before the change',
    ]);
    expect(it.created).toEqual([]);
  });
});

describe('the connection from the API server to a changed kubelet', () => {
  const shows = { status: 200, body: { kubeletconfig: { maxPods: 50 } } };
  const reach = (it: Awaited<ReturnType<typeof world>>, answer: ReturnType<Parameters<FakeCluster['proxyNode']>[1]>) =>
    it.admin.proxyNode('w1', () => answer);
  const refused = (text: string) => ({ status: 503, text: `error trying to reach service: ${text}` });

  it.each([
    ['listens on loopback or on another port', 'down', 'the API server no longer reaches the kubelet'],
    ['has no signed certificate', refused('remote error: tls: internal error'), 'approve its CSR with kubeletadm csr approve'],
    ['rejects the API server', { status: 401, text: 'Unauthorized' }, 'so kubectl logs, kubectl exec and metrics fail'],
  ] as const)('must work as before: the kubelet %s', async (_, answer, why) => {
    const it = await world();
    reach(it, shows);
    await expect(it.change(() => reach(it, answer))).rejects.toMatchObject({
      code: 'COMMIT_NOT_PROVEN',
      message: expect.stringContaining(why),
    });
    expect(it.tookMs()).toBe(TIMEOUT_MS);
  });

  it('is confirmed once the CSR of the kubelet is approved', async () => {
    const it = await world();
    reach(it, shows);
    await it.change(() => {
      reach(it, refused('remote error: tls: internal error'));
      it.clock.at(it.clock.elapsedMs + 60_000, () => reach(it, shows));
    });
    expect(it.tookMs()).toBeGreaterThanOrEqual(60_000);
    expect(it.reporter.messages('KUBELET_PATH_NOT_CHECKED')).toEqual([]);
  });

  it('works without the debugging handlers, which include configz', async () => {
    const it = await world({ after: config('enableDebuggingHandlers: false') });
    reach(it, shows);
    await it.change(() => reach(it, { status: 404, text: '404 page not found' }));
  });

  it('is not required and reported if it failed before, or access is denied', async () => {
    const it = await world();
    await it.change();
    expect(it.reporter.messages('KUBELET_PATH_NOT_CHECKED')[0]).toMatch(
      /^the connection from the API server to the kubelet is not checked: cannot get /,
    );
    const reader = await world({ user: READER });
    for (const object of [...may('get', 'nodes'), ...may('list', 'pods')]) await reader.admin.create(object);
    reach(reader, shows);
    await reader.change(() => reach(reader, 'down'));
    expect(reader.reporter.messages('KUBELET_PATH_NOT_CHECKED')[0]).toContain('cannot get resource "nodes/proxy"');
  });
});

describe('join --wait-ready', () => {
  const joined = ({ context }: Awaited<ReturnType<typeof world>>, readyMs: number | null = 60_000) =>
    waitForNode(context, { nodeName: 'w1', timeoutMs: 30_000, readyMs, probeImage: PAUSE, admin: null });

  it('starts a probe pod on the new node', async () => {
    const it = await world();
    await joined(it);
    expect([it.created.length, leftProbes(it.admin), it.reporter.events]).toEqual([1, [], []]);
    await joined(it, null);
    expect(it.created).toHaveLength(1);
  });

  it('reads the probe pod of a new node, which nothing reverts, as a poll', async () => {
    const it = await world({ countsPolls: true });
    await joined(it);
    expect(new Set(it.polls)).toEqual(new Set(['Pod']));
  });

  it('ends with the interruption that rejects a read of the probe pod, and deletes the pod', async () => {
    const it = await world();
    const controller = new AbortController();
    const reason = new AppError({ code: 'INTERRUPTED', message: 'interrupted' });
    const get = async (): Promise<never> => {
      controller.abort(reason);
      throw reason;
    };
    const cluster = { ...it.cluster, forPolls: { ...it.cluster, get } };
    await expect(joined({ ...it, context: { ...it.context, cluster, signal: controller.signal } })).rejects.toBe(reason);
    expect([it.created.length, leftProbes(it.admin)]).toEqual([1, []]);
  });

  it('fails when the probe pod does not start', async () => {
    const it = await world({ probes: () => failed('OutOfpods', 'too many pods') });
    await expect(joined(it)).rejects.toMatchObject({
      code: 'PROBE_POD_FAILED',
      message: expect.stringContaining(
        'kubelet-wait-bootstrap/node: Node w1 cannot start new pods, because the probe pod kube-system/kubeletadm-probe-w1-',
      ),
    });
    expect(leftProbes(it.admin)).toEqual([]);
  });

  it('warns when the image of the probe pod is not available, or the pod is refused', async () => {
    const it = await world({ probes: () => waitingPod('ImagePullBackOff', 'offline') });
    await joined(it);
    it.admin.failNext('create Pod', new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'forbidden' }));
    await joined(it);
    expect(it.reporter.events.filter(({ level }) => level === 'warning')).toMatchObject([
      { code: 'PROBE_POD_UNUSED', message: expect.stringContaining('ImagePullBackOff: offline'), verbosity: 0 },
      { code: 'PROBE_POD_UNUSED', message: expect.stringContaining('forbidden') },
    ]);
  });
});
