import { AppError, isAppError } from '../../base/errors.ts';
import { API_PAUSE } from '../../base/wait-until.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { diffRbac } from '../../host/plan/rbac-diff.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isAdministrator } from '../../kube/has-permission.ts';
import type { KubeObject } from '../../kube/object.ts';
import { refOf } from '../../kube/object.ts';
import { waitOnKubelet } from '../../kubelet/health/crash-watch.ts';
import { bootstrapRbac } from '../cluster-objects/bootstrap-rbac.ts';

const BINDING = bootstrapRbac().find(({ metadata }) => metadata.name === 'kubeadm:cluster-admins') as KubeObject;

export interface ClusterAdminsInput {
  readonly reachAsAdmin: (context: PhaseContext) => Promise<Cluster | null>;
  /** Timeout for the binding to take effect. */
  readonly timeoutMs: number;
}

const NAME = 'wait-control-plane/cluster-admins';

/**
 * Binds the group of admin.conf to cluster-admin, using super-admin.conf. kubeadm 1.36 does this in
 * wait-control-plane, when admin.conf is first used.
 * The phase's cluster uses super-admin.conf.
 */
export const bindClusterAdmins = definePhase<ClusterAdminsInput, { readonly binding: KubeObject | null } | 'waiting'>({
  name: NAME,
  short: 'Bind the admin.conf user to cluster-admin',
  observe: async ({ cluster }) => {
    if (cluster === null) return 'waiting';
    try {
      return { binding: await cluster.get(refOf(BINDING)) };
    } catch (error) {
      // Forbidden: the group of admin.conf is not bound yet.
      if (isAppError(error, 'CLUSTER_FORBIDDEN')) return { binding: null };
      throw error;
    }
  },
  plan: (found) => {
    if (found === 'waiting') return { changes: [], deferred: 'needs the API server, which starts in phase wait-control-plane' };
    const changes = diffRbac(found.binding, BINDING);
    return changes.length > 0 ? { changes } : { changes, noop: 'ClusterRoleBinding kubeadm:cluster-admins exists' };
  },
  verify: async (context, input, found) => {
    if (found !== 'waiting') await waitUntilAdministrator(context, input);
  },
});

/** A starting API server creates its own roles first, and applies new bindings with a short delay. */
async function waitUntilAdministrator(context: PhaseContext, { reachAsAdmin, timeoutMs }: ClusterAdminsInput): Promise<void> {
  await waitOnKubelet(context, NAME, {
    probe: async () => {
      const cluster = await reachAsAdmin(context);
      return cluster !== null && (await isAdministrator(cluster)) ? { done: undefined } : { pending: null };
    },
    timeoutMs,
    pauseMs: API_PAUSE,
    timedOut: () => {
      throw notAdministrator(context.host.name, timeoutMs);
    },
  });
}

function notAdministrator(host: string, timeoutMs: number): AppError {
  const message = `${NAME}: the user of admin.conf is not a cluster-admin after ${Math.round(timeoutMs / 1000)}s`;
  const hint = 'Check ClusterRoleBinding kubeadm:cluster-admins and the subject of the certificate in admin.conf, then rerun the command';
  return new AppError({ host, code: 'ADMIN_NOT_BOUND', message, hint });
}
