import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { podLosses, runningPods } from '../../../../src/kubelet/health/baseline.ts';
import { readPod } from '../../../../src/kubelet/workload/pod.ts';
import { type FakePod, fakePod, RUNNING, waitingPod } from '../../../support/pods-on-node.ts';

const podOf = ({ uid = 'u1', deleted = false, ...pod }: Partial<FakePod> & { readonly uid?: string; readonly deleted?: boolean }) => {
  const object = fakePod({ name: 'web', ...pod });
  const deletion = deleted ? { deletionTimestamp: '2030-01-01T00:00:00Z' } : {};
  return readPod({ ...object, metadata: { ...object.metadata, uid, ...deletion } });
};
const failed = (reason: string, message = ''): JsonObject => ({ phase: 'Failed', reason, message });

describe('the running pods of a node', () => {
  it.each<[string, Parameters<typeof podOf>[0], boolean]>([
    ['Running', {}, true],
    ['in CrashLoopBackOff', { status: waitingPod('CrashLoopBackOff', '', 'Running') }, true],
    ['with a container that cannot be started', { status: waitingPod('RunContainerError', '', 'Running') }, false],
    ['Pending', { status: waitingPod('ContainerCreating') }, false],
    ['Succeeded', { status: { phase: 'Succeeded' } }, false],
    ['Failed', { status: failed('OutOfpods') }, false],
    ['without a status', { status: {} }, false],
    ['deleted', { deleted: true }, false],
  ])('of a pod that is %s', (_, pod, counts) => {
    expect(runningPods([podOf(pod)])).toEqual(counts ? [{ uid: 'u1', name: 'default/web', isStatic: false }] : []);
  });
});

describe('the loss of a pod', () => {
  const before = runningPods([podOf({})]);
  const staticBefore = runningPods([podOf({ isStatic: true })]);

  it.each([
    'OutOfpods',
    'OutOfcpu',
    'OutOfmemory',
    'OutOfephemeral-storage',
    'NodeAffinity',
    'NodeName',
    'UnexpectedAdmissionError',
    'TopologyAffinityError',
    'SMTAlignmentError',
    'SysctlForbidden',
    'AppArmor',
    'PodOSNotSupported',
  ])('is its rejection by the kubelet with %s', (reason) => {
    expect(podLosses(before, [podOf({ status: failed(reason, 'too many pods') })])).toEqual([
      { kind: 'pod-rejected', pod: 'default/web', seen: `${reason}: too many pods` },
    ]);
  });

  it.each<[string, boolean]>([
    ['The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi', true],
    ['The node had condition: [DiskPressure]. ', true],
    ['Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ', false],
    ['Container main exceeded its local ephemeral storage limit "1Mi". ', false],
    ['Usage of EmptyDir volume "cache" exceeds the limit "1Mi". ', false],
  ])('is its eviction only because of the node: %s', (message, isLoss) => {
    const losses = podLosses(before, [podOf({ status: failed('Evicted', message) })]);
    expect(losses.map(({ kind }) => kind)).toEqual(isLoss ? ['pod-evicted'] : []);
  });

  it.each(['RunContainerError', 'CreateContainerError', 'PreStartHookError', 'CreatePodSandboxError'])(
    'is a container that waits with %s',
    (reason) => {
      expect(podLosses(before, [podOf({ status: waitingPod(reason, 'pids.max: 1', 'Running') })])).toEqual([
        { kind: 'pod-not-started', pod: 'default/web', seen: `container main: ${reason}: pids.max: 1` },
      ]);
    },
  );

  it.each<[string, Parameters<typeof podOf>[0] | null]>([
    ['unchanged', {}],
    ['gone', null],
    ['being deleted', { deleted: true }],
    ['Succeeded', { status: { phase: 'Succeeded' } }],
    ['Failed for a reason of its own', { status: failed('', 'exit code 1') }],
    ['Failed with DeadlineExceeded', { status: failed('DeadlineExceeded') }],
    ['in CrashLoopBackOff', { status: waitingPod('CrashLoopBackOff', '', 'Running') }],
    ['waiting for its image', { status: waitingPod('ImagePullBackOff', '', 'Running') }],
    ['waiting without a ConfigMap', { status: waitingPod('CreateContainerConfigError', '', 'Running') }],
    ['finished, although a container waits', { status: waitingPod('RunContainerError', '', 'Failed') }],
  ])('is none if the pod is %s', (_, pod) => {
    expect(podLosses(before, pod === null ? [] : [podOf(pod)])).toEqual([]);
  });

  it('is none for a pod that did not run before', () => {
    expect(podLosses(before, [podOf({}), podOf({ uid: 'u2', name: 'new', status: failed('OutOfpods') })])).toEqual([]);
  });

  it('is none for a pod with the name of a deleted one', () => {
    expect(podLosses(before, [podOf({ uid: 'u2', status: failed('OutOfpods') })])).toEqual([]);
  });

  it.each<[string, Parameters<typeof podOf>[0] | null, string | null]>([
    ['runs', { isStatic: true }, null],
    ['has a new mirror pod', { isStatic: true, uid: 'u2' }, null],
    ['is gone', null, 'the static pod is gone'],
    ['is being deleted', { isStatic: true, deleted: true }, 'the static pod is being stopped'],
  ])('of a static pod that %s', (_, pod, seen) => {
    const losses = podLosses(staticBefore, pod === null ? [] : [podOf(pod)]);
    expect(losses).toEqual(seen === null ? [] : [{ kind: 'static-pod-gone', pod: 'default/web', seen }]);
  });

  it('is the rejection of a static pod, whose mirror pod may have another uid', () => {
    const rejected = podOf({ isStatic: true, status: failed('OutOfpods') });
    expect(podLosses(staticBefore, [rejected])).toMatchObject([{ kind: 'pod-rejected' }]);
    const restarted = podOf({ isStatic: true, uid: 'u2', status: RUNNING });
    expect(podLosses(staticBefore, [rejected, restarted])).toEqual([]);
  });
});
