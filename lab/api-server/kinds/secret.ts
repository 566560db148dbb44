import type { KubeObject } from '../../../src/kube/object.ts';
import { entriesOf, memberOf, textOf, withMember } from '../members.ts';
import { type Cause, invalidValue, requiredValue } from '../status.ts';
import { immutableCauses, keyCauses } from './config-map.ts';
import type { KindRules } from './kind.ts';

/** Required keys of typed Secrets. */
const REQUIRED_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
};

/** @see kubernetes/kubernetes pkg/apis/core/validation, ValidateSecret (1.36) */
export const secrets: KindRules = {
  members: ['data', 'stringData', 'type', 'immutable'],
  stringMaps: ['stringData'],
  bytesMaps: ['data'],
  fields: (secret) => ({ type: textOf(secret, 'type') }),
  prepareCreate: (secret) => complete(secret, 'Opaque'),
  prepareUpdate: (secret, old) => complete(secret, textOf(old, 'type')),
  validate: (secret, old) => [
    ...keyCauses(secret, ['data']),
    ...(REQUIRED_KEYS[textOf(secret, 'type')] ?? [])
      .filter((key) => !Object.hasOwn(memberOf(secret, 'data'), key))
      .map((key) => requiredValue(`data[${key}]`)),
    ...(old ? [...typeCauses(secret, old), ...immutableCauses(secret, old, ['data'])] : []),
  ],
};

/** Moves `stringData` into `data` and sets the default type. */
function complete(secret: KubeObject, type: string): KubeObject {
  const typed = { ...secret, type: textOf(secret, 'type') || type };
  const written = entriesOf(secret, 'stringData').map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')] as const);
  if (written.length === 0) return withMember(typed, 'stringData', undefined);
  return { ...withMember(typed, 'stringData', undefined), data: { ...memberOf(secret, 'data'), ...Object.fromEntries(written) } };
}

function typeCauses(secret: KubeObject, old: KubeObject): readonly Cause[] {
  const type = textOf(secret, 'type');
  return type === textOf(old, 'type') ? [] : [invalidValue('type', type, 'field is immutable')];
}
