import { describe, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { findRealBinaries, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { type ClusterWorld, clusterContract } from './cluster.ts';

const withKubeconfig = (text: string): Cluster => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

clusterContract('FakeCluster', async () => {
  const cluster = fakeCluster();
  return {
    cluster,
    as: async (name, groups = []) => fakeCluster({ user: { name, groups }, sharedWith: cluster }),
    proxyNode: cluster.proxyNode,
    forgetHistory: async () => cluster.store.compact(),
    bookmark: cluster.bookmark,
    restart: null,
    close: cluster.close,
  };
});

clusterContract('kubeCluster and the API server double', async () => {
  const server = await startApiServer();
  const cluster = withKubeconfig(server.adminKubeconfig());
  return {
    cluster,
    as: async (user, groups) => withKubeconfig(await server.kubeconfigFor(user, groups)),
    proxyNode: server.proxyNode,
    forgetHistory: async () => server.compact(),
    bookmark: server.bookmark,
    restart: (whileDown) => server.restart({ whileDown }),
    close: async () => {
      await cluster.close();
      await server.close();
    },
  };
});

const binaries = findRealBinaries();
if (typeof binaries === 'string') {
  describe.skipIf(requirement('the Cluster contract against a real kube-apiserver', binaries))(
    'kubeCluster and a real kube-apiserver',
    () => {
      it('is not tested', () => undefined);
    },
  );
} else {
  clusterContract('kubeCluster and a real kube-apiserver', async (): Promise<ClusterWorld> => {
    const server = await startRealApiServer(binaries);
    const cluster = withKubeconfig(server.adminKubeconfig());
    const restart = (whileDown: () => Promise<void>) => server.restart({ whileDown });
    return {
      cluster,
      as: async (user, groups) => withKubeconfig(await server.kubeconfigFor(user, groups)),
      proxyNode: null,
      // Its watch cache is rebuilt.
      forgetHistory: () => restart(async () => {}),
      bookmark: null,
      restart,
      close: async () => {
        await cluster.close();
        await server.close();
      },
    };
  });
}
