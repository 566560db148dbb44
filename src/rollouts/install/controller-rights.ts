import type { JsonObject } from '../../base/json.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { nodeOfController } from '../../kubeadm/control-plane/controller-unit.ts';
import { objectsAt } from '../../kubelet/documents/values.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const RIGHTS_NAME = 'kubeletadm:controller';

/** Binds the users of controllers that run on hosts. */
export const CONTROLLER_BINDING: ObjectRef = { apiVersion: `${RBAC_GROUP}/v1`, kind: 'ClusterRoleBinding', name: RIGHTS_NAME };

/** `GROUP/RESOURCE` (the core group is empty), verbs, and the only object with these rights. */
type Rule = readonly [resource: string, verbs: string, name?: string];

const IN_CLUSTER: readonly Rule[] = [
  ['kubeletadm.dev/kubeletconfigrollouts', 'list watch patch'],
  ['kubeletadm.dev/kubeletconfigrollouts/status', 'patch'],
  // For ControllerRevisions and Jobs that a rollout owns, where OwnerReferencesPermissionEnforcement is enabled.
  ['kubeletadm.dev/kubeletconfigrollouts/finalizers', 'update'],
  ['/nodes', 'get list watch patch'],
  ['/nodes/status', 'patch'],
  // The running configuration of a kubelet, through the API server.
  ['/nodes/proxy', 'get'],
  ['/namespaces', 'get', AGENT_NAMESPACE],
  ['/pods', 'list'],
  // Drains.
  ['/pods/eviction', 'create'],
  ['policy/poddisruptionbudgets', 'list'],
  ['/persistentvolumeclaims', 'list'],
  ['/persistentvolumes', 'list'],
  ['/replicationcontrollers', 'get'],
  ['apps/daemonsets', 'list'],
  ['apps/replicasets', 'get'],
  ['apps/statefulsets', 'get'],
  // The rules of an agent whose Node was created again. An API server lets the controller grant only rights that it has itself.
  [`${RBAC_GROUP}/clusterroles`, 'get create'],
  [`${RBAC_GROUP}/clusterrolebindings`, 'get create'],
  ['/nodes/configz', 'get'],
];

const IN_NAMESPACES: Readonly<Record<string, readonly Rule[]>> = {
  [AGENT_NAMESPACE]: [
    ['/configmaps', 'get list watch create patch delete'],
    ['apps/controllerrevisions', 'list create update delete'],
    ['coordination.k8s.io/leases', 'get create update'],
    [`${RBAC_GROUP}/roles`, 'get create'],
    [`${RBAC_GROUP}/rolebindings`, 'get create'],
  ],
  // Events about Nodes.
  default: [['/events', 'list watch create']],
  // The addresses of the DNS Services, which a payload must not lose.
  [KUBE_SYSTEM]: [['/services', 'list']],
};

/**
 * The rights of the controller, without wildcards.
 * @returns for each scope a role and its binding
 */
export function controllerRights(subjects: readonly JsonObject[]): readonly KubeObject[] {
  return [
    ...boundRole('ClusterRole', undefined, IN_CLUSTER, subjects),
    ...Object.entries(IN_NAMESPACES).flatMap(([namespace, rules]) => boundRole('Role', namespace, rules, subjects)),
  ];
}

/** The Nodes of the controllers that run on hosts, by the users of a binding. @param binding null: it does not exist */
export function hostsOfController(binding: KubeObject | null): readonly string[] {
  const subjects = binding === null ? [] : objectsAt(binding, 'subjects');
  return subjects.flatMap(({ kind, name }) => (kind === 'User' && typeof name === 'string' ? (nodeOfController(name) ?? []) : []));
}

function boundRole(
  kind: 'Role' | 'ClusterRole',
  namespace: string | undefined,
  rules: readonly Rule[],
  subjects: readonly JsonObject[],
): readonly KubeObject[] {
  const apiVersion = `${RBAC_GROUP}/v1`;
  const metadata = { name: RIGHTS_NAME, ...(namespace === undefined ? {} : { namespace }) };
  return [
    { apiVersion, kind, metadata, rules: rules.map(ruleOf) },
    { apiVersion, kind: `${kind}Binding`, metadata, roleRef: { apiGroup: RBAC_GROUP, kind, name: RIGHTS_NAME }, subjects },
  ];
}

function ruleOf([path, verbs, name]: Rule): JsonObject {
  const [group = '', ...resource] = path.split('/');
  return {
    apiGroups: [group],
    resources: [resource.join('/')],
    ...(name === undefined ? {} : { resourceNames: [name] }),
    verbs: verbs.split(' '),
  };
}
