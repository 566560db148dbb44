import { type Json, type JsonObject, jsonEqual } from '../json.ts';
import type { ClusterChange } from '../plan/change.ts';
import type { KubeObject } from './object.ts';

/**
 * What brings an RBAC object (Role, ClusterRole or a binding) to what is wanted; null when nothing. Labels and annotations that others put on it stay.
 */
export function diffRbac(found: KubeObject | null, wanted: KubeObject): ClusterChange | null {
  if (found === null) return { kind: 'create-object', object: wanted, because: 'it is missing' };
  const fields = ['rules', 'roleRef', 'subjects'].filter(
    (field) => field in wanted && !jsonEqual(normalize(found[field]), normalize(wanted[field])),
  );
  if (fields.length === 0) return null;
  const object = { ...found, ...Object.fromEntries(fields.map((field) => [field, wanted[field] as Json])) } as KubeObject;
  return {
    kind: 'update-object',
    object,
    before: found,
    because: `its ${fields.join(' and ')} ${fields.length === 1 && fields[0] === 'roleRef' ? 'differs' : 'differ'}`,
  };
}

/** Without what the API server fills in: the apiGroup of users and groups. */
function normalize(value: Json | undefined): Json | undefined {
  if (!Array.isArray(value)) return value;
  return value.map((item: Json) => {
    const { apiGroup, ...rest } = item as JsonObject;
    return apiGroup === '' || apiGroup === 'rbac.authorization.k8s.io' || apiGroup === undefined ? rest : (item as JsonObject);
  });
}
