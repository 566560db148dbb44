import { clusterInfoKubeconfig } from '../kube/kubeconfig-render.ts';
import type { KubeObject } from '../kube/object.ts';
import { CLUSTER_INFO_NAME, KUBE_PUBLIC } from '../kube/well-known.ts';
import { ANONYMOUS, namespacedBinding, readConfigMapRole } from './bootstrap-rbac.ts';

/** Public ConfigMap with the address and the CA of the cluster. */
export const CLUSTER_INFO = { namespace: KUBE_PUBLIC, name: CLUSTER_INFO_NAME } as const;
/** Key of its kubeconfig, which contains no credentials. */
export const CLUSTER_INFO_KUBECONFIG = 'kubeconfig';
/** Prefix of the signature keys; the token id follows. */
export const SIGNATURE_PREFIX = 'jws-kubeconfig-';

/**
 * The ConfigMap cluster-info without signatures, which the bootstrapsigner of kube-controller-manager adds.
 * @see kubeadm 1.36 phases/bootstraptoken/clusterinfo
 */
export function clusterInfoMap(apiServer: { readonly server: string; readonly caPem: string }): KubeObject {
  const data = { [CLUSTER_INFO_KUBECONFIG]: clusterInfoKubeconfig(apiServer) };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: CLUSTER_INFO, data };
}

/** Role and RoleBinding that grant read access without credentials. */
export function clusterInfoRbac(): readonly [role: KubeObject, binding: KubeObject] {
  const at = { namespace: CLUSTER_INFO.namespace, name: 'kubeadm:bootstrap-signer-clusterinfo' };
  return [readConfigMapRole(at, CLUSTER_INFO.name), namespacedBinding(at, [ANONYMOUS])];
}

export function dataOf(configMap: KubeObject): Readonly<Record<string, string>> {
  return (configMap.data as Readonly<Record<string, string>> | undefined) ?? {};
}
