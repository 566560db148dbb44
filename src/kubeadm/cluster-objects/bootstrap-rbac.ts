import type { JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import { NODES_GROUP_NAME } from '../../kube/well-known.ts';

const API_GROUP = 'rbac.authorization.k8s.io';
const API_VERSION = `${API_GROUP}/v1`;
const CSRS = 'system:certificates.k8s.io:certificatesigningrequests';

type Namespaced = { readonly name: string; readonly namespace: string };

const group = (name: string): JsonObject => ({ kind: 'Group', name });
const user = (name: string): JsonObject => ({ kind: 'User', name });

/** Group of the bootstrap tokens that `init` and `token create` create. */
export const BOOTSTRAP_GROUP = group('system:bootstrappers:kubeadm:default-node-token');
export const NODES_GROUP = group(NODES_GROUP_NAME);
/** User of requests without credentials. */
export const ANONYMOUS = user('system:anonymous');

export function readConfigMapRole(at: Namespaced, configMap: string): KubeObject {
  return readRole(at, 'configmaps', configMap);
}

export function readSecretRole(at: Namespaced, secret: string): KubeObject {
  return readRole(at, 'secrets', secret);
}

function readRole({ namespace, name }: Namespaced, resource: string, object: string): KubeObject {
  const rule = { apiGroups: [''], resources: [resource], resourceNames: [object], verbs: ['get'] };
  return { apiVersion: API_VERSION, kind: 'Role', metadata: { name, namespace }, rules: [rule] };
}

/** A RoleBinding to the Role of the same name. */
export function namespacedBinding({ namespace, name }: Namespaced, subjects: readonly JsonObject[]): KubeObject {
  const roleRef = { apiGroup: API_GROUP, kind: 'Role', name };
  return { apiVersion: API_VERSION, kind: 'RoleBinding', metadata: { name, namespace }, roleRef, subjects };
}

export function clusterRole(name: string, rules: readonly JsonObject[]): KubeObject {
  return { apiVersion: API_VERSION, kind: 'ClusterRole', metadata: { name }, rules };
}

export function serviceAccountSubject({ name, namespace }: Namespaced): JsonObject {
  return { kind: 'ServiceAccount', name, namespace };
}

export function clusterBinding(name: string, role: string, subject: JsonObject): KubeObject {
  const roleRef = { apiGroup: API_GROUP, kind: 'ClusterRole', name: role };
  return { apiVersion: API_VERSION, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects: [subject] };
}

/**
 * The RBAC rules that let nodes join and renew their certificates automatically, and the rules for
 * administrators and for the API server's access to kubelets.
 * @see kubeadm 1.36 phases/bootstraptoken/node and phases/kubeconfig (kubeadm:cluster-admins, from 1.29 on)
 */
export function bootstrapRbac(): readonly KubeObject[] {
  const getNodes = { apiGroups: [''], resources: ['nodes'], verbs: ['get'] };
  return [
    clusterRole('kubeadm:get-nodes', [getNodes]),
    clusterBinding('kubeadm:get-nodes', 'kubeadm:get-nodes', BOOTSTRAP_GROUP),
    clusterBinding('kubeadm:kubelet-bootstrap', 'system:node-bootstrapper', BOOTSTRAP_GROUP),
    clusterBinding('kubeadm:node-autoapprove-bootstrap', `${CSRS}:nodeclient`, BOOTSTRAP_GROUP),
    clusterBinding('kubeadm:node-autoapprove-certificate-rotation', `${CSRS}:selfnodeclient`, NODES_GROUP),
    clusterBinding('kubeadm:apiserver-kubelet-client', 'system:kubelet-api-admin', user('kube-apiserver-kubelet-client')),
    clusterBinding('kubeadm:cluster-admins', 'cluster-admin', group('kubeadm:cluster-admins')),
  ];
}
