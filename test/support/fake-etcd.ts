import type { Cluster } from '../../src/kube/cluster.ts';
import { type EtcdMemberState, etcdMemberObject, etcdMemberOf } from '../../src/kubeadm/control-plane/etcd-member.ts';

/** The members of an etcd cluster in memory. */
export interface FakeEtcd extends Cluster {
  readonly members: EtcdMemberState[];
  healthy: boolean;
}

/** Announced members start when the test names them. */
export function fakeEtcd(members: readonly EtcdMemberState[]): FakeEtcd {
  const all = [...members];
  const named = (name: string) => all.find((member) => etcdMemberObject(member).metadata.name === name);
  const never = (): never => {
    throw new Error('members have none of that');
  };
  const etcd: FakeEtcd = {
    server: 'https://etcd.test:2379',
    members: all,
    healthy: true,
    version: async () => '3.6.8',
    list: async () => ({ items: all.map(etcdMemberObject), resourceVersion: '' }),
    get: async ({ name }) => {
      const found = named(name);
      return found === undefined ? null : etcdMemberObject(found);
    },
    create: async (object) => {
      all.push({ ...etcdMemberOf(object), name: '', id: String(all.length + 1) });
      return object;
    },
    patch: async ({ name }) => {
      const found = named(name) as EtcdMemberState;
      const promoted = { ...found, isLearner: false };
      all.splice(all.indexOf(found), 1, promoted);
      return etcdMemberObject(promoted);
    },
    delete: async ({ name }) => {
      const found = named(name);
      if (found === undefined) return null;
      all.splice(all.indexOf(found), 1);
      return etcdMemberObject(found);
    },
    getRaw: async () => ({ health: String(etcd.healthy) }),
    update: never,
    watch: never,
    close: async () => undefined,
  };
  return etcd;
}
