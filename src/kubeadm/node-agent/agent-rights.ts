import { isJsonObject, type JsonObject } from '../../base/json.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RBAC_VERSION = `${RBAC_GROUP}/v1`;

/** The name of the roles and bindings of one node. */
export function agentRightsName(nodeName: string): string {
  return `kubeletadm:agent:${nodeName}`;
}

/**
 * The permissions that a kubelet's user `system:node:NAME` gets for its agent, in addition to those of the
 * Node authorizer: `get`, `list` and `watch` ConfigMaps of one namespace, and `get` `nodes/configz` of its
 * own Node. All other requests of the agent (its Node, the Node status, Events) are requests that a kubelet
 * may send, limited by the Node authorizer and NodeRestriction.
 *
 * `nodes/proxy` is never granted: a node controls the addresses of its own Node, so the API server would
 * connect to any other kubelet on its behalf.
 * @param rights.nodeUid UID of the Node, which owns the RBAC objects; null: not known
 * @returns Role, RoleBinding, ClusterRole and ClusterRoleBinding, owned by the Node, so that the garbage
 *   collector deletes them with it
 */
export function agentRights({
  nodeName,
  nodeUid,
  namespace,
}: {
  readonly nodeName: string;
  readonly nodeUid: string | null;
  readonly namespace: string;
}): readonly KubeObject[] {
  const name = agentRightsName(nodeName);
  const subjects = [{ apiGroup: RBAC_GROUP, kind: 'User', name: `system:node:${nodeName}` }];
  const owner = nodeUid === null ? {} : { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: nodeName, uid: nodeUid }] };
  const role = (kind: 'Role' | 'ClusterRole', at: JsonObject, rule: JsonObject): readonly KubeObject[] => [
    { apiVersion: RBAC_VERSION, kind, metadata: { name, ...at, ...owner }, rules: [rule] },
    {
      apiVersion: RBAC_VERSION,
      kind: `${kind}Binding`,
      metadata: { name, ...at, ...owner },
      roleRef: { apiGroup: RBAC_GROUP, kind, name },
      subjects,
    },
  ];
  return [
    ...role('Role', { namespace }, { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }),
    ...role('ClusterRole', {}, { apiGroups: [''], resources: ['nodes/configz'], resourceNames: [nodeName], verbs: ['get'] }),
  ];
}

/**
 * The binding of the account that earlier versions created for the agent of a node. It refers to the account,
 * so it is deleted last.
 */
export function formerAgentBinding(nodeName: string): ObjectRef {
  return { apiVersion: RBAC_VERSION, kind: 'ClusterRoleBinding', name: `kubeletadm-agent-${nodeName}` };
}

/**
 * The objects that earlier versions created for the agent of a node: a ServiceAccount with roles in the
 * namespace it read, in `default` and in the cluster.
 * @param binding named by `formerAgentBinding`; null: it does not exist
 */
export function formerAgentAccount(nodeName: string, binding: KubeObject | null): readonly ObjectRef[] {
  const last = formerAgentBinding(nodeName);
  const { name } = last;
  const subjects = Array.isArray(binding?.subjects) ? binding.subjects.filter(isJsonObject) : [];
  const named = subjects.flatMap(({ namespace }) => (typeof namespace === 'string' && namespace !== '' ? [namespace] : []));
  return [
    ...[...new Set([...named, KUBE_SYSTEM, 'default'])].flatMap((namespace) => [
      { apiVersion: 'v1', kind: 'ServiceAccount', namespace, name },
      { apiVersion: RBAC_VERSION, kind: 'RoleBinding', namespace, name },
      { apiVersion: RBAC_VERSION, kind: 'Role', namespace, name },
    ]),
    { apiVersion: RBAC_VERSION, kind: 'ClusterRole', name },
    last,
  ];
}
