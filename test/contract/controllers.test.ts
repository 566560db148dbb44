import { describe, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { findRealBinaries, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { controllersContract } from './controllers.ts';

const withKubeconfig = (text: string) => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

controllersContract('the controllers of the API server double', async () => {
  const server = await startApiServer({
    controllers: ['bootstrap-signer', 'token-cleaner', 'csr-approver', 'csr-signer', 'node-lifecycle'],
  });
  const cluster = withKubeconfig(server.adminKubeconfig());
  return {
    cluster,
    caPem: server.caPem,
    withToken: (token) => withKubeconfig(server.kubeconfigWithToken(token)),
    close: async () => {
      await cluster.close();
      await server.close();
    },
  };
});

const binaries = findRealBinaries();
const missing =
  typeof binaries === 'string' ? binaries : binaries.controllerManager === null ? 'kube-controller-manager is not available' : null;
if (typeof binaries === 'string' || missing !== null) {
  describe.skipIf(requirement('the controllers of a real control plane', missing))('the controllers of a real control plane', () => {
    it('is not tested', () => undefined);
  });
} else {
  controllersContract('the controllers of a real control plane', async () => {
    const server = await startRealApiServer(binaries, { withControllerManager: true });
    const cluster = withKubeconfig(server.adminKubeconfig());
    return {
      cluster,
      caPem: server.ca.certPem,
      withToken: (token) => withKubeconfig(server.kubeconfigWithToken(token)),
      close: async () => {
        await cluster.close();
        await server.close();
      },
    };
  });
}
