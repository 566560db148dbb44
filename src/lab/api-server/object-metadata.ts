import { randomInt } from 'node:crypto';
import type { KubeObject } from '../../kube/object.ts';
import type { ResourceType } from '../../kube/resources.ts';
import { rulesOf } from './kind-rules.ts';
import { withMetadata } from './members.ts';
import { labelKey, labelValue, nameCauses } from './names.ts';
import { badRequest, type Cause, invalid, invalidValue, requiredValue } from './status.ts';

const NAME_LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

/**
 * Gives a new object its name and namespace.
 * @throws StatusError 400 for another namespace than that of the request, 422 without a name or the start of one
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

/** An update with what a client can't change taken from the object as it is. */
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

/** Attempts to change what can't be changed. */
export function frozenMetadataCauses(desired: KubeObject, old: KubeObject): readonly Cause[] {
  return (['uid', 'deletionTimestamp'] as const).flatMap((name) => {
    const value = desired.metadata[name];
    return value === undefined || value === old.metadata[name] ? [] : [invalidValue(`metadata.${name}`, value, 'field is immutable')];
  });
}

/** Names, labels and annotations that are not allowed. */
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

/** Whether somebody wants to be asked before the object goes. */
export function hasFinalizers({ metadata }: KubeObject): boolean {
  const finalizers = metadata.finalizers;
  return Array.isArray(finalizers) && finalizers.length > 0;
}
