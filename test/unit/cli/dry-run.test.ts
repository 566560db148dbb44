import { expect, it } from 'vitest';
import type { CommandServices } from '../../../src/cli/command.ts';
import { readOnly } from '../../../src/cli/dry-run.ts';
import { fakeCluster } from '../../support/fake-cluster.ts';
import { fakeEtcd } from '../../support/fake-etcd.ts';
import { fakeHost } from '../../support/fake-host.ts';

it('gives ports that cannot change a host, a cluster or the members of etcd', async () => {
  const [host, cluster, etcd] = [fakeHost(), fakeCluster(), fakeEtcd([])];
  const ports = { connectHost: async () => host, connectCluster: async () => cluster, connectEtcd: async () => etcd };
  const { connectHost, connectCluster, connectEtcd } = readOnly(ports as unknown as CommandServices);
  const revision = cluster.store.revision();
  const removal = { kind: 'remove-file', path: '/etc/hosts', reason: '' } as const;
  await expect((await connectHost({})).perform([removal])).rejects.toThrow('a dry run changes nothing');
  const members = await connectEtcd({} as never);
  for (const change of [members.addLearner, members.promote, members.remove])
    await expect(change('https://10.0.0.1:2380')).rejects.toThrow('a dry run changes nothing');
  await (await connectCluster({} as never)).create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
  expect(cluster.store.revision()).toBe(revision);
});
