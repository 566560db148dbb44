import { type DefinedPhase, definePhase } from '../../host/phase.ts';
import { CONTROL_PLANE_LABEL, diffNodeMarks } from '../../kube/node-marks.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Taint } from '../../kube/taint.ts';
import { waitForNode } from './wait-node.ts';

/** The phase uses the host's own credentials, which could change the Node anyway: it need not prove that it is this Node. */
export interface MarkControlPlaneInput {
  readonly nodeName: string;
  /** `[]`: all Pods may run on the node. */
  readonly taints: readonly Taint[];
  /** Timeout for the kubelet to register its Node. */
  readonly timeoutMs: number;
}

/** Labels that mark a control plane and exclude it from external load balancers. */
const LABELS = { [CONTROL_PLANE_LABEL]: '', 'node.kubernetes.io/exclude-from-external-load-balancers': '' };

function markControlPlanePhase(name: string): DefinedPhase<MarkControlPlaneInput> {
  // `absent`: not registered yet; null: the cluster does not exist yet.
  return definePhase<MarkControlPlaneInput, KubeObject | 'absent' | null>({
    name,
    short: 'Set the control plane labels and taints of the Node',
    ready: async (context, { nodeName, timeoutMs }) => {
      if (context.cluster === null) return;
      await waitForNode(context, { nodeName, timeoutMs, readyMs: null, admin: null }, name);
    },
    observe: async ({ cluster }, { nodeName }) =>
      cluster === null ? null : ((await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName })) ?? 'absent'),
    plan: (found, { nodeName, taints }) => {
      if (found === 'absent') return { changes: [], deferred: `waits until the kubelet has registered Node ${nodeName}` };
      const marks = { labels: LABELS, taints };
      const diff = diffNodeMarks(found, marks);
      if (diff === null) return { changes: [], noop: `Node ${nodeName} has the control plane labels and taints` };
      const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
      return { changes: [{ kind: 'mark-node', ref, patch: diff.patch, marks, isRecorded: false, reason: `${diff.missing} is missing` }] };
    },
  });
}

/** kubeadm 1.36: init phase mark-control-plane. */
export const markControlPlane = markControlPlanePhase('mark-control-plane');
/** kubeadm 1.36: join phase control-plane-join/mark-control-plane. */
export const joinMarkControlPlane = markControlPlanePhase('control-plane-join/mark-control-plane');
