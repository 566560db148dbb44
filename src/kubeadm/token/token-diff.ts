import { jsonEqual } from '../../base/json.ts';
import type { ClusterChange } from '../../host/plan/change.ts';
import type { KubeObject } from '../../kube/object.ts';
import { readTokenSecret, remainingMs, type StoredToken } from './token-secret.ts';

/**
 * The change from the existing Secret of a token to the desired one. The TTL counts from the creation of the
 * token: a run does not extend a valid token.
 * @param desired as returned by `tokenSecret`
 * @param options `exactEnd`: the expiration was declared as a time; `now`: current time for expiration
 */
export function diffToken(
  found: KubeObject | null,
  desired: KubeObject,
  options: { readonly exactEnd: boolean; readonly now: Date },
): ClusterChange | null {
  if (found === null) return { kind: 'create-object', object: desired, reason: 'does not exist' };
  const reason = differenceOf(readTokenSecret(found), readTokenSecret(desired) as StoredToken, options);
  return reason === null ? null : { kind: 'update-object', object: { ...found, data: desired.data ?? {} }, before: found, reason };
}

function differenceOf(
  found: StoredToken | string,
  desired: StoredToken,
  { exactEnd, now }: { readonly exactEnd: boolean; readonly now: Date },
): string | null {
  if (typeof found === 'string') return 'the existing Secret is not a bootstrap token';
  const left = remainingMs(found, now);
  if (left !== null && left <= 0) return 'it has expired';
  const sameEnd = exactEnd ? found.expires === desired.expires : (found.expires === null) === (desired.expires === null);
  const different = [
    ...(found.token.equals(desired.token) ? [] : ['secret']),
    ...(jsonEqual(found.usages, desired.usages) ? [] : ['usages']),
    ...(jsonEqual(found.groups, desired.groups) ? [] : ['groups']),
    ...(found.description === desired.description ? [] : ['description']),
    ...(sameEnd ? [] : ['expiration']),
  ];
  return different.length === 0 ? null : `differs in ${different.join(', ')}`;
}
