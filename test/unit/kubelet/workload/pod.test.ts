import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { readPod } from '../../../../src/kubelet/workload/pod.ts';

const MI = 2 ** 20;
const podWith = (spec: JsonObject, status: JsonObject = {}, annotations: Readonly<Record<string, string>> = {}) =>
  readPod({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'default', uid: 'u', annotations }, spec, status });
const requests = (own: JsonObject): JsonObject => ({ resources: { requests: own } });

describe('the requests of a pod', () => {
  const cpuOf = (spec: JsonObject): number => podWith(spec).requests.cpuMillis;

  it('are the sum of its containers, in units of the kubelet', () =>
    expect(
      podWith({
        containers: [
          requests({ cpu: '250m', memory: '64Mi', 'ephemeral-storage': '1Ki' }),
          requests({ cpu: '1.5', memory: '1Mi' }),
          { resources: { limits: { cpu: '9' } } },
          {},
        ],
      }).requests,
    ).toEqual({ cpuMillis: 1750, memoryBytes: 65 * MI, ephemeralBytes: 1024 }));

  it.each<readonly [string, JsonObject, number]>([
    ['a smaller init container', { containers: [requests({ cpu: 2 })], initContainers: [requests({ cpu: '1' })] }, 2000],
    [
      'the largest init container',
      { containers: [requests({ cpu: '1' })], initContainers: [requests({ cpu: '3' }), requests({ cpu: '2' })] },
      3000,
    ],
    [
      'a sidecar in addition to the containers',
      { containers: [requests({ cpu: '1' })], initContainers: [{ ...requests({ cpu: '500m' }), restartPolicy: 'Always' }] },
      1500,
    ],
    [
      'an init container in addition to the sidecars before it',
      {
        containers: [requests({ cpu: '100m' })],
        initContainers: [{ ...requests({ cpu: '1' }), restartPolicy: 'Always' }, requests({ cpu: '2' })],
      },
      3000,
    ],
    [
      'an init container without the sidecars after it',
      {
        containers: [requests({ cpu: '100m' })],
        initContainers: [requests({ cpu: '2' }), { ...requests({ cpu: '1' }), restartPolicy: 'Always' }],
      },
      2000,
    ],
    ['the pod level instead of its containers', { containers: [requests({ cpu: '2' })], ...requests({ cpu: '500m' }) }, 500],
    ['the overhead of its runtime class', { containers: [requests({ cpu: '1' })], overhead: { cpu: '250m' } }, 1250],
    ['no requests', { containers: [{}] }, 0],
    ['requests that are no quantities', { containers: [requests({ cpu: 'much' }), 'x', null] }, 0],
  ])('include %s', (_, spec, cpu) => expect(cpuOf(spec)).toBe(cpu));

  it('take only the resources that the pod level names', () =>
    expect(podWith({ containers: [requests({ cpu: '2', memory: '1Mi' })], ...requests({ memory: '2Mi' }) }).requests).toEqual({
      cpuMillis: 2000,
      memoryBytes: 2 * MI,
      ephemeralBytes: 0,
    }));
});

describe('a pod', () => {
  it('has a state and waiting containers', () => {
    const status = {
      phase: 'Running',
      reason: 'R',
      conditions: [{ type: 'Ready', status: 'True' }],
      initContainerStatuses: [{ name: 'i', restartCount: 1 }],
      containerStatuses: [{ name: 'c', restartCount: 2, state: { waiting: { reason: 'CrashLoopBackOff', message: 'm' } } }],
    };
    expect(podWith({ hostNetwork: true }, status)).toMatchObject({
      name: 'default/a',
      phase: 'Running',
      reason: 'R',
      isReady: true,
      isStatic: false,
      waiting: [{ name: 'c', reason: 'CrashLoopBackOff', message: 'm' }],
    });
  });

  it('is static with the annotation of a mirror pod', () =>
    expect(podWith({}, {}, { 'kubernetes.io/config.mirror': 'hash' }).isStatic).toBe(true));

  it('without a status is not ready', () => expect(podWith({})).toMatchObject({ phase: '', isReady: false, waiting: [] }));
});
