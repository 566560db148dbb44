import { isJsonObject } from '../../base/json.ts';
import { definePhase } from '../../host/phase.ts';
import type { ClusterChange } from '../../host/plan/change.ts';
import { NAMESPACE_ANNOTATION } from '../../kube/agent-namespace.ts';
import type { KubeObject } from '../../kube/object.ts';
import { ASSIGNED_BY_ANNOTATION } from '../../kubelet/effective/assigned-by.ts';
import {
  ALLOW_POD_LOSS_ANNOTATION,
  CONFIG_REPORT_ANNOTATION,
  CONFIG_SOURCE_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  RETRY_ANNOTATION,
} from '../../kubelet/layers/config-source.ts';
import { CONFIG_CONDITION } from '../agent/status.ts';

const ANNOTATIONS = [
  CONFIG_SOURCE_ANNOTATION,
  ALLOW_POD_LOSS_ANNOTATION,
  ASSIGNED_BY_ANNOTATION,
  CONFIG_STATUS_ANNOTATION,
  CONFIG_REPORT_ANNOTATION,
  RETRY_ANNOTATION,
  NAMESPACE_ANNOTATION,
];

interface RemoveInput {
  readonly nodeName: string;
  /** The status of a kubelet up to 1.23 is kept, because the kubelet continues to write it. */
  readonly keepsReport: boolean;
}

/** Removes the assignment and its status from a Node on which no agent or kubelet uses them any more. */
export const removeAssignment = definePhase<RemoveInput | null, KubeObject | null>({
  name: 'forget-assignment',
  short: 'Remove the assignment and its status from the Node',
  observe: async ({ cluster }, input) =>
    input === null || cluster === null ? null : cluster.get({ apiVersion: 'v1', kind: 'Node', name: input.nodeName }),
  plan: (node, input) => {
    if (input === null) return { changes: [] };
    const changes = node === null ? [] : changesOf(node, input.keepsReport);
    return changes.length === 0 ? { changes, noop: 'the Node has no assignment' } : { changes };
  },
});

function changesOf(node: KubeObject, keepsReport: boolean): readonly ClusterChange[] {
  const ref = { apiVersion: 'v1', kind: 'Node', name: node.metadata.name };
  const reason = keepsReport ? 'the kubelet returns to its local configuration' : 'dynamic configuration is disabled on the node';
  const annotations = ANNOTATIONS.filter((name) => node.metadata.annotations?.[name] !== undefined);
  const { spec, status } = node;
  const isAssigned = isJsonObject(spec) && isJsonObject(spec.configSource);
  const main = {
    ...(annotations.length === 0 ? {} : { metadata: { annotations: Object.fromEntries(annotations.map((name) => [name, null])) } }),
    ...(isAssigned ? { spec: { configSource: null } } : {}),
  };
  const conditions = isJsonObject(status) && Array.isArray(status.conditions) ? status.conditions.filter(isJsonObject) : [];
  const isAnnounced = conditions.some(({ type }) => type === CONFIG_CONDITION);
  const isReported = !keepsReport && isJsonObject(status) && isJsonObject(status.config);
  const reported = {
    ...(isAnnounced ? { conditions: [{ $patch: 'delete', type: CONFIG_CONDITION }] } : {}),
    ...(isReported ? { config: null } : {}),
  };
  return [
    ...(Object.keys(main).length === 0 ? [] : [{ kind: 'patch-object', ref, patch: main, reason } as const]),
    ...(Object.keys(reported).length === 0
      ? []
      : [{ kind: 'patch-object', ref, patch: { status: reported }, subresource: 'status', reason: `status: ${reason}` } as const]),
  ];
}
