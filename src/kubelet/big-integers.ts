import type { Json, JsonObject } from '../base/json.ts';
import type { TypeNode } from '../codec/type-node.ts';
import type { YamlValue } from '../codec/yaml-encode.ts';
import type { EncodeOptions } from './encode.ts';
import { kubeletConfigurationType } from './type.ts';

/**
 * Prepares a KubeletConfiguration for printing: integers beyond ±(2^53 - 1), which JSON values hold as
 * decimal strings, become numbers where the field's type is an integer. Everything else is unchanged, also
 * fields that the minor does not know.
 */
export function withBigIntegers(config: JsonObject, { minor, catalogue }: EncodeOptions): { readonly [key: string]: YamlValue } {
  return restore(config, kubeletConfigurationType(catalogue, minor)) as { readonly [key: string]: YamlValue };
}

function restore(value: Json, type: TypeNode | undefined): YamlValue {
  if (typeof value === 'string')
    return (type?.kind === 'int64' || type?.kind === 'durationOrNanoseconds') && isBig(value) ? BigInt(value) : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: Json) => restore(item, type?.kind === 'list' ? type.items : undefined));
  return Object.fromEntries(Object.entries(value as JsonObject).map(([key, item]) => [key, restore(item, memberType(type, key))]));
}

function memberType(type: TypeNode | undefined, key: string): TypeNode | undefined {
  if (type?.kind === 'map') return type.values;
  return type?.kind === 'object' ? type.fields.get(key)?.type : undefined;
}

function isBig(text: string): boolean {
  return /^-?[0-9]{16,19}$/.test(text) && !Number.isSafeInteger(Number(text));
}
