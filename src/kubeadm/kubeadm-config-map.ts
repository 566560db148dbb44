import type { JsonObject } from '../base/json.ts';
import { encodeYaml } from '../codec/yaml-encode.ts';
import type { KubeObject } from '../kube/object.ts';
import { KUBE_SYSTEM, KUBEADM_CONFIG_NAME } from '../kube/well-known.ts';
import { BOOTSTRAP_GROUP, NODES_GROUP, namespacedBinding, readConfigMapRole } from './bootstrap-rbac.ts';

/** Key of the ConfigMap that holds the ClusterConfiguration. */
export const CLUSTER_CONFIGURATION_KEY = 'ClusterConfiguration';
const KUBEADM_CONFIG = { namespace: KUBE_SYSTEM, name: KUBEADM_CONFIG_NAME } as const;

/**
 * The ConfigMap that contains the ClusterConfiguration.
 * @param cluster as returned by `encodeClusterConfiguration`
 * @see kubeadm 1.36 phases/uploadconfig
 */
export function kubeadmConfigMap(cluster: JsonObject): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: KUBEADM_CONFIG, data: { [CLUSTER_CONFIGURATION_KEY]: encodeYaml(cluster) } };
}

/** Role and RoleBinding that grant read access to nodes and joining nodes. */
export function kubeadmConfigRbac(): readonly [role: KubeObject, binding: KubeObject] {
  const at = { namespace: KUBEADM_CONFIG.namespace, name: 'kubeadm:nodes-kubeadm-config' };
  return [readConfigMapRole(at, KUBEADM_CONFIG.name), namespacedBinding(at, [BOOTSTRAP_GROUP, NODES_GROUP])];
}
