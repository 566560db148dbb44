import { jsonEqual } from '../../../src/base/json.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import { entriesOf } from '../members.ts';
import { configKey } from '../name-rules.ts';
import { type Cause, forbiddenValue, nameCauses, tooLong } from '../status.ts';
import type { KindRules } from './kind.ts';

const MAX_BYTES = 1024 * 1024;

/** @see kubernetes/kubernetes pkg/apis/core/validation, ValidateConfigMap (1.36) */
export const configMaps: KindRules = {
  members: ['data', 'binaryData', 'immutable'],
  stringMaps: ['data'],
  bytesMaps: ['binaryData'],
  validate: (object, old) => [
    ...keyCauses(object, ['data', 'binaryData']),
    ...(old ? immutableCauses(object, old, ['data', 'binaryData']) : []),
  ],
};

/** Invalid keys, and data beyond the size limit of an object. */
export function keyCauses(object: KubeObject, members: readonly string[]): readonly Cause[] {
  const entries = members.flatMap((member) => entriesOf(object, member).map(([key, value]) => ({ member, key, value })));
  const bytes = entries.reduce((sum, { member, value }) => sum + Buffer.byteLength(value, member === 'data' ? 'utf8' : 'base64'), 0);
  const wrong = entries.flatMap(({ member, key }) => nameCauses(configKey, `${member}[${key}]`, key));
  return bytes > MAX_BYTES ? [...wrong, tooLong('', MAX_BYTES)] : wrong;
}

/** Changes that `immutable: true` forbids. */
export function immutableCauses(object: KubeObject, old: KubeObject, members: readonly string[]): readonly Cause[] {
  if (old.immutable !== true) return [];
  const frozen = (member: string) => forbiddenValue(member, 'field is immutable when `immutable` is set');
  const changed = members.filter((member) => !jsonEqual(object[member] ?? {}, old[member] ?? {}));
  return [...(object.immutable === true ? [] : [frozen('immutable')]), ...changed.map(frozen)];
}
