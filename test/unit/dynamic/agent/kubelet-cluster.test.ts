import { describe, expect, it } from 'vitest';
import { kubeletCluster } from '../../../../src/dynamic/agent/cluster-access.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';

const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' };

function begin() {
  const clock = fakeClock();
  const api = fakeCluster({ objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }] });
  const world = {
    clock,
    text: 'a' as string | Error,
    reads: 0,
    made: [] as (FakeCluster & { text: string; isClosed: boolean })[],
    issues: [] as string[],
  };
  const cluster = kubeletCluster({
    clock,
    read: async () => {
      world.reads++;
      const { text } = world;
      if (text instanceof Error) throw text;
      const connect = async () => {
        const one = Object.assign(fakeCluster({ sharedWith: api }), { text, isClosed: false });
        const { close } = one;
        one.close = async () => {
          one.isClosed = true;
          await close();
        };
        world.made.push(one);
        return one;
      };
      return { text, connect };
    },
    onIssue: (message) => world.issues.push(message),
  });
  return { world, cluster };
}

describe("the API server of the kubelet's kubeconfig", () => {
  it('reads the kubeconfig once for many requests, and again after half a minute', async () => {
    const { world, cluster } = begin();
    await Promise.all([cluster.get(NODE), cluster.get(NODE)]);
    await cluster.get(NODE);
    expect([world.reads, world.made.length]).toEqual([1, 1]);
    world.clock.advance(31_000);
    await cluster.get(NODE);
    expect([world.reads, world.made.length]).toEqual([2, 1]);
  });

  it('reconnects after a change, and ends the watches of the previous connection', async () => {
    const { world, cluster } = begin();
    const { resourceVersion } = await cluster.list({ apiVersion: 'v1', kind: 'Node' });
    const watch = cluster.watch({ apiVersion: 'v1', kind: 'Node' }, { resourceVersion })[Symbol.asyncIterator]();
    const event = watch.next();
    await cluster.get(NODE);
    world.text = 'b';
    world.clock.advance(31_000);
    await cluster.get(NODE);
    expect(world.made.map(({ text, isClosed }) => [text, isClosed])).toEqual([
      ['a', true],
      ['b', false],
    ]);
    expect((await event).done).toBe(true);
  });

  it('keeps the connection while the file is missing, and reports that', async () => {
    const { world, cluster } = begin();
    await cluster.get(NODE);
    world.text = new Error('no such file');
    world.clock.advance(31_000);
    expect(await cluster.get(NODE)).not.toBeNull();
    expect(world.issues.join()).toContain('no such file');
    world.text = 'b';
    await cluster.get(NODE);
    expect(world.made.length).toBe(2);
  });

  it('fails with the cause until the file exists, and then connects', async () => {
    const { world, cluster } = begin();
    world.text = new Error('no such file');
    await expect(cluster.get(NODE)).rejects.toThrow('no such file');
    world.text = 'a';
    expect(await cluster.get(NODE)).not.toBeNull();
  });
});
