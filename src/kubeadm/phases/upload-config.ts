import { isJsonObject, type JsonObject, jsonEqual } from '../../base/json.ts';
import { overlayChanges } from '../../codec/patch-merge.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { definePhase } from '../../host/phase.ts';
import type { ClusterChange } from '../../host/plan/change.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import type { KubeObject } from '../../kube/object.ts';
import { readYaml } from '../../kube/same-yaml.ts';
import { KUBE_SYSTEM, KUBEADM_CONFIG_NAME } from '../../kube/well-known.ts';
import { BOOTSTRAP_GROUP, NODES_GROUP, namespacedBinding, readConfigMapRole } from '../cluster-objects/bootstrap-rbac.ts';
import { dataOf } from '../cluster-objects/cluster-info.ts';
import { kubeletConfigMap, kubeletConfigMapName, kubeletConfigRbac } from '../cluster-objects/kubelet-config-map.ts';
import { diffComponentConfig } from '../upgrade/component-config-diff.ts';
import { findObjects } from './find-objects.ts';

export interface UploadKubeadmConfigInput {
  /** The ClusterConfiguration as stored by kubeadm; null when the control plane version is not known. */
  readonly clusterConfiguration: JsonObject | null;
  /**
   * The ClusterConfiguration of the cluster in the same form, without the values declared in this run and
   * without unknown fields; null when it does not exist.
   */
  readonly currentConfiguration: JsonObject | null;
}

/**
 * Uploads the ClusterConfiguration with the RBAC rules that let nodes read it: joins and upgrades, also
 * kubeadm's, use these settings. In an existing ConfigMap only declared values are changed. kubeadm 1.36:
 * init phase upload-config/kubeadm (which replaces it).
 */
export const uploadConfigKubeadm = definePhase<UploadKubeadmConfigInput, readonly (KubeObject | null)[]>({
  name: 'upload-config/kubeadm',
  short: 'Upload the cluster configuration to a ConfigMap',
  observe: ({ cluster }, { clusterConfiguration }) =>
    findObjects(cluster, [kubeadmConfigMap(clusterConfiguration ?? {}), ...kubeadmConfigRbac()]),
  plan: (found, { clusterConfiguration, currentConfiguration: decodedConfiguration }) => {
    if (clusterConfiguration === null) return { changes: [], deferred: 'needs the version of the control plane (--kubernetes-version)' };
    const [role, binding] = kubeadmConfigRbac();
    const [foundMap = null, foundRole = null, foundBinding = null] = found;
    const changes = [
      ...diffConfigMap(foundMap, clusterConfiguration, decodedConfiguration),
      ...diffRbac(foundRole, role),
      ...diffRbac(foundBinding, binding),
    ];
    return { changes, ...(changes.length > 0 ? {} : { noop: 'ConfigMap kube-system/kubeadm-config and its RBAC rules are unchanged' }) };
  },
});

/** Other keys of the ConfigMap are kept. */
function diffConfigMap(found: KubeObject | null, desired: JsonObject, currentConfiguration: JsonObject | null): readonly ClusterChange[] {
  if (found === null) return [{ kind: 'create-object', object: kubeadmConfigMap(desired), reason: 'does not exist' }];
  const existing = readYaml(dataOf(found)[CLUSTER_CONFIGURATION_KEY] ?? '');
  const after = isJsonObject(existing) && currentConfiguration !== null ? overlayChanges(existing, currentConfiguration, desired) : desired;
  if (jsonEqual(existing, after)) return [];
  const object = { ...found, data: { ...dataOf(found), ...dataOf(kubeadmConfigMap(after)) } };
  return [{ kind: 'update-object', object, before: found, reason: 'the declared settings differ' }];
}

/** Key of the ConfigMap that holds the ClusterConfiguration. */
const CLUSTER_CONFIGURATION_KEY = 'ClusterConfiguration';
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

export interface UploadKubeletConfigInput {
  /** Minor version of the control plane; determines the name of the ConfigMap. */
  readonly controlPlaneMinor: number;
  /** The KubeletConfiguration for all nodes, as YAML. */
  readonly yaml: string;
  /** The user provided no KubeletConfiguration: the ConfigMap may be regenerated at any time. */
  readonly generated: boolean;
  /** Replace a ConfigMap that was edited by hand. */
  readonly forceUpload: boolean;
}

/**
 * Uploads the KubeletConfiguration of all nodes with the RBAC rules that let nodes read it. A ConfigMap that
 * was edited by hand is kept, and the difference is shown. kubeadm 1.36: init phase upload-config/kubelet
 * (which overwrites it).
 */
export const uploadConfigKubelet = definePhase<UploadKubeletConfigInput, readonly (KubeObject | null)[]>({
  name: 'upload-config/kubelet',
  short: 'Upload the kubelet configuration to a ConfigMap',
  observe: ({ cluster }, { controlPlaneMinor }) => {
    const name = kubeletConfigMapName(controlPlaneMinor);
    return findObjects(cluster, [kubeletConfigMap(name, '', false), ...kubeletConfigRbac(name)]);
  },
  plan: ([configMap = null, foundRole = null, foundBinding = null], { controlPlaneMinor, yaml, generated, forceUpload }) => {
    const name = kubeletConfigMapName(controlPlaneMinor);
    const [role, binding] = kubeletConfigRbac(name);
    const config = diffComponentConfig(configMap, kubeletConfigMap(name, yaml, generated), {
      force: forceUpload,
      keptCode: 'KUBELET_CONFIG_KEPT',
    });
    const { change, warnings } = config;
    const changes = [...(change === null ? [] : [change]), ...diffRbac(foundRole, role), ...diffRbac(foundBinding, binding)];
    if (changes.length > 0) return { changes, warnings };
    const state = warnings.length > 0 ? 'is kept' : 'and its RBAC rules are unchanged';
    return { changes, warnings, noop: `ConfigMap kube-system/${name} ${state}` };
  },
});
