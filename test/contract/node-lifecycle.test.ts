import { describe, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { findRealBinaries, startRealApiServer, whyNoControlPlane } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { nodeLifecycleContract } from './node-lifecycle.ts';

const withKubeconfig = (text: string) => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

interface Server {
  adminKubeconfig(): string;
  kubeconfigFor(user: string, groups?: readonly string[]): Promise<string>;
  kubeconfigWithToken(token: string): string;
  close(): Promise<void>;
}

function worldOf(server: Server) {
  const admin = withKubeconfig(server.adminKubeconfig());
  return {
    admin,
    withToken: (token: string) => withKubeconfig(server.kubeconfigWithToken(token)),
    asNode: async (name: string) => withKubeconfig(await server.kubeconfigFor(`system:node:${name}`, ['system:nodes'])),
    close: async () => {
      await admin.close();
      await server.close();
    },
  };
}

nodeLifecycleContract('nodes of the API server double', async () =>
  worldOf(await startApiServer({ controllers: ['bootstrap-signer', 'token-cleaner', 'csr-approver', 'csr-signer', 'node-lifecycle'] })),
);

const binaries = findRealBinaries();
const missing = whyNoControlPlane();
if (typeof binaries === 'string' || missing !== null) {
  describe.skipIf(requirement('nodes of a real control plane', missing))('nodes of a real control plane', () => {
    it('is not tested', () => undefined);
  });
} else {
  nodeLifecycleContract('nodes of a real control plane', async () =>
    worldOf(await startRealApiServer(binaries, { withControllerManager: true })),
  );
}
