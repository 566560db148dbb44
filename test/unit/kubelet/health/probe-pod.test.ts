import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { probePod, readProbe } from '../../../../src/kubelet/health/probe-pod.ts';
import { fakePod, RUNNING, waitingPod } from '../../../support/pods-on-node.ts';

const read = (status: JsonObject) => readProbe(fakePod({ name: 'probe', status }));
const terminated = (reason: string, message = ''): JsonObject => ({
  phase: 'Running',
  containerStatuses: [{ name: 'main', restartCount: 0, state: { terminated: { reason, message, exitCode: 128 } } }],
});

describe('a probe pod', () => {
  it('requests nothing and passes the restricted Pod Security Standard', () => {
    const { metadata, spec } = probePod('p', 'registry.k8s.io/pause:3.10');
    expect(metadata).toEqual({ name: 'p', namespace: 'kube-system', labels: { 'kubeletadm.dev/probe': 'true' } });
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          image: 'registry.k8s.io/pause:3.10',
          imagePullPolicy: 'IfNotPresent',
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    });
    expect(JSON.stringify(spec)).not.toMatch(/hostNetwork|hostPID|resources|privileged":true/);
  });
});

describe('the result of a probe pod', () => {
  it('is started when its container runs or ran', () => {
    expect(read(RUNNING)).toEqual({ state: 'started' });
    expect(read(terminated('Completed'))).toEqual({ state: 'started' });
    expect(read(terminated('Error'))).toEqual({ state: 'started' });
  });

  it.each<[string, JsonObject, string]>([
    ['no status', {}, 'its container has not started (no status)'],
    ['a scheduled pod', { phase: 'Pending' }, 'its container has not started (Pending)'],
    ['a container being created', waitingPod('ContainerCreating'), 'its container has not started (Pending)'],
    ['an init container', waitingPod('PodInitializing'), 'its container has not started (Pending)'],
    [
      'a pod without its sandbox',
      { ...waitingPod('ContainerCreating'), conditions: [{ type: 'PodReadyToStartContainers', status: 'False' }] },
      'its sandbox is not ready',
    ],
  ])('is starting with %s', (_, status, seen) => {
    expect(read(status)).toEqual({ state: 'starting', seen });
  });

  it('is starting when the API server does not have the pod', () => {
    expect(readProbe(null)).toMatchObject({ state: 'starting' });
  });

  it.each<[JsonObject, string]>([
    [{ phase: 'Failed', reason: 'OutOfpods', message: 'too many pods' }, 'OutOfpods: too many pods'],
    [{ phase: 'Failed', reason: 'UnexpectedAdmissionError', message: '' }, 'UnexpectedAdmissionError'],
    [{ phase: 'Failed' }, 'no reason reported'],
    [waitingPod('RunContainerError', 'fork: resource unavailable'), 'RunContainerError: fork: resource unavailable'],
    [waitingPod('CreateContainerError', 'no cgroup'), 'CreateContainerError: no cgroup'],
    [waitingPod('CreateContainerConfigError', 'not root'), 'CreateContainerConfigError: not root'],
    [waitingPod('CrashLoopBackOff', 'back-off 10s'), 'CrashLoopBackOff: back-off 10s'],
    [terminated('StartError', 'pids.max'), 'StartError: pids.max'],
    [terminated('ContainerCannotRun'), 'ContainerCannotRun'],
  ])('is failed: %j', (status, why) => {
    expect(read(status)).toEqual({ state: 'failed', why });
  });

  it.each(['ErrImagePull', 'ImagePullBackOff', 'ErrImageNeverPull', 'InvalidImageName', 'ImageInspectError'])(
    'is unusable without its image: %s',
    (reason) => {
      expect(read(waitingPod(reason, 'not found'))).toEqual({
        state: 'unusable',
        why: `the image of the probe pod is not available: ${reason}: not found`,
      });
    },
  );
});
