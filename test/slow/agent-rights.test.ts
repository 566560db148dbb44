import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { rightsContract } from '../contract/agent-rights.ts';

const connect = (text: string): Cluster => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

// A real kube-apiserver: test/contract/agent-rights.test.ts.
rightsContract("the rights of a node's agent at the API server double", async () => {
  const server = await startApiServer();
  const admin = connect(server.adminKubeconfig());
  return {
    admin,
    asKubelet: async (node) => connect(await server.kubeconfigFor(`system:node:${node}`, ['system:nodes'])),
    collectsGarbage: false,
    close: async () => {
      await admin.close();
      await server.close();
    },
  };
});
