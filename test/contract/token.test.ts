import { execFileSync } from 'node:child_process';
import { describe, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { findRealBinaries, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { tokenContract } from './token.ts';

const withKubeconfig = (text: string) => kubeCluster({ kubeconfig: { text, file: 'test.conf' } });

tokenContract('token, against the API server double', async () => {
  const server = await startApiServer();
  const cluster = withKubeconfig(server.adminKubeconfig());
  const close = async () => {
    await cluster.close();
    await server.close();
  };
  return { cluster, kubeconfig: server.adminKubeconfig(), url: server.url, caPem: server.caPem, kubeadm: null, close };
});

const binaries = findRealBinaries();
if (typeof binaries === 'string') {
  describe.skipIf(requirement('token against a real kube-apiserver, compared with kubeadm', binaries))(
    'token, against a real kube-apiserver',
    () => {
      it('is not tested', () => undefined);
    },
  );
} else {
  const { kubeadm } = binaries;
  requirement('token compared with kubeadm', kubeadm === null ? 'kubeadm is not available (KUBEBUILDER_ASSETS)' : null);
  tokenContract('token, against a real kube-apiserver', async () => {
    const server = await startRealApiServer(binaries);
    const cluster = withKubeconfig(server.adminKubeconfig());
    const close = async () => {
      await cluster.close();
      await server.close();
    };
    const run = (args: readonly string[], kubeconfig: string): string =>
      execFileSync(kubeadm ?? '', [...args, '--kubeconfig', kubeconfig], { encoding: 'utf8' });
    return {
      cluster,
      kubeconfig: server.adminKubeconfig(),
      url: server.url,
      caPem: server.ca.certPem,
      kubeadm: kubeadm === null ? null : run,
      close,
    };
  });
}
