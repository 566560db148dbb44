import { isAppError } from '../core/errors.ts';
import { bootstrapRbac } from '../core/kubernetes/bootstrap-rbac.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import { refOf } from '../core/kubernetes/object-ref.ts';
import { diffRbac } from '../core/kubernetes/rbac-diff.ts';
import { definePhase } from '../engine/phase.ts';

const BINDING = bootstrapRbac().find(({ metadata }) => metadata.name === 'kubeadm:cluster-admins') as KubeObject;

/** `there`: as far as who asks may know. */
type Found = { readonly binding: KubeObject | null } | 'waiting';

/**
 * Makes an administrator of who has admin.conf: the API server knows its group only once this binding is there, which super-admin.conf may make.
 * kubeadm 1.36 does it in wait-control-plane, when admin.conf is first used.
 * The phase's cluster is the one of super-admin.conf.
 */
export const bindClusterAdmins = definePhase<null, Found>({
  name: 'wait-control-plane/cluster-admins',
  short: 'Make an administrator of who has admin.conf',
  observe: async ({ cluster }) => {
    if (cluster === null) return 'waiting';
    try {
      return { binding: await cluster.get(refOf(BINDING)) };
    } catch (error) {
      // admin.conf before it counts.
      if (isAppError(error, 'CLUSTER_FORBIDDEN')) return { binding: null };
      throw error;
    }
  },
  plan: (found) => {
    if (found === 'waiting') return { changes: [], deferred: 'needs the API server, up after wait-control-plane' };
    const changes = diffRbac(found.binding, BINDING);
    return changes.length > 0 ? { changes } : { changes, noop: 'ClusterRoleBinding kubeadm:cluster-admins is there' };
  },
});
