import { describe, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { findRealBinaries, startRealApiServer, whyNoControlPlane } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { adoptedObjectsContract } from './adopted-objects.ts';

const withKubeconfig = (text: string) => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

adoptedObjectsContract('the objects of cluster adopt in the API server double', async () => {
  const server = await startApiServer({ controllers: ['bootstrap-signer', 'token-cleaner'] });
  const cluster = withKubeconfig(server.adminKubeconfig());
  const close = async () => {
    await cluster.close();
    await server.close();
  };
  return { cluster, kubeconfig: server.adminKubeconfig(), url: server.url, caPem: server.caPem, close };
});

const binaries = findRealBinaries();
const missing = whyNoControlPlane();
if (typeof binaries === 'string' || missing !== null) {
  describe.skipIf(requirement('the objects of cluster adopt in a real cluster', missing))(
    'the objects of cluster adopt in a real cluster',
    () => {
      it('is not tested', () => undefined);
    },
  );
} else {
  adoptedObjectsContract('the objects of cluster adopt in a real cluster', async () => {
    const server = await startRealApiServer(binaries, { withControllerManager: true });
    const cluster = withKubeconfig(server.adminKubeconfig());
    const close = async () => {
      await cluster.close();
      await server.close();
    };
    return { cluster, kubeconfig: server.adminKubeconfig(), url: server.url, caPem: server.ca.certPem, close };
  });
}
