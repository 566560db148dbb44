import type { ExitCode } from '../base/errors.ts';
import { type ConnectionRequest, readHostTarget } from '../fleet/use-cases/host-access.ts';
import { unknownName } from '../kubeadm/explain/explain.ts';
import { findField } from '../kubeadm/explain/explain-field.ts';
import { clusterOnUse } from '../kubeadm/use-cases/cluster-on-use.ts';
import type { KubeconfigRequest } from '../kubeadm/use-cases/open-cluster.ts';
import { explainHostKubelet, explainNodeKubelet } from '../kubeadm/workflows/explain-kubelet.ts';
import { type Catalogue, loadCatalogue } from '../kubelet/catalogue.ts';
import { type NodeExplanation, selectFields } from '../kubelet/effective/node-explanation.ts';
import { renderNodeExplanation } from '../kubelet/effective/render-node-explanation.ts';
import type { Services } from './services.ts';
import { type DocumentFormat, renderDocument } from './show-document.ts';

export interface NodeExplainRequest {
  /** `node/NAME`, or a host. */
  readonly target: string;
  /** Undefined: all fields. */
  readonly field: string | undefined;
  readonly format: DocumentFormat | 'wide';
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
}

/** `node explain HOST|NODE [FIELD]`: each effective value, and the layer it is from. */
export async function runNodeExplain(services: Services, request: NodeExplainRequest): Promise<ExitCode> {
  const { field, format } = request;
  const catalogue = await loadCatalogue();
  const explanation = select(await explainTarget(services, request, catalogue), field, catalogue);
  const isDocument = format === 'json' || format === 'yaml';
  services.output.stdout(
    isDocument ? renderDocument(explanation, format) : renderNodeExplanation(explanation, format === 'wide' || field !== undefined),
  );
  return 0;
}

async function explainTarget(services: Services, request: NodeExplainRequest, catalogue: Catalogue): Promise<NodeExplanation> {
  const { target, connection } = request;
  const cluster = clusterOnUse(services, request.cluster);
  try {
    const node = /^node\/(.+)$/.exec(target)?.[1];
    if (node !== undefined) return await explainNodeKubelet(await cluster.open(), node, catalogue);
    const host = await services.connectHost(await readHostTarget(services, target.replace(/^host\//, ''), connection));
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

/** A known field without a value is a valid result. */
function select(explanation: NodeExplanation, name: string | undefined, catalogue: Catalogue): NodeExplanation {
  if (name === undefined) return explanation;
  const entry = findField(name, catalogue);
  if (entry === undefined) throw unknownName(name, catalogue);
  const fields = selectFields(explanation.fields, name);
  const unset = { path: name, layer: 'kubelet default' as const, source: 'nothing sets it', lost: [] };
  return {
    ...explanation,
    fields: fields.length === 0 ? [unset] : fields,
    flags: explanation.flags.filter(({ field }) => field === entry.path),
    disagreements: explanation.disagreements.filter(
      ({ field }) => field === undefined || selectFields([{ ...unset, path: field }], name).length > 0,
    ),
  };
}
