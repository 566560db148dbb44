import { describe, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { findRealBinaries, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { controllerRightsContract } from './controller-rights.ts';

const connect = (text: string): Cluster => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

// The API server double: test/slow/controller-rights.test.ts.
describe('the rights of the controller', () => {
  const binaries = findRealBinaries();
  if (typeof binaries === 'string') {
    it.skipIf(requirement('the rights of the controller at a real kube-apiserver', binaries))('at a real kube-apiserver', () => undefined);
    return;
  }
  controllerRightsContract('at a real kube-apiserver', async () => {
    const server = await startRealApiServer(binaries);
    const admin = connect(server.adminKubeconfig());
    return {
      admin,
      connectAs: async ({ name, groups }) => connect(await server.kubeconfigFor(name, groups)),
      refusesEscalation: true,
      close: async () => {
        await admin.close();
        await server.close();
      },
    };
  });
});
