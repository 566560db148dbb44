import { AppError, isAppError } from '../base/errors.ts';
import type { Cluster } from './cluster.ts';
import type { KubeObject } from './object.ts';

interface RequestedPermission {
  readonly verb: string;
  /** Empty for the core group. */
  readonly group: string;
  readonly resource: string;
  readonly subresource?: string;
  readonly name?: string;
}

/** The first permission that a kubelet needs for TLS bootstrap. */
export const REQUEST_CERTIFICATE: RequestedPermission = {
  verb: 'create',
  group: 'certificates.k8s.io',
  resource: 'certificatesigningrequests',
};

/** A SelfSubjectAccessReview, before an operation that needs the permission. @throws errors of `Cluster` */
export async function hasPermission(cluster: Cluster, resourceAttributes: RequestedPermission): Promise<boolean> {
  const review = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    metadata: {},
    spec: { resourceAttributes: { ...resourceAttributes } },
  };
  const answer = await cluster.create(review as unknown as KubeObject);
  return (answer.status as { readonly allowed?: boolean } | undefined)?.allowed === true;
}

/** Also true when the server does not support reviews: the operation itself then shows the result. */
export async function hasPermissionOrUnknown(cluster: Cluster, asked: RequestedPermission): Promise<boolean> {
  try {
    return await hasPermission(cluster, asked);
  } catch (error) {
    if (error instanceof AppError && /^CLUSTER_(FORBIDDEN|NOT_FOUND|ERROR)$/.test(error.code)) return true;
    throw error;
  }
}

/** Whether the user may cordon a node and evict its pods; credentials of a node may not. @throws as `hasPermissionOrUnknown` */
export async function mayDrain(cluster: Cluster, name: string): Promise<boolean> {
  const asked: readonly RequestedPermission[] = [
    { verb: 'create', group: '', resource: 'pods', subresource: 'eviction' },
    { verb: 'list', group: 'policy', resource: 'poddisruptionbudgets' },
    { verb: 'patch', group: '', resource: 'nodes', name },
  ];
  for (const permission of asked) if (!(await hasPermissionOrUnknown(cluster, permission))) return false;
  return true;
}

/** Credentials without any role may not even create the review. @throws errors of `Cluster` except CLUSTER_FORBIDDEN */
export async function isAdministrator(cluster: Cluster): Promise<boolean> {
  try {
    return await hasPermission(cluster, { verb: '*', group: '*', resource: '*' });
  } catch (error) {
    if (isAppError(error, 'CLUSTER_FORBIDDEN')) return false;
    throw error;
  }
}
