import { type Json, type JsonObject, jsonEqual } from '../../base/json.ts';
import { type KubeObject, refOf } from '../../kube/object.ts';
import type { ObjectChange } from './change.ts';

/**
 * The changes of a Role, ClusterRole or a binding. Foreign labels and annotations are kept; owners are
 * compared if the desired object has some. The roleRef of a binding is immutable: the binding is deleted and
 * created again, as `kubectl auth reconcile` does.
 */
export function diffRbac(found: KubeObject | null, desired: KubeObject): readonly ObjectChange[] {
  if (found === null) return [{ kind: 'create-object', object: desired, reason: 'does not exist' }];
  const fields = ['rules', 'roleRef', 'subjects'].filter(
    (field) => field in desired && !jsonEqual(normalize(found[field]), normalize(desired[field])),
  );
  const { ownerReferences } = desired.metadata;
  const isOwned = ownerReferences === undefined || jsonEqual(found.metadata.ownerReferences, ownerReferences);
  if (fields.length === 0 && isOwned) return [];
  const differing = isOwned ? fields : [...fields, 'owner'];
  const reason = `its ${differing.join(' and ')} ${differing.length === 1 && !differing[0]?.endsWith('s') ? 'differs' : 'differ'}`;
  if (fields.includes('roleRef')) return replaceBinding(found, desired, reason);
  const owned = isOwned ? {} : { metadata: { ...found.metadata, ownerReferences: ownerReferences as Json } };
  const object = { ...found, ...Object.fromEntries(fields.map((field) => [field, desired[field] as Json])), ...owned } as KubeObject;
  return [{ kind: 'update-object', object, before: found, reason }];
}

function replaceBinding(found: KubeObject, desired: KubeObject, reason: string): readonly ObjectChange[] {
  const { labels, annotations } = found.metadata;
  const kept = { ...(labels === undefined ? {} : { labels }), ...(annotations === undefined ? {} : { annotations }) };
  const object = { ...desired, metadata: { ...kept, ...desired.metadata } };
  return [
    { kind: 'delete-object', ref: refOf(found), reason: `${reason}; a roleRef is immutable` },
    { kind: 'create-object', object, reason: 'replaces the deleted binding with another roleRef' },
  ];
}

/** Removes the API server's default: the apiGroup of users and groups. */
function normalize(value: Json | undefined): Json | undefined {
  if (!Array.isArray(value)) return value;
  return value.map((item: Json) => {
    const { apiGroup, ...rest } = item as JsonObject;
    return apiGroup === '' || apiGroup === 'rbac.authorization.k8s.io' || apiGroup === undefined ? rest : (item as JsonObject);
  });
}
