import { describe, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { findRealBinaries, startRealApiServer, whyNoControlPlane } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { discoveryContract } from './discovery.ts';

const withKubeconfig = (text: string) => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

discoveryContract('discovery at the API server double', async () => {
  const server = await startApiServer({ controllers: ['bootstrap-signer', 'token-cleaner'] });
  const cluster = withKubeconfig(server.adminKubeconfig());
  const close = async () => {
    await cluster.close();
    await server.close();
  };
  return { cluster, url: server.url, caPem: server.caPem, close };
});

const why = whyNoControlPlane();
const binaries = findRealBinaries();
if (why !== null || typeof binaries === 'string') {
  describe.skipIf(requirement('discovery at a real control plane', why))('discovery at a real control plane', () => {
    it('is not tested', () => undefined);
  });
} else {
  discoveryContract('discovery at a real control plane', async () => {
    const server = await startRealApiServer(binaries, { withControllerManager: true });
    const cluster = withKubeconfig(server.adminKubeconfig());
    const close = async () => {
      await cluster.close();
      await server.close();
    };
    return { cluster, url: server.url, caPem: server.ca.certPem, close };
  });
}
