import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import { workflowMember } from '../../../src/fleet/run/workflow-member.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { plannedDrains } from '../../../src/maintenance/drain/planned-drains.ts';
import { CORDON_ANNOTATION } from '../../../src/maintenance/node-hold.ts';
import { drainNode } from '../../support/drain-objects.ts';
import { drainWorld, put } from '../../support/drain-world.ts';
import type { FakeCluster } from '../../support/fake-cluster.ts';
import { fakeHost } from '../../support/fake-host.ts';

const lease = (renewTime: string): KubeObject => ({
  ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'n1', namespace: 'kube-node-lease' } },
  spec: { renewTime },
});

interface Failure {
  readonly exitCode?: 1 | 3 | 5;
  readonly waitMs?: number;
  /** The cluster is read with the credentials of the host. */
  readonly isOwn?: boolean;
  readonly prepare?: (cluster: FakeCluster) => void;
}

/** Whether the Node of a host counts as down after its change failed. */
async function isDownAfterFailure(
  objects: readonly KubeObject[],
  renewsAfterMs: number | null = null,
  { exitCode = 1, waitMs = 15_000, isOwn = false, prepare }: Failure = {},
): Promise<boolean | undefined> {
  const world = drainWorld(objects);
  const { cluster, clock, reporter } = world;
  prepare?.(cluster);
  if (renewsAfterMs !== null) clock.at(renewsAfterMs, () => put(cluster, lease('2030-01-01T00:00:10Z')));
  const member = workflowMember({
    name: 'h1',
    connect: async () => fakeHost({ name: 'h1' }),
    cluster: isOwn ? null : cluster,
    ...(isOwn ? { clusterOf: async () => cluster } : {}),
    clock,
    draining: { policy: { isAllowed: true, isForced: false, timeoutMs: 60_000 }, planned: plannedDrains(world.run) },
    planHost: async ({ claim }) => {
      claim?.set('h1', { nodeName: 'n1', isProven: true, machineId: 'a' });
      const failed = async () => Promise.reject(new AppError({ code: 'FAILED', message: 'a test' }, { exitCode }));
      return { host: { name: 'h1', phases: [] }, warnings: [], refusals: [], apply: failed };
    },
  });
  const open = await member.open({ parseText: JSON.parse, reporter, signal: world.signal, isInspection: false });
  await expect(open.apply()).rejects.toMatchObject({ code: 'FAILED' });
  await open.close();
  return open.isNodeDown?.(waitMs);
}

const left = (): KubeObject => {
  const owner = JSON.stringify({ run: 'run-1', operator: 'alice@laptop', renewed: '2030-01-01T00:00:00Z' });
  const node = drainNode('n1', { unschedulable: true });
  return { ...node, metadata: { ...node.metadata, annotations: { [CORDON_ANNOTATION]: owner } } };
};
const notReady = (): KubeObject => ({ ...drainNode('n1'), status: { conditions: [{ type: 'Ready', status: 'False' }] } });

describe('a host whose change failed is down', () => {
  it.each([
    [
      'if its kubelet does not renew its Lease, although the Node is still Ready',
      [drainNode('n1'), lease('2030-01-01T00:00:00Z')],
      null,
      true,
    ],
    ['unless its kubelet renews the Lease', [drainNode('n1'), lease('2030-01-01T00:00:00Z')], 8_000, false],
    ['if its Node is not Ready', [notReady(), lease('2030-01-01T00:00:00Z')], 8_000, true],
    ['if its Node was left cordoned', [left(), lease('2030-01-01T00:00:00Z')], 8_000, true],
    ['unless its Node is Ready, and no Lease can be read', [drainNode('n1')], null, false],
    ['unless it has no Node', [drainNode('n2')], null, false],
  ] as const)('%s', async (_, objects, renewsAfterMs, isDown) => {
    expect(await isDownAfterFailure(objects, renewsAfterMs)).toBe(isDown);
  });

  it('if its Lease cannot be read now', async () => {
    const prepare = ({ failNext }: FakeCluster): void => {
      for (let i = 0; i < 100; i++)
        failNext('get Lease', new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'no response within 10 s' }));
    };
    expect(await isDownAfterFailure([drainNode('n1'), lease('2030-01-01T00:00:00Z')], null, { prepare })).toBe(true);
  });

  it('if its cluster was read with the credentials of the host, and the connection is closed', async () => {
    expect(await isDownAfterFailure([drainNode('n1'), lease('2030-01-01T00:00:00Z')], null, { isOwn: true })).toBe(true);
  });
});

it.each([3, 5] as const)('a host whose change ended with exit code %d is down only until its Node is Ready', async (exitCode) => {
  const options = { exitCode, waitMs: 0 };
  expect(await isDownAfterFailure([drainNode('n1'), lease('2030-01-01T00:00:00Z')], null, options)).toBe(false);
  expect(await isDownAfterFailure([notReady()], null, options)).toBe(true);
});
