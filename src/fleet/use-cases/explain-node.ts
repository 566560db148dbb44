import { jsonEqual } from '../../base/json.ts';
import { inlineValue } from '../../codec/inline-value.ts';
import { unknownName } from '../../kubeadm/explain/explain.ts';
import { findField } from '../../kubeadm/explain/explain-field.ts';
import { lazyCluster } from '../../kubeadm/use-cases/lazy-cluster.ts';
import type { KubeconfigRequest } from '../../kubeadm/use-cases/open-cluster.ts';
import { explainHostKubelet, explainNodeKubelet } from '../../kubeadm/workflows/node/explain-kubelet.ts';
import { explainTakeover, type Takeover } from '../../kubeadm/workflows/node/explain-takeover.ts';
import { type Catalogue, NEWEST_MINOR, parseMinor } from '../../kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../kubelet/catalogue/load-catalogue.ts';
import { type DecodeOptions, decodeDeclaredFields } from '../../kubelet/documents/decode.ts';
import { masked } from '../../kubelet/effective/field-changes.ts';
import { type ExplainedField, type NodeExplanation, selectFields } from '../../kubelet/effective/node-explanation.ts';
import { leavesOf } from '../../kubelet/layers/layers.ts';
import { declaredConfiguration } from '../file/inventory-document.ts';
import type { ResolvedHost } from '../file/model.ts';
import { type FleetRunPorts, type NodeCommandPorts, onHost } from '../ports.ts';
import type { ConnectionRequest } from './host-access.ts';
import { findTarget } from './named-hosts.ts';

export interface ExplainNodeRequest {
  /** A Node, read through the API server, or a host. */
  readonly target: { readonly node: string } | { readonly address: string };
  readonly field: string | undefined;
  /** The fleet file; undefined: `fleet.yaml` if the file exists and has the host. */
  readonly file?: string | undefined;
  readonly cluster: KubeconfigRequest;
  readonly connection: ConnectionRequest;
}

/**
 * The effective values of a kubelet, each with the layer it is from.
 * @throws AppError for an unknown field; the errors of the host and the cluster
 */
export async function explainNode(services: NodeCommandPorts, request: ExplainNodeRequest): Promise<NodeExplanation> {
  const catalogue = await loadCatalogue();
  return select(await explainTarget(services, request, catalogue), request.field, catalogue);
}

async function explainTarget(services: NodeCommandPorts, request: ExplainNodeRequest, catalogue: Catalogue): Promise<NodeExplanation> {
  const { target, connection } = request;
  const cluster = lazyCluster(services, request.cluster);
  try {
    if ('node' in target) return await explainNodeKubelet(await cluster.open(), target.node, catalogue);
    const named = { name: target.address, file: request.file, connection };
    const { member, target: found } = await findTarget(services, named, { changes: false });
    return await onHost(services, found, async (host) => {
      const asked = request.cluster.kubeconfig === undefined ? null : await cluster.open();
      const explanation = await explainHostKubelet(host, { cluster: asked, catalogue, signal: services.signal });
      return member === null
        ? explanation
        : {
            ...explanation,
            fields: explanation.fields.map(
              withFleetLayer(member, { catalogue, minor: parseMinor(explanation.kubernetesVersion) ?? NEWEST_MINOR }),
            ),
          };
    });
  } finally {
    await cluster.close();
  }
}

/** Adds the layer of the fleet file that declares a field, and its value where the host has another. */
function withFleetLayer(
  host: ResolvedHost,
  reading: Pick<DecodeOptions, 'minor' | 'catalogue'>,
): (field: ExplainedField) => ExplainedField {
  const origins = host.origins();
  const declared = leavesOf(decodeDeclaredFields(declaredConfiguration(host), reading));
  return (field) => {
    const origin = origins.get(`kubeletConfiguration.${field.path}`);
    const unmasked = declared.get(field.path);
    if (origin === undefined || unmasked === undefined) return field;
    const value = masked(field.path, unmasked);
    const { file, line } = origin.position;
    const isSame = jsonEqual(value, field.value);
    return { ...field, source: `${field.source}; ${origin.layer}, ${file}:${line}${isSame ? '' : ` declares ${inlineValue(value)}`}` };
  };
}

/** What a takeover of a host by `join` would change; changes nothing. Errors are those of the host. */
export async function explainNodeTakeover(
  services: NodeCommandPorts & Pick<FleetRunPorts, 'templates'>,
  { address, ...request }: Pick<ExplainNodeRequest, 'connection' | 'file'> & { readonly address: string },
): Promise<Takeover> {
  return onHost(services, (await findTarget(services, { ...request, name: address }, { changes: false })).target, async (host) => {
    return await explainTakeover(host, {
      catalogue: await loadCatalogue(),
      templates: await services.templates(),
      signal: services.signal,
    });
  });
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
