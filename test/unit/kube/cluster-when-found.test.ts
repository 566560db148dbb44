import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/base/errors.ts';
import type { Cluster } from '../../../src/kube/cluster.ts';
import { clusterWhenFound } from '../../../src/kube/cluster-when-found.ts';

const NODE = { apiVersion: 'v1', kind: 'Node', name: 'a' };

/** A cluster that answers with its name. */
function named(server: string, more: Partial<Cluster> = {}): Cluster {
  const unused = async (): Promise<never> => {
    throw new Error('not expected');
  };
  return {
    server,
    version: async () => server,
    get: async () => ({ apiVersion: 'v1', kind: 'Node', metadata: { name: server } }),
    list: unused,
    create: unused,
    update: unused,
    patch: unused,
    delete: unused,
    evict: unused,
    getRaw: unused,
    async *watch() {
      yield { type: 'ADDED', object: { apiVersion: 'v1', kind: 'Node', metadata: { name: server } } };
    },
    close: unused,
    ...more,
  };
}

describe('a cluster that is being discovered', () => {
  it('answers after the discovery, and has the server of the found cluster', async () => {
    let resolve: (cluster: Cluster) => void = () => undefined;
    const promise = new Promise<Cluster>((settle) => {
      resolve = settle;
    });
    const cluster = clusterWhenFound('https://endpoint:6443', promise);
    const read = cluster.get(NODE);
    expect(cluster.server).toBe('https://endpoint:6443');
    resolve(named('https://found:6443'));
    expect((await read)?.metadata.name).toBe('https://found:6443');
    expect(cluster.server).toBe('https://found:6443');
    for await (const { type } of cluster.watch(NODE, {})) expect(type).toBe('ADDED');
  });

  it('uses the clients of the found cluster for waits', async () => {
    const found = named('all', { untilInterrupted: named('steps'), forPolls: named('polls') });
    const cluster = clusterWhenFound('', Promise.resolve(found));
    expect(await cluster.untilInterrupted?.version()).toBe('steps');
    expect(await cluster.forPolls?.version()).toBe('polls');
  });

  it('rejects requests with the error of the discovery', async () => {
    const failure = new AppError({ code: 'DISCOVERY_UNREACHABLE', message: 'unreachable' });
    const cluster = clusterWhenFound('', Promise.reject(failure));
    await expect(cluster.version()).rejects.toBe(failure);
    await expect(cluster.forPolls?.get(NODE)).rejects.toBe(failure);
  });
});
