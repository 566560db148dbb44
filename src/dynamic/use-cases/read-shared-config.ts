import type { Json, JsonObject } from '../../base/json.ts';
import { lazyCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
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

/** The configuration of a kubelet as two documents. */
interface SharedConfig {
  /** The fields that all nodes can share; for a kubelet up to 1.23 also the node-specific ones, unless requested otherwise. */
  readonly document: JsonObject;
  /** The node-specific fields, as a KubeletConfiguration for `--overlay` of init and join. */
  readonly ownDocument: JsonObject;
  readonly nodeSpecific: readonly NodeSpecificField[];
  /** Fields whose values configz hides: in neither document. */
  readonly masked: readonly string[];
}

/** A node-specific field. */
interface NodeSpecificField {
  readonly path: string;
  readonly value: Json;
  /**
   * `kept`: in the document. `default`: omitted, and a kubelet with the document uses its default, because a complete
   * KubeletConfiguration replaces the local one. `local`: omitted, and a node keeps its own value.
   */
  readonly source: 'kept' | 'default' | 'local';
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
): Promise<SharedConfig> {
  const catalogue = await loadCatalogue();
  const cluster = lazyCluster(services, named);
  try {
    const { minor, config } = await readNodeConfig(await cluster.open(), node, catalogue);
    const kind = requested ?? (minor <= LAST_DYNAMIC_MINOR ? 'configuration' : 'overlay');
    const { shared, nodeSpecific, masked } = cleanConfigz(config, { minor, catalogue, withoutDefaults });
    const isForNode = requested === undefined && kind === 'configuration' && !isSeparated;
    const source = isForNode ? 'kept' : kind === 'configuration' ? 'default' : 'local';
    return {
      document: payloadDocument(kind, isForNode ? mergeConfig(shared, nodeSpecific) : shared),
      ownDocument: payloadDocument('configuration', nodeSpecific),
      nodeSpecific: Object.entries(nodeSpecific).map(([path, value]) => ({ path, value, source })),
      masked,
    };
  } finally {
    await cluster.close();
  }
}
