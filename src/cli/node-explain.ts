import { type ExitCode, usageError } from '../base/errors.ts';
import { unknownName } from '../kubeadm/explain/explain.ts';
import { findField } from '../kubeadm/explain/explain-field.ts';
import { explainHostKubelet, explainNodeKubelet } from '../kubeadm/workflows/explain-kubelet.ts';
import { type Catalogue, loadCatalogue } from '../kubelet/catalogue.ts';
import { type NodeExplanation, selectFields } from '../kubelet/effective/node-explanation.ts';
import { renderNodeExplanation } from '../kubelet/effective/render-node-explanation.ts';
import { clusterOnUse } from './cluster-on-use.ts';
import type { CommandOptions } from './command.ts';
import { flagText, readHostTarget } from './read-options.ts';
import type { Services } from './services.ts';
import { renderDocument } from './show-document.ts';

/** `node explain HOST|NODE [FIELD]`: each value in force, and which layer it is from. */
export async function runNodeExplain(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const [target, field, ...more] = args;
  if (target === undefined || more.length > 0)
    throw usageError('one host or node is explained at a time', 'Name it, and a field if you like');
  const catalogue = await loadCatalogue();
  const explanation = select(await explainTarget(services, target, options, catalogue), field, catalogue);
  const format = flagText(options, 'output') ?? 'text';
  const isDocument = format === 'json' || format === 'yaml';
  services.output.stdout(
    isDocument ? renderDocument(explanation, format) : renderNodeExplanation(explanation, format === 'wide' || field !== undefined),
  );
  return 0;
}

async function explainTarget(services: Services, target: string, options: CommandOptions, catalogue: Catalogue): Promise<NodeExplanation> {
  const cluster = clusterOnUse(services, options);
  try {
    const node = /^node\/(.+)$/.exec(target)?.[1];
    if (node !== undefined) return await explainNodeKubelet(await cluster.open(), node, catalogue);
    const host = await services.connectHost(await readHostTarget(services, target.replace(/^host\//, ''), options));
    try {
      const asked = options.kubeconfig === undefined ? null : await cluster.open();
      return await explainHostKubelet(host, { cluster: asked, catalogue, signal: services.signal });
    } finally {
      await host.close();
    }
  } finally {
    await cluster.close();
  }
}

/** A field that is known and unset is an answer too. */
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
