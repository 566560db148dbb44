import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { rolloutsApiContract } from './rollouts-api.ts';

rolloutsApiContract('FakeCluster', async () => {
  const cluster = fakeCluster();
  return { cluster, close: cluster.close };
});

rolloutsApiContract('the API server double', async () => {
  const server = await startApiServer();
  const cluster = kubeCluster({ kubeconfig: { text: server.adminKubeconfig(), file: 'test.conf' } });
  return {
    cluster,
    close: async () => {
      await cluster.close();
      await server.close();
    },
  };
});
