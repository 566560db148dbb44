import type { Problem } from '../../base/errors.ts';
import { jsonEqual } from '../../base/json.ts';
import { definePhase } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { type KubeObject, refOf } from '../../kube/object.ts';
import {
  CONFIG_SOURCE_ANNOTATION,
  type ConfigSource,
  describeSource,
  formatSourceAnnotation,
  parseSourceAnnotation,
} from '../../kubelet/layers/config-source.ts';
import { PUSHED_LABEL } from './push-config.ts';

/**
 * Checks whether a node is assigned a ConfigMap that its agent may not read. One created by `dynamic push` is
 * copied. Any other is refused: the node itself can write its assignment, and must not obtain a copy of a
 * ConfigMap that it may not read.
 * @returns both null: unchanged
 */
export async function moveAssignment(
  cluster: Cluster,
  nodeName: string,
  namespace: string,
): Promise<{ readonly input: AgentAssignmentInput | null; readonly refusal: Problem | null }> {
  const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
  const { source } = parseSourceAnnotation(node?.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]);
  if (source === null || source.namespace === namespace) return { input: null, refusal: null };
  const to = { ...source, namespace };
  const [found, existing] = await Promise.all([configMap(cluster, source), configMap(cluster, to)]);
  if (found?.metadata.labels?.[PUSHED_LABEL] === undefined) return refuse(nodeName, source, namespace);
  const { data = {}, immutable } = found;
  const copy: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: to.name, namespace, labels: { [PUSHED_LABEL]: 'true' } },
    data,
    ...(immutable === true ? { immutable } : {}),
  };
  if (existing !== null && !jsonEqual(existing.data ?? {}, data)) return refuse(nodeName, source, namespace);
  return { input: { nodeName, from: source, to, copy }, refusal: null };
}

function configMap(cluster: Cluster, { namespace, name }: ConfigSource): Promise<KubeObject | null> {
  return cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name });
}

function refuse(nodeName: string, source: ConfigSource, namespace: string) {
  const message = `Node ${nodeName} is assigned ${describeSource(source)}, but the agent is allowed to read only ConfigMaps of namespace ${namespace}`;
  const hint = `1. Run kubeletadm dynamic push FILE --namespace ${namespace}. 2. Run kubeletadm dynamic reset ${nodeName}. 3. Rerun kubeletadm dynamic enable. 4. Run kubeletadm dynamic assign ${nodeName} --configmap with the value printed by dynamic push`;
  return { input: null, refusal: { code: 'AGENT_NAMESPACE_OTHER', message, hint } };
}

export interface AgentAssignmentInput {
  readonly nodeName: string;
  readonly from: ConfigSource;
  readonly to: ConfigSource;
  /** The ConfigMap of `to`. */
  readonly copy: KubeObject;
}

interface Facts {
  readonly node: KubeObject | null;
  readonly copy: KubeObject | null;
}

/**
 * Copies the assigned ConfigMap into the namespace that the agent may read, and assigns the copy. The
 * unchanged content causes no kubelet restart.
 */
export const agentAssignment = definePhase<AgentAssignmentInput | null, Facts | null>({
  name: 'agent-assignment',
  short: 'Copy the assigned ConfigMap into the agent namespace',
  observe: async ({ cluster }, input) => {
    if (input === null || cluster === null) return null;
    const [node, copy] = await Promise.all([
      cluster.get({ apiVersion: 'v1', kind: 'Node', name: input.nodeName }),
      cluster.get(refOf(input.copy)),
    ]);
    return { node, copy };
  },
  plan: (facts, input) => {
    if (facts === null || input === null || facts.node === null) return { changes: [] };
    const { from, to } = input;
    const annotations = { [CONFIG_SOURCE_ANNOTATION]: formatSourceAnnotation(to) };
    // A later assignment of another operator is kept.
    const isStill = facts.node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] !== annotations[CONFIG_SOURCE_ANNOTATION];
    return {
      changes: [
        ...(facts.copy === null
          ? [{ kind: 'create-object', object: input.copy, reason: `the agent cannot read ${describeSource(from)}` } as const]
          : []),
        ...(isStill
          ? [
              {
                kind: 'patch-object',
                ref: refOf(facts.node),
                patch: { metadata: { annotations } },
                reason: `replaces ${describeSource(from)}`,
              } as const,
            ]
          : []),
      ],
    };
  },
});
