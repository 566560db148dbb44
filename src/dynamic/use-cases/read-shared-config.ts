import { clusterOnUse } from '../../kubeadm/use-cases/cluster-on-use.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { readNodeConfig } from '../../kubeadm/workflows/read-node-config.ts';
import { loadCatalogue } from '../../kubelet/catalogue.ts';
import { type CleanConfigz, cleanConfigz } from '../../kubelet/effective/clean-configz.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import type { PayloadKind } from '../agent/overlay.ts';

export interface SharedConfigRequest {
  readonly node: string;
  /** Undefined: the kind of file that the kubelet supports. */
  readonly kind: PayloadKind | undefined;
  readonly withoutDefaults: boolean;
  readonly cluster: KubeconfigRequest;
}

export interface SharedConfig extends CleanConfigz {
  readonly kind: PayloadKind;
}

/**
 * The effective configuration of a running kubelet, without its node-specific fields. By default an overlay, so that
 * a node that is assigned the file keeps its node-specific settings; a complete KubeletConfiguration for kubelets up to
 * 1.23, which read no overlay.
 * @throws the errors of the cluster and of reading the kubelet's configuration
 */
export async function readSharedConfig(
  services: OpenClusterPorts,
  { node, kind, withoutDefaults, cluster: named }: SharedConfigRequest,
): Promise<SharedConfig> {
  const catalogue = await loadCatalogue();
  const cluster = clusterOnUse(services, named);
  try {
    const { minor, config } = await readNodeConfig(await cluster.open(), node, catalogue);
    return {
      kind: kind ?? (minor <= LAST_DYNAMIC_MINOR ? 'configuration' : 'overlay'),
      ...cleanConfigz(config, { minor, catalogue, withoutDefaults }),
    };
  } finally {
    await cluster.close();
  }
}
