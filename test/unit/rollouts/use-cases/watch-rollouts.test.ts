import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { rolloutDefinition } from '../../../../src/rollouts/api/crd.ts';
import { leaderLease } from '../../../../src/rollouts/controller/lease.ts';
import { watchRollouts } from '../../../../src/rollouts/use-cases/watch-rollouts.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { poolNode, poolRevisions } from '../../../support/rollout-page-objects.ts';
import { virtualClock } from '../../../support/virtual-clock.ts';

const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } };
const FORBIDDEN = new AppError({ code: 'CLUSTER_FORBIDDEN', message: 'nodes is forbidden' });

describe('watchRollouts', () => {
  it('reports a list that fails until it succeeds, and follows the objects', async () => {
    const cluster = fakeCluster({ objects: [NAMESPACE, poolNode('n1', 'edge'), ...poolRevisions('edge', [100])] });
    await cluster.create(rolloutDefinition());
    cluster.failNext('list Node', FORBIDDEN);
    const stop = new AbortController();
    const watched = watchRollouts(cluster, { clock: virtualClock(), signal: stop.signal, random: () => 0.5 });
    await watched.ready;
    expect(watched.objects()).toMatchObject({ nodes: [], issues: FORBIDDEN.problems, revisions: [{ revision: 1 }] });
    await expect.poll(() => watched.objects().issues).toEqual([]);
    const before = watched.version();
    await cluster.create(poolNode('n2', 'edge'));
    await expect.poll(() => watched.objects().nodes.map(({ metadata }) => metadata.name)).toEqual(['n1', 'n2']);
    expect(watched.version()).toBeGreaterThan(before);
    stop.abort();
    await watched.ended();
  });

  it('reports whether a controller renews its Lease', async () => {
    const clock = virtualClock();
    const spec = { holderIdentity: 'controller-1', renewTime: clock.now().toISOString() };
    const { apiVersion, kind, ...metadata } = leaderLease('kubeletadm-system');
    const cluster = fakeCluster({ objects: [NAMESPACE, { apiVersion, kind, metadata, spec }] });
    await cluster.create(rolloutDefinition());
    const stop = new AbortController();
    // The sleep between two polls lets the time pass, and the Lease is not renewed.
    const seen: unknown[] = [];
    const sleep: typeof clock.sleep = (ms, signal) => {
      seen.push(watched.objects().isControllerAlive);
      if (seen.length === 10) stop.abort();
      return clock.sleep(ms, signal);
    };
    const watched = watchRollouts(cluster, { clock: { now: clock.now, sleep }, signal: stop.signal, random: () => 0.5 });
    await watched.ended();
    expect([...new Set(seen)]).toEqual([true, false]);
  });

  it('ends also if it is aborted before the first answer', async () => {
    const cluster = fakeCluster();
    const stop = new AbortController();
    stop.abort();
    const watched = watchRollouts(cluster, { clock: fakeClock(), signal: stop.signal, random: () => 0.5 });
    await watched.ended();
    expect(watched.objects()).toMatchObject({ rollouts: [], nodes: [], isControllerAlive: null });
  });
});
