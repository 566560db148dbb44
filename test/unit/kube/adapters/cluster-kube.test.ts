import { describe, expect, it } from 'vitest';
import { kubeCluster } from '../../../../src/kube/adapters/cluster-kube.ts';
import { pollClient, untilInterrupted } from '../../../../src/kube/cluster.ts';
import { createRequestRateLimiter } from '../../../../src/kube/request-rate-limiter.ts';
import { fakeClock } from '../../../support/fake-clock.ts';

const KUBECONFIG = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'c',
  contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  clusters: [{ name: 'c', cluster: { server: 'https://10.0.0.1:6443' } }],
  users: [{ name: 'u', user: {} }],
});
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'w1' };
const REASON = new Error('interrupted');

/** A cluster without a server, of which another request has just used the turn of this second. */
async function world() {
  const clock = fakeClock();
  const limiter = createRequestRateLimiter(clock);
  limiter.limit(1);
  await limiter.waitForSlot(undefined);
  const run = new AbortController();
  let connections = 0;
  const dial = async (): Promise<never> => {
    connections++;
    throw Object.assign(new Error('connect EHOSTUNREACH'), { code: 'EHOSTUNREACH' });
  };
  const cluster = kubeCluster({ kubeconfig: { text: KUBECONFIG, file: 'c.conf' }, clock, limiter, signal: run.signal, dial });
  return { cluster, run, connections: () => connections };
}

describe('requests that wait for their turn', () => {
  it.each([
    ['the repeated ones', pollClient],
    ['the first one', untilInterrupted],
  ])('end with the run if they belong to a wait: %s', async (_, clientOf) => {
    const { cluster, run, connections } = await world();
    const queued = clientOf(cluster).get(NODE);
    run.abort(REASON);
    await expect(queued).rejects.toBe(REASON);
    await expect(clientOf(cluster).get(NODE)).rejects.toBe(REASON);
    expect(connections()).toBe(0);
    await cluster.close();
  });

  it('are sent after an interruption if they belong to no wait, because they may clean up', async () => {
    const { cluster, run, connections } = await world();
    const queued = cluster.delete(NODE);
    run.abort(REASON);
    await expect(queued).rejects.toMatchObject({ code: 'CLUSTER_UNREACHABLE' });
    await expect(cluster.delete(NODE)).rejects.toMatchObject({ code: 'CLUSTER_UNREACHABLE' });
    expect(connections()).toBe(2);
    await cluster.close();
  });

  it('end when the connection is closed, if they belong to a wait', async () => {
    const { cluster, connections } = await world();
    const queued = pollClient(cluster).get(NODE);
    await cluster.close();
    await expect(queued).rejects.toMatchObject({ name: 'AbortError' });
    expect(connections()).toBe(0);
  });
});
