import type { DefinedPhase } from '../../host/phase.ts';
import { ETCD_DATA_DIR, MANIFESTS_DIR } from '../../kube/well-known.ts';
import { manifestFile } from '../control-plane/manifests.ts';
import { type ControlPlaneNode, hasLocalEtcd } from '../control-plane/model.ts';
import type { StaticPodName } from '../control-plane/paths.ts';
import { type WriteFilesInput, writeFilesPhase } from './write-files.ts';

/**
 * Writes the manifest of a static Pod. The kubelet stops the Pod of the previous manifest and starts the new
 * one. kubeadm 1.36: the phase of this name.
 */
function staticPodPhase(name: string, what: string): DefinedPhase<WriteFilesInput> {
  return writeFilesPhase(name, `Write the static Pod manifest of ${what}`, 'the manifest is unchanged');
}

/** kubeadm 1.36: init phase etcd/local. */
export const etcdLocal = staticPodPhase('etcd/local', 'the local etcd member');
/** kubeadm 1.36: init phase control-plane/apiserver. */
export const controlPlaneApiserver = staticPodPhase('control-plane/apiserver', 'kube-apiserver');
/** kubeadm 1.36: init phase control-plane/controller-manager. */
export const controlPlaneControllerManager = staticPodPhase('control-plane/controller-manager', 'kube-controller-manager');
/** kubeadm 1.36: init phase control-plane/scheduler. */
export const controlPlaneScheduler = staticPodPhase('control-plane/scheduler', 'kube-scheduler');
/**
 * kubeadm 1.36: join phase control-plane-prepare/control-plane: all manifests except etcd, which joins later.
 */
export const controlPlanePrepare = writeFilesPhase(
  'control-plane-prepare/control-plane',
  'Write the static Pod manifests of the control plane',
  'the manifests are unchanged',
);

/**
 * Input of a static Pod phase: the manifests of the components, and their manifest and data directories. With
 * external etcd, no etcd manifest.
 * @throws AppError when a patch cannot be applied (see `patchedObject`)
 */
export function staticPodsInput(
  node: ControlPlaneNode,
  names: readonly StaticPodName[],
  { mayChown }: Pick<WriteFilesInput, 'mayChown'>,
): WriteFilesInput {
  const written = hasLocalEtcd(node.cluster) ? names : names.filter((name) => name !== 'etcd');
  if (written.length === 0) return { files: [], directories: [], mayChown, skipped: 'etcd is external' };
  const { local } = node.cluster.etcd;
  const data = written.includes('etcd') && local !== undefined ? [{ path: local.dataDir ?? ETCD_DATA_DIR, mode: 0o700 }] : [];
  return {
    files: written.map((name) => manifestFile(node, name)),
    directories: [{ path: MANIFESTS_DIR, mode: 0o700 }, ...data],
    mayChown,
  };
}
