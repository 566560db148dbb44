import { withCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { readNodeConfig } from '../../kubeadm/workflows/node/read-node-config.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { cleanConfigz } from '../../kubelet/diff/clean-configz.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { mergeConfig } from '../../kubelet/layers/layers.ts';
import { type PayloadKind, payloadDocument } from '../agent/overlay.ts';

export interface SharedConfigRequest {
  readonly node: string;
  /** Undefined: the kind of file that the kubelet supports. */
  readonly kind: PayloadKind | undefined;
  readonly withoutDefaults: boolean;
  /** The node-specific fields are written to a separate file. */
  readonly isSeparated: boolean;
  readonly cluster: KubeconfigRequest;
}

/**
 * Reads the effective configuration of a running kubelet, and separates its node-specific fields. By default the shared
 * document is an overlay, so that a node that is assigned the file keeps its node-specific settings. Kubelets up to 1.23
 * read no overlay: their document is a complete KubeletConfiguration with the node-specific fields, for this node alone.
 * @throws the errors of the cluster and of reading the kubelet's configuration
 */
export async function readSharedConfig(
  services: OpenClusterPorts,
  { node, kind: requested, withoutDefaults, isSeparated, cluster: named }: SharedConfigRequest,
) {
  const catalogue = await loadCatalogue();
  return withCluster(services, named, async (cluster) => {
    const { minor, config } = await readNodeConfig(cluster, node, catalogue);
    const kind = requested ?? (minor <= LAST_DYNAMIC_MINOR ? 'configuration' : 'overlay');
    const { shared, nodeSpecific, masked } = cleanConfigz(config, { minor, catalogue, withoutDefaults });
    const isForNode = requested === undefined && kind === 'configuration' && !isSeparated;
    /**
     * `kept`: in the document. `default`: omitted, and a kubelet with the document uses its default, because a complete
     * KubeletConfiguration replaces the local one. `local`: omitted, and a node keeps its own value.
     */
    const source = isForNode ? 'kept' : kind === 'configuration' ? 'default' : 'local';
    return {
      /** The fields that all nodes can share; for a kubelet up to 1.23 also the node-specific ones, unless requested otherwise. */
      document: payloadDocument(kind, isForNode ? mergeConfig(shared, nodeSpecific) : shared),
      /** The node-specific fields, as a KubeletConfiguration for `--overlay` of init and join. */
      ownDocument: payloadDocument('configuration', nodeSpecific),
      nodeSpecific: Object.entries(nodeSpecific).map(([path, value]) => ({ path, value, source })),
      /** Fields whose values configz hides: in neither document. */
      masked,
    };
  });
}
