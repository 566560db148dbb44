import { isAppError } from '../../base/errors.ts';
import { discoveryCluster, parseKubeconfig, resolveContext } from '../../kube/kubeconfig.ts';
import { KUBELET_CONF } from '../../kube/well-known.ts';
import type { ApiServerTarget } from './bootstrap-files.ts';

/**
 * The API server and the CA in a kubelet's kubeconfig.
 * @param kubeletConf text of the kubeconfig; null: the file does not exist
 * @param ca PEM of the cluster CA on the host, for a kubeconfig that names a file
 * @returns null when the server or the CA is missing
 */
export function apiServerOfKubelet(kubeletConf: string | null, ca: string | null): ApiServerTarget | null {
  try {
    const config = parseKubeconfig(kubeletConf ?? '', KUBELET_CONF);
    const cluster = config.currentContext === '' ? discoveryCluster(config) : resolveContext(config).cluster;
    const caPem = cluster.caData === undefined ? ca : Buffer.from(cluster.caData, 'base64').toString('utf8');
    if (caPem === null) return null;
    const { server, tlsServerName, proxyUrl } = cluster;
    return { server, caPem, tlsServerName, proxyUrl };
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}
