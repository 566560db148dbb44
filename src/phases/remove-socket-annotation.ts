import { AppError } from '../core/errors.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { definePhase } from '../engine/phase.ts';

const ANNOTATION = 'kubeadm.alpha.kubernetes.io/cri-socket';

/** Takes off the Node what older kubeadm noted there: the socket is in instance-config.yaml now. kubeadm 1.36: part of upgrade's kubelet-config. */
export const removeSocketAnnotation = definePhase<{ readonly nodeName: string }, KubeObject | null>({
  name: 'kubelet-config/cri-socket-annotation',
  short: 'Remove the annotation of the CRI socket from the Node',
  observe: async ({ cluster }, { nodeName }) => {
    try {
      return (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) ?? null;
    } catch (error) {
      if (error instanceof AppError && error.code === 'CLUSTER_FORBIDDEN') return null;
      throw error;
    }
  },
  plan: (node, { nodeName }) => {
    if (node?.metadata.annotations?.[ANNOTATION] === undefined)
      return { changes: [], noop: `Node ${nodeName} has no annotation of the CRI socket` };
    const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    const patch = { metadata: { annotations: { [ANNOTATION]: null } } };
    return { changes: [{ kind: 'patch-object', ref, patch, because: 'the socket is in instance-config.yaml' }] };
  },
});
