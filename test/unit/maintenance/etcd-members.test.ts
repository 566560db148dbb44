import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { requireEtcdMembers } from '../../../src/maintenance/drain/etcd-members.ts';
import { drainPod } from '../../support/drain-objects.ts';
import { drainWorld, put } from '../../support/drain-world.ts';

function member(node: string, isReady = true): KubeObject {
  const pod = drainPod(`etcd-${node}`, node, {
    of: null,
    namespace: 'kube-system',
    isReady,
    annotations: { 'kubernetes.io/config.mirror': 'x' },
  });
  return { ...pod, metadata: { ...pod.metadata, labels: { component: 'etcd', tier: 'control-plane' } } };
}

describe('the etcd members before the change of a control plane', () => {
  it('are Ready, except that of the control plane itself', async () => {
    const world = drainWorld([member('cp1', false), member('cp2'), member('cp3')]);
    await requireEtcdMembers(world, 'cp1');
    expect(world.reporter.codes()).toEqual([]);
  });

  it('may become Ready, for example after the change of another control plane', async () => {
    const world = drainWorld([member('cp1'), member('cp2', false)]);
    world.clock.at(30_000, () => put(world.cluster, member('cp2')));
    await requireEtcdMembers(world, 'cp1');
    expect(world.clock.elapsedMs).toBeGreaterThanOrEqual(30_000);
    expect(world.reporter.messages('WAITING')).toContain('waiting for etcd members to be Ready, 10 s: kube-system/etcd-cp2');
  });

  it('refuse the change if another one stays unhealthy', async () => {
    const world = drainWorld([member('cp1'), member('cp2', false)]);
    await expect(requireEtcdMembers(world, 'cp1')).rejects.toMatchObject({
      exitCode: 3,
      problems: [
        { code: 'ETCD_MEMBER_NOT_READY', message: expect.stringContaining('another etcd member is not Ready (kube-system/etcd-cp2)') },
      ],
    });
  });

  it('are reported as not known without static Pods of etcd', async () => {
    const world = drainWorld([]);
    await requireEtcdMembers(world, 'cp1');
    expect(world.reporter.codes()).toEqual(['ETCD_NOT_CHECKED']);
  });
});
