import { observe } from '../../host/access/observe.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import { definePhase } from '../../host/phase.ts';
import type { Change } from '../../host/plan/change.ts';
import type { KubeObject } from '../../kube/object.ts';

export interface DeleteNodeInput {
  /** Null: no Node is deleted. */
  readonly nodeName: string | null;
  /** Why no Node is deleted; default: not requested. */
  readonly noop?: string;
}

interface Facts {
  readonly node: KubeObject | null;
  readonly unit: UnitState | null;
}

/**
 * Deletes the Node. Runs before the files are removed, while the host still has its name; the kubelet is
 * stopped first, so that it does not register the Node again.
 * kubeadm leaves the Node to the administrator.
 */
export const deleteNode = definePhase<DeleteNodeInput, Facts>({
  name: 'delete-node',
  short: 'Stop the kubelet and delete the Node (with --delete-node)',
  observe: async ({ host, cluster, signal }, { nodeName }) => {
    if (nodeName === null || cluster === null) return { node: null, unit: null };
    const unit = await observe(host, unitState('kubelet'), signal);
    return { node: await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName }), unit };
  },
  plan: ({ node, unit }, { nodeName, noop }) => {
    if (nodeName === null) return { changes: [], noop: noop ?? 'the Node is kept (--delete-node deletes it)' };
    if (node === null) return { changes: [], noop: `Node ${nodeName} does not exist` };
    const runs = unit !== null && unit.activeState !== 'inactive' && unit.loadState !== 'not-found';
    const stop: readonly Change[] = runs ? [{ kind: 'stop-unit', unit: 'kubelet', reason: 'the Node is deleted' }] : [];
    const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    return { changes: [...stop, { kind: 'delete-object', ref, reason: '--delete-node was given' }] };
  },
});
