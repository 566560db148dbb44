import { expect, it } from 'vitest';
import { listWatch } from '../../../src/kube/list-watch.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { virtualClock } from '../../support/virtual-clock.ts';

it('keeps only the reduced form of listed and changed objects', async () => {
  const cluster = fakeCluster();
  const node = { apiVersion: 'v1', kind: 'Node' };
  const spec = { podCIDR: '10.0.0.0/24' };
  const create = (name: string) => cluster.create({ ...node, metadata: { name }, spec });
  await create('listed');
  const stop = new AbortController();
  const seen: (readonly KubeObject[])[] = [];
  await listWatch(node, {
    cluster,
    clock: virtualClock(),
    random: () => 0.5,
    signal: stop.signal,
    reduce: ({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata }),
    onObjects: (objects) => {
      seen.push([...objects.values()]);
      if (objects.size === 1) void create('added');
      else stop.abort();
    },
    onIssue: (error) => {
      throw error;
    },
  });
  expect(seen.map((objects) => objects.map(({ metadata, spec: kept }) => [metadata.name, kept]))).toEqual([
    [['listed', undefined]],
    [
      ['listed', undefined],
      ['added', undefined],
    ],
  ]);
});
