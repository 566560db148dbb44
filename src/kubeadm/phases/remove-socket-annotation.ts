import { AppError } from '../../base/errors.ts';
import { definePhase } from '../../host/phase.ts';
import type { KubeObject } from '../../kube/object.ts';
import { isUnchecked, type OwnNodeCheck, waitsForCheck } from './own-node.ts';

const ANNOTATION = 'kubeadm.alpha.kubernetes.io/cri-socket';

export interface RemoveSocketAnnotationInput {
  readonly nodeName: string;
  /** Null: the credentials are the node's own, or the Node was verified when the run was planned. */
  readonly check: OwnNodeCheck | null;
}

export function hasSocketAnnotation(node: KubeObject | null): boolean {
  return node?.metadata.annotations?.[ANNOTATION] !== undefined;
}

/**
 * Removes the CRI socket annotation of older kubeadm versions from the Node: the socket is in
 * instance-config.yaml now. kubeadm 1.36: part of upgrade's kubelet-config.
 */
export const removeSocketAnnotation = definePhase<RemoveSocketAnnotationInput, KubeObject | null>({
  name: 'kubelet-config/cri-socket-annotation',
  short: 'Remove the CRI socket annotation from the Node',
  observe: async ({ cluster }, { nodeName }) => {
    try {
      return (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) ?? null;
    } catch (error) {
      if (error instanceof AppError && error.code === 'CLUSTER_FORBIDDEN') return null;
      throw error;
    }
  },
  plan: (node, { nodeName, check }) => {
    if (!hasSocketAnnotation(node)) return { changes: [], noop: `Node ${nodeName} has no CRI socket annotation` };
    if (isUnchecked(check)) return { changes: [], deferred: waitsForCheck(nodeName) };
    const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    const patch = { metadata: { annotations: { [ANNOTATION]: null } } };
    return { changes: [{ kind: 'patch-object', ref, patch, reason: 'the CRI socket is set in instance-config.yaml' }] };
  },
});
