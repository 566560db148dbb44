import { MASTERS_GROUP_NAME } from '../../src/kube/well-known.ts';
import type { UserInfo } from './authenticate.ts';
import { nodeAllows } from './node-authorizer.ts';
import { rbacAllows, type Verdict } from './rbac.ts';
import type { RequestInfo } from './request-info.ts';
import { forbidden, forbiddenPath, goQuote, type StatusError } from './status.ts';
import type { Store } from './store.ts';

/** Paths that every user may read, regardless of RBAC. */
const ALWAYS_ALLOWED = ['/healthz', '/readyz', '/livez'];

/** The authorizers of an API server started with `--authorization-mode=Node,RBAC`, in their order. */
export function authorize(store: Store, user: UserInfo, request: RequestInfo): Verdict {
  if (user.groups.includes(MASTERS_GROUP_NAME)) return { allowed: true };
  if (request.kind === 'path' && ALWAYS_ALLOWED.includes(request.path)) return { allowed: true };
  const asNode = nodeAllows(store, user, request);
  if (asNode?.allowed) return asNode;
  const byRoles = rbacAllows(store, user, request);
  if (byRoles.allowed) return byRoles;
  return { allowed: false, reason: [asNode?.reason ?? '', byRoles.reason].filter((reason) => reason !== '').join('\n') };
}

/** The 403 of a request that no authorizer allowed. */
export function refusal(user: UserInfo, request: RequestInfo, reason: string): StatusError {
  const added = reason === '' ? '' : `: ${reason}`;
  if (request.kind === 'path')
    return forbiddenPath(`User ${goQuote(user.name)} cannot ${request.verb} path ${goQuote(request.path)}${added}`);
  const { verb, group, resource, subresource, namespace, name } = request;
  const what = subresource === '' ? resource : `${resource}/${subresource}`;
  const where = namespace === '' ? 'at the cluster scope' : `in the namespace ${goQuote(namespace)}`;
  const reported = `User ${goQuote(user.name)} cannot ${verb} resource ${goQuote(what)} in API group ${goQuote(group)} ${where}${added}`;
  return forbidden({ group, plural: resource }, name, reported);
}
