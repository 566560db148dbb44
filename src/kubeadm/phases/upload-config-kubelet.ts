import { definePhase } from '../../host/phase.ts';
import type { PhasePlan } from '../../host/plan/change.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import type { KubeObject } from '../../kube/object.ts';
import { kubeletConfigMap, kubeletConfigMapName, kubeletConfigRbac } from '../cluster-objects/kubelet-config-map.ts';
import { diffComponentConfig } from '../upgrade/component-config-diff.ts';
import { findObjects } from './find-objects.ts';

export interface UploadKubeletConfigInput {
  /** Minor version of the control plane; determines the name of the ConfigMap. */
  readonly controlPlaneMinor: number;
  /** The KubeletConfiguration for all nodes, as YAML. */
  readonly yaml: string;
  /** The user provided no KubeletConfiguration: the ConfigMap may be regenerated at any time. */
  readonly generated: boolean;
  /** Replace a ConfigMap that was edited by hand. */
  readonly forceUpload: boolean;
  /** Plan as for an empty cluster if none exists (`--dry-run`). */
  readonly assumeEmptyCluster: boolean;
}

type Found = { readonly configMap: KubeObject | null; readonly role: KubeObject | null; readonly binding: KubeObject | null } | null;

/**
 * Uploads the KubeletConfiguration of all nodes with the RBAC rules that let nodes read it. A ConfigMap that
 * was edited by hand is kept, and the difference is shown. kubeadm 1.36: init phase upload-config/kubelet
 * (which overwrites it).
 */
export const uploadConfigKubelet = definePhase<UploadKubeletConfigInput, Found>({
  name: 'upload-config/kubelet',
  short: 'Upload the kubelet configuration to a ConfigMap',
  observe: async ({ cluster }, input) => {
    if (cluster === null) return input.assumeEmptyCluster ? { configMap: null, role: null, binding: null } : null;
    const name = kubeletConfigMapName(input.controlPlaneMinor);
    const [configMap = null, role = null, binding = null] = await findObjects(cluster, [
      kubeletConfigMap(name, '', false),
      ...kubeletConfigRbac(name),
    ]);
    return { configMap, role, binding };
  },
  plan: (found, input) => {
    if (found === null) return { changes: [], deferred: 'needs an API server (--kubeconfig)' };
    return planUpload(found, input);
  },
});

function planUpload(found: NonNullable<Found>, input: UploadKubeletConfigInput): PhasePlan {
  const name = kubeletConfigMapName(input.controlPlaneMinor);
  const [role, binding] = kubeletConfigRbac(name);
  const { change, warnings } = diffComponentConfig(found.configMap, kubeletConfigMap(name, input.yaml, input.generated), {
    force: input.forceUpload,
    keptCode: 'KUBELET_CONFIG_KEPT',
  });
  const changes = [...(change === null ? [] : [change]), ...diffRbac(found.role, role), ...diffRbac(found.binding, binding)];
  const noop =
    changes.length > 0
      ? {}
      : {
          noop:
            warnings.length > 0
              ? `ConfigMap kube-system/${name} is kept`
              : `ConfigMap kube-system/${name} and its RBAC rules are unchanged`,
        };
  return { changes, warnings, ...noop };
}
