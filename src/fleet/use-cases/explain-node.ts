import type { RunTime } from '../../base/clock.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { unknownName } from '../../kubeadm/explain/explain.ts';
import { findField } from '../../kubeadm/explain/explain-field.ts';
import { lazyCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest, OpenClusterPorts } from '../../kubeadm/use-cases/open-cluster.ts';
import { explainHostKubelet, explainNodeKubelet } from '../../kubeadm/workflows/explain-kubelet.ts';
import { explainTakeover, type Takeover } from '../../kubeadm/workflows/explain-takeover.ts';
import type { Catalogue } from '../../kubelet/catalogue.ts';
import { type NodeExplanation, selectFields } from '../../kubelet/effective/node-explanation.ts';
import { loadCatalogue } from '../../kubelet/load-catalogue.ts';
import type { FleetRunPorts, HostConnections } from '../ports.ts';
import { type ConnectionRequest, readHostTarget } from './host-access.ts';

export interface ExplainNodeRequest {
  /** A Node, read through the API server, or a host. */
  readonly target: { readonly node: string } | { readonly address: string };
  /** Undefined: all fields. */
  readonly field: string | undefined;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
}

/** Ports of `node explain`. */
export type ExplainNodePorts = LocalFiles & OpenClusterPorts & Pick<RunTime, 'signal'> & Pick<HostConnections, 'connectHost'>;

/**
 * The effective values of a kubelet, each with the layer it is from.
 * @throws AppError for an unknown field; the errors of the host and the cluster
 */
export async function explainNode(services: ExplainNodePorts, request: ExplainNodeRequest): Promise<NodeExplanation> {
  const catalogue = await loadCatalogue();
  return select(await explainTarget(services, request, catalogue), request.field, catalogue);
}

async function explainTarget(services: ExplainNodePorts, request: ExplainNodeRequest, catalogue: Catalogue): Promise<NodeExplanation> {
  const { target, connection } = request;
  const cluster = lazyCluster(services, request.cluster);
  try {
    if ('node' in target) return await explainNodeKubelet(await cluster.open(), target.node, catalogue);
    const host = await services.connectHost(await readHostTarget(services, target.address, connection));
    try {
      const asked = request.cluster.kubeconfig === undefined ? null : await cluster.open();
      return await explainHostKubelet(host, { cluster: asked, catalogue, signal: services.signal });
    } finally {
      await host.close();
    }
  } finally {
    await cluster.close();
  }
}

/** What a takeover of a host by `join` would change; changes nothing. Errors are those of the host. */
export async function explainNodeTakeover(
  services: ExplainNodePorts & Pick<FleetRunPorts, 'templates'>,
  { address, connection }: Pick<ExplainNodeRequest, 'connection'> & { readonly address: string },
): Promise<Takeover> {
  const host = await services.connectHost(await readHostTarget(services, address, connection));
  try {
    return await explainTakeover(host, {
      catalogue: await loadCatalogue(),
      templates: await services.templates(),
      signal: services.signal,
    });
  } finally {
    await host.close();
  }
}

/** A known field without a value is a valid result. */
function select(explanation: NodeExplanation, name: string | undefined, catalogue: Catalogue): NodeExplanation {
  if (name === undefined) return explanation;
  const entry = findField(name, catalogue);
  if (entry === undefined) throw unknownName(name, catalogue);
  const fields = selectFields(explanation.fields, name);
  const unset = { path: name, layer: 'kubelet default' as const, source: 'no file or flag sets this field', lost: [] };
  return {
    ...explanation,
    fields: fields.length === 0 ? [unset] : fields,
    flags: explanation.flags.filter(({ field }) => field === entry.path),
    disagreements: explanation.disagreements.filter(
      ({ field }) => field === undefined || selectFields([{ ...unset, path: field }], name).length > 0,
    ),
  };
}
