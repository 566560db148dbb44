import { AppError, isAppError, type Problem } from '../../base/errors.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { ConfigSource } from '../../kubelet/layers/config-source.ts';
import { OVERLAY_API_VERSION, OVERLAY_KIND } from '../agent/overlay.ts';
import { appendHash } from '../signing/config-map-hash.ts';
import { SIGNATURE_KEY, STATEMENT_KEY } from '../signing/statement.ts';
import { notEnabled, signatureRequired } from '../status/dynamic-problems.ts';
import type { NodeConfig } from '../status/node-config.ts';
import { findPayload } from '../workflows/assign-config.ts';
import { readNodes } from '../workflows/read-nodes.ts';
import { requireGoodPayload } from './push-file.ts';

/** The dynamic configuration of a Node, to be changed and assigned to it again. */
export interface NodePayload {
  readonly node: NodeConfig;
  /** Null: an empty overlay, because nothing is assigned. */
  readonly source: ConfigSource | null;
  readonly text: string;
  /** The other keys of the ConfigMap, without its signature. */
  readonly others: Readonly<Record<string, string>>;
  /** Where a changed configuration is stored. */
  readonly target: { readonly namespace: string; readonly name: string; readonly key: string };
}

/**
 * Reads the assigned configuration of a Node.
 * @param isSigned the changed configuration will be signed
 * @throws AppError NODE_NOT_FOUND, DYNAMIC_NO_PAYLOAD; DYNAMIC_NOT_ENABLED, DYNAMIC_SIGNATURE_REQUIRED, EDIT_NOT_POSSIBLE (exit code 3)
 */
export async function readNodePayload(cluster: Cluster, name: string, isSigned: boolean): Promise<NodePayload> {
  const [node] = (await readNodes(cluster, [name])) as [NodeConfig];
  const refuse = (problem: Problem): AppError => new AppError(problem, { exitCode: 3 });
  if (node.status === null) throw refuse(notEnabled(name, node.backend, node.kubeletVersion));
  if (node.report?.requiresSignature === true && !isSigned)
    throw refuse(signatureRequired(name, 'the edited configuration would not be signed'));
  const { source } = node.source;
  if (source === null) {
    if (node.backend === 'native') throw refuse(noOverlay(name));
    const target = { namespace: node.agentNamespace ?? AGENT_NAMESPACE, name: 'node-config', key: 'kubelet' };
    return { node, source, text: `apiVersion: ${OVERLAY_API_VERSION}\nkind: ${OVERLAY_KIND}\n`, others: {}, target };
  }
  const { text, data } = await findPayload(cluster, source);
  const { namespace, kubeletConfigKey: key } = source;
  const signature: readonly string[] = [STATEMENT_KEY, SIGNATURE_KEY];
  const others = Object.fromEntries(Object.entries(data).filter(([one]) => one !== key && !signature.includes(one)));
  return { node, source, text, others, target: { namespace, name: baseName(source, data), key } };
}

/** The name of a pushed ConfigMap without the hash. */
function baseName({ name }: ConfigSource, data: Readonly<Record<string, string>>): string {
  const base = name.replace(/-[^-]*$/, '');
  return appendHash({ name: base, data }) === name ? base : 'node-config';
}

function noOverlay(host: string): Problem {
  const message =
    'nothing is assigned to the Node, and its kubelet accepts only a complete KubeletConfiguration, which edit does not create';
  const hint = `Run kubeletadm config from-node ${host} > kubelet.yaml, edit the file, then run kubeletadm dynamic assign ${host} --file kubelet.yaml`;
  return { host, code: 'EDIT_NOT_POSSIBLE', message, hint };
}

/** The errors of a changed configuration on a Node. */
export async function payloadErrors({ node }: Pick<NodePayload, 'node'>, text: string): Promise<readonly Problem[]> {
  try {
    await requireGoodPayload(text, '', [node], { kubernetesVersion: undefined, skipValidation: false }, { report: () => undefined });
    return [];
  } catch (error) {
    if (!isAppError(error)) throw error;
    return error.problems;
  }
}
