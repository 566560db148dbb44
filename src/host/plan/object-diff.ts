import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { ClusterChange } from './change.ts';

/**
 * Every desired field gets its value; other fields are kept, whether the API server or another client set
 * them. Lists are compared item by item; status and versions are ignored. For RBAC see `diffRbac`.
 */
export function diffObject(found: KubeObject | null, desired: KubeObject): ClusterChange | null {
  if (found === null) return { kind: 'create-object', object: desired, reason: 'does not exist' };
  const goal = comparable(desired);
  const [first, ...more] = [...differences(found, goal, '')];
  if (first === undefined) return null;
  const others = more.length === 0 ? '' : more.length === 1 ? ' and another field' : ` and ${more.length} other fields`;
  const reason = `its ${first}${others} ${more.length === 0 ? 'differs' : 'differ'}`;
  return { kind: 'update-object', object: overlay(found, goal) as KubeObject, before: found, reason };
}

function comparable({ status: _, ...desired }: KubeObject): JsonObject {
  const { resourceVersion: __, ...metadata } = desired.metadata;
  return { ...desired, metadata };
}

/** Paths of desired fields whose value differs. */
function* differences(found: Json | undefined, desired: Json, path: string): Iterable<string> {
  if (isJsonObject(desired) && (isJsonObject(found) || found === undefined || found === null)) {
    for (const [key, value] of Object.entries(desired)) yield* differences(found?.[key], value, path === '' ? key : `${path}.${key}`);
  } else if (Array.isArray(desired) && Array.isArray(found) && found.length === desired.length) {
    for (const [i, value] of desired.entries()) yield* differences(found[i], value as Json, `${path}[${i}]`);
  } else if (found !== desired) yield path;
}

function overlay(found: Json | undefined, desired: Json): Json {
  if (Array.isArray(desired))
    return desired.map((value: Json, i) => overlay(sameLength(found, desired) ? (found as readonly Json[])[i] : undefined, value));
  if (!isJsonObject(desired)) return desired;
  const merged = Object.entries(desired).map(([key, value]): [string, Json] => [
    key,
    overlay(isJsonObject(found) ? found[key] : undefined, value),
  ]);
  return { ...(isJsonObject(found) ? found : {}), ...Object.fromEntries(merged) };
}

function sameLength(found: Json | undefined, desired: readonly Json[]): boolean {
  return Array.isArray(found) && found.length === desired.length;
}
