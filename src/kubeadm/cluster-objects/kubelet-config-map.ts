import { createHash } from 'node:crypto';
import type { KubeObject } from '../../kube/object.ts';
import { KUBE_SYSTEM, KUBELET_CONFIG_NAME } from '../../kube/well-known.ts';
import { BOOTSTRAP_GROUP, NODES_GROUP, namespacedBinding, readConfigMapRole } from './bootstrap-rbac.ts';

const HASH_ANNOTATION = 'kubeadm.kubernetes.io/component-config.hash';

export const KUBELET_CONFIG_KEY = 'kubelet';

/**
 * Name of the ConfigMap for all nodes of a cluster.
 * @param minor minor version of the control plane: 36 for 1.36
 * @see kubeadm: `kubelet-config-1.X` up to 1.23, `kubelet-config` from 1.24 on
 */
export function kubeletConfigMapName(minor: number): string {
  return minor < 24 ? `kubelet-config-1.${minor}` : KUBELET_CONFIG_NAME;
}

/**
 * The ConfigMap with the KubeletConfiguration of all nodes. The hash annotation marks generated content:
 * kubeadm and kubeletadm may replace it; content written by hand is kept.
 * @param generated the user provided no KubeletConfiguration
 * @see kubeadm 1.36 phases/kubelet/config.go, componentconfigs/checksums.go
 */
export function kubeletConfigMap(name: string, yaml: string, generated: boolean): KubeObject {
  const data = { [KUBELET_CONFIG_KEY]: yaml };
  const configMap: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: KUBE_SYSTEM }, data };
  return generated ? signConfigMap(configMap) : configMap;
}

/** Marks a ConfigMap as generated (see `isGenerated`). */
export function signConfigMap(configMap: KubeObject): KubeObject {
  const hash = configMapHash((configMap.data ?? {}) as Readonly<Record<string, string>>);
  const annotations = { ...configMap.metadata.annotations, [HASH_ANNOTATION]: hash };
  return { ...configMap, metadata: { ...configMap.metadata, annotations } };
}

/**
 * kubeadm's hash of a ConfigMap: SHA-256 over the values of `data`, sorted by key, then the values of `binaryData`.
 * @see kubeadm 1.36 componentconfigs/checksums.go ChecksumForConfigMap
 */
export function configMapHash(data: Readonly<Record<string, string>>, binaryData: Readonly<Record<string, Uint8Array>> = {}): string {
  const hash = createHash('sha256');
  for (const key of Object.keys(data).sort()) hash.update(data[key] as string);
  for (const key of Object.keys(binaryData).sort()) hash.update(binaryData[key] as Uint8Array);
  return `sha256:${hash.digest('hex')}`;
}

export function unsignedAnnotations({ metadata }: KubeObject): Readonly<Record<string, string>> {
  const { [HASH_ANNOTATION]: _, ...others } = metadata.annotations ?? {};
  return others;
}

/** Whether the ConfigMap carries kubeadm's hash and was not edited since. */
export function isGenerated(configMap: KubeObject): boolean {
  const expected = configMap.metadata.annotations?.[HASH_ANNOTATION];
  return expected !== undefined && expected === configMapHash((configMap.data ?? {}) as Readonly<Record<string, string>>);
}

/** Role and RoleBinding that grant nodes and joining nodes read access to the ConfigMap. */
export function kubeletConfigRbac(configMapName: string): readonly [role: KubeObject, binding: KubeObject] {
  const at = { name: `kubeadm:${configMapName}`, namespace: KUBE_SYSTEM };
  return [readConfigMapRole(at, configMapName), namespacedBinding(at, [NODES_GROUP, BOOTSTRAP_GROUP])];
}
