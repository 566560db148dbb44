import { AppError, isAppError } from '../base/errors.ts';
import type { Cluster } from './cluster.ts';
import type { KubeObject } from './object.ts';

export interface AskedPermission {
  readonly verb: string;
  /** Empty for the core group. */
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
}

/** What a kubelet that bootstraps itself begins with. */
export const REQUEST_CERTIFICATE: AskedPermission = {
  verb: 'create',
  group: 'certificates.k8s.io',
  resource: 'certificatesigningrequests',
};

/**
 * Asks the API server whether the credentials may do something (SelfSubjectAccessReview): before anything is begun that would need it.
 * @throws what `Cluster` throws
 */
export async function mayDo(cluster: Cluster, resourceAttributes: AskedPermission): Promise<boolean> {
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: {},
    spec: { resourceAttributes: { ...resourceAttributes } },
  };
  const answer = await cluster.create(review as unknown as KubeObject);
  return (answer.status as { readonly allowed?: boolean } | undefined)?.allowed === true;
}

/** As `mayDo`, and true where the server does not answer such questions: then the deed itself will tell. */
export async function mayDoAsFarAsKnown(cluster: Cluster, asked: AskedPermission): Promise<boolean> {
  try {
    return await mayDo(cluster, asked);
  } catch (error) {
    if (error instanceof AppError && /^CLUSTER_(FORBIDDEN|NOT_FOUND|ERROR)$/.test(error.code)) return true;
    throw error;
  }
}

/**
 * Whether the credentials may do everything. Who has no role yet may not even ask.
 * @throws what `Cluster` throws besides CLUSTER_FORBIDDEN
 */
export async function isAdministrator(cluster: Cluster): Promise<boolean> {
  try {
    return await mayDo(cluster, { verb: '*', group: '*', resource: '*' });
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return false;
    throw error;
  }
}
