import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { controllerRightsContract } from '../contract/controller-rights.ts';

const connect = (text: string): Cluster => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

// A real kube-apiserver: test/contract/controller-rights.test.ts.
controllerRightsContract('the rights of the controller at the API server double', async () => {
  const server = await startApiServer();
  const admin = connect(server.adminKubeconfig());
  return {
    admin,
    connectAs: async ({ name, groups }) => connect(await server.kubeconfigFor(name, groups)),
    refusesEscalation: false,
    close: async () => {
      await admin.close();
      await server.close();
    },
  };
});
