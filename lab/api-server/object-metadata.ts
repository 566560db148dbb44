import { randomInt } from 'node:crypto';
import { labelKey, labelValue } from '../../src/kube/name-rules.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { rulesOf } from './kind-rules.ts';
import { withMetadata } from './members.ts';
import { badRequest, type Cause, invalid, invalidValue, nameCauses, requiredValue } from './status.ts';

const NAME_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * Sets name and namespace of a new object.
 * @throws StatusError 400 for another namespace than that of the request, 422 without name and generateName
 */
export function nameObject(type: ResourceType, namespace: string, object: KubeObject): KubeObject {
  refuseOtherNamespace(type, namespace, object);
  const prefix = object.metadata.generateName;
  const suffix = () => Array.from({ length: 5 }, () => NAME_LETTERS[randomInt(NAME_LETTERS.length)]).join('');
  const name = object.metadata.name === '' && typeof prefix === 'string' ? `${prefix}${suffix()}` : object.metadata.name;
  if (name === '') throw invalid(type, '', [requiredValue('metadata.name', 'name or generateName is required')]);
  return withMetadata(object, { name, namespace: type.namespaced ? namespace : undefined });
}

/** @throws StatusError 400 when an object names another namespace than the request */
export function refuseOtherNamespace(type: ResourceType, namespace: string, object: KubeObject): void {
  const own = object.metadata.namespace;
  if (own !== undefined && own !== (type.namespaced ? namespace : '')) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

/** An update with the fields that clients cannot change taken from the stored object. */
export function keepSystemMetadata(desired: KubeObject, old: KubeObject): KubeObject {
  const { metadata } = old;
  return withMetadata(desired, {
    ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    creationTimestamp: metadata.creationTimestamp,
    generation: metadata.generation,
    generateName: metadata.generateName,
    deletionTimestamp: metadata.deletionTimestamp,
    deletionGracePeriodSeconds: metadata.deletionGracePeriodSeconds,
  });
}

/** Attempts to change immutable metadata. */
export function frozenMetadataCauses(desired: KubeObject, old: KubeObject): readonly Cause[] {
  return (['uid', 'deletionTimestamp'] as const).flatMap((name) => {
    const value = desired.metadata[name];
    return value === undefined || value === old.metadata[name] ? [] : [invalidValue(`metadata.${name}`, value, 'field is immutable')];
  });
}

/** Invalid names, labels and annotations. */
export function metadataCauses(type: ResourceType, { metadata }: KubeObject): readonly Cause[] {
  return [
    ...nameCauses(rulesOf(type).name, 'metadata.name', metadata.name),
    ...Object.entries(metadata.labels ?? {}).flatMap(([key, value]) => [
      ...nameCauses(labelKey, 'metadata.labels', key),
      ...nameCauses(labelValue, 'metadata.labels', value),
    ]),
    ...Object.keys(metadata.annotations ?? {}).flatMap((key) =>
      labelKey(key.toLowerCase()).map((why) => invalidValue('metadata.annotations', key, why)),
    ),
  ];
}

/** Whether a finalizer delays the deletion. */
export function hasFinalizers({ metadata }: KubeObject): boolean {
  const finalizers = metadata.finalizers;
  return Array.isArray(finalizers) && finalizers.length > 0;
}
