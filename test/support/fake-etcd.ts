import type { EtcdCluster, EtcdMemberState } from '../../src/kube/etcd-cluster.ts';

/** The members of an etcd cluster in memory. */
export interface FakeEtcd extends EtcdCluster {
  readonly all: EtcdMemberState[];
  isHealthy: boolean;
}

/** Announced members start when the test gives them a name. */
export function fakeEtcd(members: readonly EtcdMemberState[]): FakeEtcd {
  const all = [...members];
  const indexOf = (id: string): number => {
    const index = all.findIndex((member) => member.id === id);
    if (index < 0) throw new Error(`the fake etcd has no member ${id}`);
    return index;
  };
  const etcd: FakeEtcd = {
    all,
    isHealthy: true,
    members: async () => [...all],
    addLearner: async (peerURL) => {
      all.push({ name: '', id: String(all.length + 1), peerURLs: [peerURL], clientURLs: [], isLearner: true });
    },
    promote: async (id) => {
      const index = indexOf(id);
      all.splice(index, 1, { ...(all[index] as EtcdMemberState), isLearner: false });
    },
    remove: async (id) => {
      all.splice(indexOf(id), 1);
    },
    health: async () => ({ healthy: etcd.isHealthy, reason: '' }),
    version: async () => '3.6.8',
  };
  return etcd;
}
