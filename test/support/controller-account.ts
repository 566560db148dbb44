import { isAppError } from '../../src/base/errors.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { applyObjects, planInstallation } from '../../src/rollouts/use-cases/install-controller.ts';

export const TEST_IMAGE = `registry.example.com/kubeletadm@sha256:${'a'.repeat(64)}`;

/** The user of the controller's ServiceAccount. */
export const CONTROLLER_USER = {
  name: 'system:serviceaccount:kubeletadm-system:kubeletadm-controller',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kubeletadm-system', 'system:authenticated'],
};

/** Installs the controller's objects as an administrator. @returns the number of changes */
export async function installController(admin: Cluster): Promise<number> {
  const plan = await planInstallation(admin, TEST_IMAGE);
  await applyObjects(admin, plan, { report: () => undefined });
  return plan.changes.length;
}

/** A client that records each request that was refused for missing rights. */
export function recordingForbidden(cluster: Cluster): { readonly cluster: Cluster; readonly forbidden: string[] } {
  const forbidden: string[] = [];
  const note = (error: unknown): never => {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) forbidden.push(error.message);
    throw error;
  };
  const noted = <A extends readonly unknown[], R>(call: (...words: A) => Promise<R>) => {
    return (...words: A): Promise<R> => call(...words).catch(note);
  };
  const { get, list, create, update, patch, getRaw, evict } = cluster;
  const recorded = { get, list, create, update, patch, getRaw };
  const calls = Object.fromEntries(Object.entries(recorded).map(([name, call]) => [name, noted(call as (typeof cluster)['get'])]));
  const refusedEviction: Cluster['evict'] = async (...words) => {
    const result = await evict(...words);
    if (result.kind === 'refused' && result.httpStatus === 403) forbidden.push(`evict: ${result.why}`);
    return result;
  };
  const deleted = noted(cluster.delete);
  async function* watch(
    ...words: Parameters<Cluster['watch']>
  ): ReturnType<Cluster['watch']> extends AsyncIterable<infer E> ? AsyncGenerator<E> : never {
    try {
      yield* cluster.watch(...words);
    } catch (error) {
      note(error);
    }
  }
  return { cluster: { ...cluster, ...calls, delete: deleted, evict: refusedEviction, watch }, forbidden };
}
