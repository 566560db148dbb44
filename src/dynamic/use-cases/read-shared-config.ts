import type { Json, JsonObject } from '../../base/json.ts';
import { lazyCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { readNodeConfig } from '../../kubeadm/workflows/read-node-config.ts';
import { cleanConfigz } from '../../kubelet/effective/clean-configz.ts';
import { LAST_DYNAMIC_MINOR } from '../../kubelet/effective/dynamic-store.ts';
import { loadCatalogue } from '../../kubelet/load-catalogue.ts';
import { type PayloadKind, payloadDocument } from '../agent/overlay.ts';

export interface SharedConfigRequest {
  readonly node: string;
  /** Undefined: the kind of file that the kubelet supports. */
  readonly kind: PayloadKind | undefined;
  readonly withoutDefaults: boolean;
  readonly cluster: KubeconfigRequest;
}

/** The configuration of a kubelet as two documents. */
export interface SharedConfig {
  /** The fields that all nodes can share. */
  readonly document: JsonObject;
  /** The node-specific fields, as a KubeletConfiguration for `--overlay` of init and join. */
  readonly ownDocument: JsonObject;
  readonly nodeSpecific: readonly NodeSpecificField[];
  /** Fields whose values configz hides: in neither document. */
  readonly masked: readonly string[];
}

/** A field of the node that the shared document omits. */
export interface NodeSpecificField {
  readonly path: string;
  readonly value: Json;
  /** Whether a kubelet with the shared document uses its default: a complete KubeletConfiguration replaces the local one. */
  readonly usesDefault: boolean;
}

/**
 * Reads the effective configuration of a running kubelet, and separates its node-specific fields. By default the shared
 * document is an overlay, so that a node that is assigned the file keeps its node-specific settings; a complete
 * KubeletConfiguration for kubelets up to 1.23, which read no overlay.
 * @throws the errors of the cluster and of reading the kubelet's configuration
 */
export async function readSharedConfig(
  services: OpenClusterPorts,
  { node, kind: requested, withoutDefaults, cluster: named }: SharedConfigRequest,
): Promise<SharedConfig> {
  const catalogue = await loadCatalogue();
  const cluster = lazyCluster(services, named);
  try {
    const { minor, config } = await readNodeConfig(await cluster.open(), node, catalogue);
    const kind = requested ?? (minor <= LAST_DYNAMIC_MINOR ? 'configuration' : 'overlay');
    const { shared, nodeSpecific, masked } = cleanConfigz(config, { minor, catalogue, withoutDefaults });
    return {
      document: payloadDocument(kind, shared),
      ownDocument: payloadDocument('configuration', nodeSpecific),
      nodeSpecific: Object.entries(nodeSpecific).map(([path, value]) => ({ path, value, usesDefault: kind === 'configuration' })),
      masked,
    };
  } finally {
    await cluster.close();
  }
}
