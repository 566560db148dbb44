import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { readPodInput } from '../../../../src/kubelet/workload/read-pod-input.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakePod } from '../../../support/pods-on-node.ts';

describe('the pods a change can affect', () => {
  it.each<[string, JsonObject, JsonObject, boolean]>([
    ['a raised pod limit', { maxPods: 20 }, { maxPods: 110 }, false],
    ['a lowered pod limit', { maxPods: 110 }, { maxPods: 20 }, true],
    ['a pod limit in place of the default', {}, { maxPods: 20 }, true],
    ['another log level', { maxPods: 20 }, { maxPods: 20, logging: { verbosity: 4 } }, false],
    ['a reservation', {}, { systemReserved: { cpu: '1' } }, true],
  ])('are read only where they are needed: %s', async (_, before, after, isRead) => {
    const cluster = fakeCluster({ objects: [fakePod({ name: 'web' })] });
    const { pods } = await readPodInput(cluster, 'w1', { before, after });
    expect(pods?.map(({ name }) => name) ?? null).toEqual(isRead ? ['default/web'] : null);
  });
});
