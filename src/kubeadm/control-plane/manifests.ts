import type { JsonObject } from '../../base/json.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import { patchedObject } from '../patches/patched-object.ts';
import { etcdPod } from './etcd.ts';
import { kubeApiserverPod, kubeControllerManagerPod, kubeSchedulerPod } from './kubernetes-pods.ts';
import { type ControlPlaneNode, hasLocalEtcd } from './model.ts';
import { manifestPath, type StaticPodName } from './paths.ts';

const PODS = {
  etcd: etcdPod,
  'kube-apiserver': kubeApiserverPod,
  'kube-controller-manager': kubeControllerManagerPod,
  'kube-scheduler': kubeSchedulerPod,
} as const satisfies { readonly [K in StaticPodName]: (node: ControlPlaneNode) => JsonObject };

/** The static Pods of a node, in kubeadm's order; includes etcd if it runs on the control planes. */
export function staticPodNames({ cluster }: Pick<ControlPlaneNode, 'cluster'>): readonly StaticPodName[] {
  const components = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
  return hasLocalEtcd(cluster) ? ['etcd', ...components] : components;
}

/**
 * The Pod of a component with its patches applied, as rendered by kubeadm 1.36.
 * @throws AppError of `patchedObject` when a patch cannot be applied
 */
export function staticPodOf(node: ControlPlaneNode, name: StaticPodName): JsonObject {
  return patchedObject(PODS[name](node), node.patches, { kind: 'Pod', target: name });
}

/** The manifest of a static Pod: its file below /etc/kubernetes/manifests. */
export function manifestFile(node: ControlPlaneNode, name: StaticPodName): DesiredFile {
  return { path: manifestPath(name), content: encodeYaml(staticPodOf(node, name)), mode: 0o600, owner: 'root:root' };
}
