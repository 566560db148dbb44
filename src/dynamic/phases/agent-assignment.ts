import { definePhase } from '../../host/phase.ts';
import type { KubeObject } from '../../kube/object.ts';
import { refOf } from '../../kube/object.ts';
import { CONFIG_SOURCE_ANNOTATION, type ConfigSource, describeSource, formatSourceAnnotation } from '../../kubelet/layers/config-source.ts';

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
