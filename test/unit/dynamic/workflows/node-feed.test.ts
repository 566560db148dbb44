import { afterEach, expect, it } from 'vitest';
import type { Clock } from '../../../../src/base/clock.ts';
import { type NodeFeed, openNodeFeed } from '../../../../src/dynamic/workflows/follow-nodes.ts';
import { clusterRefused, clusterUnreachable, isTemporaryError } from '../../../../src/kube/cluster-problems.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';

const node = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { pool: 'edge' } } });
const ref = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });
const turn = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

/** Sleeps end only when the test ends them. */
function sleepyClock(): Clock & { wake(): void } {
  let wake: (() => void)[] = [];
  return {
    now: () => new Date('2030-01-01'),
    wake: () => {
      for (const one of wake.splice(0)) one();
      wake = [];
    },
    sleep: (_, signal) =>
      new Promise((resolve, reject) => {
        wake.push(resolve);
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
  };
}

let feed: NodeFeed;
afterEach(() => feed.close());

async function open(labelSelector?: string) {
  const cluster = fakeCluster({ objects: [node('n1'), node('n2'), node('other')] });
  const clock = sleepyClock();
  feed = await openNodeFeed(['n1', 'n2'], { cluster, clock, random: () => 0.5, signal: new AbortController().signal, labelSelector });
  await turn();
  const names = async (): Promise<string> => (await feed.read()).map(({ config }) => config.name).join(' ');
  return { cluster, clock, names, calls: () => cluster.calls.filter((call) => /^(get|list|watch) (Node|Event)/.test(call)) };
}

it('lists nodes once, and then watches them', async () => {
  const { cluster, names, calls } = await open();
  const before = calls();
  expect(before.filter((call) => call.startsWith('watch')).sort()).toEqual(['watch Event in default', 'watch Node']);
  for (let i = 0; i < 100; i++) expect(await names()).toBe('n1 n2');
  await cluster.patch(ref('n1'), 'merge', { status: { conditions: [{ type: 'Ready', status: 'True' }] } }, { subresource: 'status' });
  await turn();
  expect((await feed.read())[0]?.config.isReady).toBe(true);
  expect(calls()).toEqual(before);
  await cluster.delete(ref('n2'));
  await turn();
  expect(await names()).toBe('n1');
});

it('keeps a node that lost the label of the selector', async () => {
  const { cluster, names } = await open('pool=edge');
  expect(await names()).toBe('n1 n2');
  await cluster.patch(ref('n2'), 'merge', { metadata: { labels: { pool: null } } });
  await turn();
  expect(await names()).toBe('n1 n2');
  await turn();
  expect(await names()).toBe('n1 n2');
  await cluster.delete(ref('n2'));
  await turn();
  expect(await names()).toBe('n1');
});

it('polls if watches are forbidden', async () => {
  const { cluster, clock, names } = await open();
  for (let i = 0; i < 9; i++) cluster.failNext('watch Node', clusterRefused('watch Node', { httpStatus: 403, message: 'forbidden' }));
  cluster.endWatches();
  await turn();
  for (let i = 0; i < 5; i++) {
    clock.wake();
    await turn();
    expect(await names()).toBe('n1 n2');
  }
  await cluster.delete(ref('n2'));
  clock.wake();
  await turn();
  expect(await names()).toBe('n1');
});

it('reports an unreachable API server, and continues when it is reachable again', async () => {
  const { cluster, clock, names } = await open();
  for (const call of ['watch Node', 'list Node', 'list Node'])
    cluster.failNext(call, clusterUnreachable(cluster.server, 'refused', 'Wait'));
  cluster.endWatches();
  await turn();
  for (let i = 0; i < 2; i++) {
    clock.wake();
    await turn();
  }
  await expect(feed.read()).rejects.toSatisfy(isTemporaryError);
  for (let i = 0; i < 3; i++) {
    clock.wake();
    await turn();
  }
  expect(await names()).toBe('n1 n2');
});
