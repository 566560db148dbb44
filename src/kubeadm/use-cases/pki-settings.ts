import { isAppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/host.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { mergeInitFlags } from '../config/flags.ts';
import type { PkiSettings } from '../workflows/inspect-certificates.ts';
import { loadConfigFile, requireValid } from './load-config-file.ts';
import { type NodeClusterPorts, nodeCluster } from './node-cluster.ts';
import { isKubeconfigGiven, type KubeconfigRequest, type OpenClusterPorts, openCluster } from './open-cluster.ts';

/** Where the settings of the certificates come from. */
export interface PkiRequest {
  /** The file of `--config`; undefined: the cluster is asked. */
  readonly config: string | undefined;
  /** The directory of the certificates; null: as configured. */
  readonly certificatesDir: string | null;
  readonly cluster: KubeconfigRequest;
}

export interface OpenedPkiSettings {
  readonly settings: PkiSettings;
  readonly warnings: readonly Warning[];
  /** An administrator's, for all hosts; null: each host has its own way. */
  readonly cluster: Cluster | null;
  /** Null: the cluster is not asked. */
  readonly clusterOf: (host: Host) => Promise<Cluster | null>;
}

/**
 * Where the certificates of control planes are and how they are made: `--config`, else what the cluster says, asked with `--kubeconfig` or as the node itself. A node
 * that cannot ask is no reason to stop: perhaps that is because of its certificates.
 */
export async function openPkiSettings(
  services: OpenClusterPorts & NodeClusterPorts,
  request: PkiRequest,
  reporter: Reporter,
): Promise<OpenedPkiSettings> {
  const config = mergeInitFlags(await loadConfigFile(services, request.config, ['InitConfiguration', 'ClusterConfiguration']), {});
  const warnings = requireValid(config);
  const { certificatesDir } = request;
  const declared = request.config === undefined ? null : (config.cluster ?? {});
  const isNamed = isKubeconfigGiven(request.cluster) && declared === null;
  const opened = isNamed ? await openCluster(services, request.cluster, { dryRun: false, staged: false, writes: null }) : null;
  return {
    settings: { cluster: declared, certificatesDir },
    warnings,
    cluster: opened?.cluster ?? null,
    clusterOf: async (host) => (declared !== null || opened !== null ? null : asNode(services, host, reporter)),
  };
}

async function asNode(services: NodeClusterPorts, host: Host, reporter: Reporter): Promise<Cluster | null> {
  try {
    return await nodeCluster(services, host);
  } catch (error) {
    const isOfItsCredentials = isAppError(error) && /^(?:NODE_NO_CREDENTIALS|HOST_KUBECONFIG_)/.test(error.code);
    if (!isOfItsCredentials) throw error;
    const message = `the cluster cannot be asked as this node, so kubeadm's defaults count (--config says otherwise): ${error.problems[0]?.message}`;
    reporter.report({ level: 'warning', code: 'CLUSTER_CONFIG_UNKNOWN', host: host.name, message });
    return null;
  }
}
