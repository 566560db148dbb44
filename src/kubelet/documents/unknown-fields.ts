import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import type { TypeNode } from '../../codec/type-node.ts';
import { type Catalogue, formatMinor, type Minor } from '../catalogue/catalogue.ts';

/** A field unknown to a kubelet. */
export interface UnknownField {
  readonly path: string;
  /** e.g. `unknown to a 1.30 kubelet (added in 1.32)`. */
  readonly why: string;
}

/**
 * Lists the fields that the kubelet of a minor does not know, because a cluster's configuration may be newer
 * than a node. `encodeKubeletConfiguration` omits them. Fields with an empty value (`{}`, `0s`, empty) are not
 * listed.
 */
export function listUnknownFields(config: JsonObject, minor: Minor, catalogue: Catalogue): readonly UnknownField[] {
  const visit = (value: Json, type: TypeNode, path: string): readonly UnknownField[] => {
    if (type.kind === 'list' && Array.isArray(value)) return value.flatMap((item: Json) => visit(item, type.items, `${path}[]`));
    if (type.kind !== 'object' || !isJsonObject(value)) return [];
    return Object.entries(value).flatMap(([key, item]) => {
      const field = type.fields.get(key);
      const at = path === '' ? key : `${path}.${key}`;
      if (field) return visit(item, field.type, at);
      return isEmpty(item) ? [] : [{ path: at, why: whyUnknown(at, minor, catalogue) }];
    });
  };
  return visit(config, catalogue.configurationType(minor), '');
}

function isEmpty(value: Json): boolean {
  if (isJsonObject(value)) return Object.values(value).every(isEmpty);
  return (
    value === null ||
    value === '' ||
    value === 0 ||
    value === false ||
    value === '0s' ||
    value === '0' ||
    (Array.isArray(value) && value.length === 0)
  );
}

function whyUnknown(path: string, minor: Minor, catalogue: Catalogue): string {
  const minors = catalogue.fields.get(path)?.minors;
  const kubelet = `unknown to a ${formatMinor(minor)} kubelet`;
  if (minors === undefined) return kubelet;
  return minor < minors[0] ? `${kubelet} (added in ${formatMinor(minors[0])})` : `${kubelet} (last in ${formatMinor(minors[1])})`;
}
