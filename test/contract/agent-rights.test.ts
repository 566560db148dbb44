import { describe, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { findRealBinaries, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { rightsContract } from './agent-rights.ts';

const connect = (text: string): Cluster => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

// The API server double: test/slow/agent-rights.test.ts.
describe("the rights of a node's agent", () => {
  const binaries = findRealBinaries();
  if (typeof binaries === 'string') {
    it.skipIf(requirement("the rights of a node's agent at a real kube-apiserver", binaries))('at a real kube-apiserver', () => undefined);
    return;
  }
  rightsContract('at a real kube-apiserver', async () => {
    const server = await startRealApiServer(binaries, { withControllerManager: true });
    const admin = connect(server.adminKubeconfig());
    return {
      admin,
      asKubelet: async (node) => connect(await server.kubeconfigFor(`system:node:${node}`, ['system:nodes'])),
      collectsGarbage: binaries.controllerManager !== null,
      close: async () => {
        await admin.close();
        await server.close();
      },
    };
  });
});
