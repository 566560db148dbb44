import { isAppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { mergeInitFlags } from '../config/flags.ts';
import type { PkiSettings } from '../workflows/certificates/inspect-certificates.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { type NodeClusterPorts, nodeCluster } from './node-cluster.ts';
import { isKubeconfigGiven, type KubeconfigRequest, type OpenClusterPorts, openCluster } from './open-cluster.ts';

export interface PkiRequest {
  /** The file of `--config`; undefined: kubeadm-config of the cluster. */
  readonly config: string | undefined;
  /** The directory of the certificates; null: as configured. */
  readonly certificatesDir: string | null;
  readonly cluster: KubeconfigRequest;
}

export type OpenedPkiSettings = Awaited<ReturnType<typeof openPkiSettings>>;

/**
 * Directory and properties of control plane certificates: from `--config`, otherwise from kubeadm-config, read with
 * `--kubeconfig` or the node's credentials. A failed login with the node's credentials is only a warning: expired
 * certificates may be its cause.
 */
export async function openPkiSettings(services: OpenClusterPorts & NodeClusterPorts, request: PkiRequest, reporter: Reporter) {
  const config = mergeInitFlags(await loadConfigFile(services, request.config, ['InitConfiguration', 'ClusterConfiguration']), {});
  const warnings = requireValid(config);
  const { certificatesDir } = request;
  const declared = request.config === undefined ? null : (config.cluster ?? {});
  const isNamed = isKubeconfigGiven(request.cluster) && declared === null;
  const opened = isNamed ? await openCluster(services, request.cluster, { writes: null }) : null;
  return {
    settings: { cluster: declared, certificatesDir } satisfies PkiSettings,
    warnings,
    /** Connected with `--kubeconfig`, for all hosts; null: each host uses its own credentials. */
    cluster: opened?.cluster ?? null,
    /** Null: kubeadm-config is not read. */
    clusterOf: async (host: Host) => (declared !== null || opened !== null ? null : asNode(services, host, reporter)),
  };
}

async function asNode(services: NodeClusterPorts, host: Host, reporter: Reporter): Promise<Cluster | null> {
  try {
    return await nodeCluster(services, host);
  } catch (error) {
    const isOfItsCredentials = isAppError(error) && /^(?:NODE_NO_CREDENTIALS|HOST_KUBECONFIG_)/.test(error.code);
    if (!isOfItsCredentials) throw error;
    const message = `kubeadm's defaults are used, because ConfigMap kubeadm-config cannot be read with the credentials of the node (${error.problems[0]?.message}). To use other settings, pass --config`;
    reporter.report({ level: 'warning', code: 'CLUSTER_CONFIG_UNKNOWN', host: host.name, message });
    return null;
  }
}
