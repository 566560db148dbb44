import { isJsonObject, type Json, type JsonObject } from '../base/json.ts';
import type { TypeNode } from '../codec/type-node.ts';
import { type Catalogue, formatMinor, type Minor } from './catalogue.ts';
import { kubeletConfigurationType } from './type.ts';

/** A field that one kubelet does not know. */
export interface DroppedField {
  readonly path: string;
  /** e.g. `a 1.30 kubelet does not know it (since 1.32)`. */
  readonly why: string;
}

/**
 * A configuration without what the kubelet of a minor does not know: a cluster's configuration may be newer than a node. Fields that say nothing
 * (`{}`, `0s`, empty) go without a word.
 */
export function dropUnknownFields(
  config: JsonObject,
  minor: Minor,
  catalogue: Catalogue,
): { readonly config: JsonObject; readonly dropped: readonly DroppedField[] } {
  const dropped: DroppedField[] = [];
  const visit = (value: Json, type: TypeNode, path: string): Json => {
    if (type.kind === 'list' && Array.isArray(value)) return value.map((item: Json) => visit(item, type.items, `${path}[]`));
    if (type.kind !== 'object' || !isJsonObject(value)) return value;
    const entries = Object.entries(value).flatMap(([key, item]): [string, Json][] => {
      const field = type.fields.get(key);
      const at = path === '' ? key : `${path}.${key}`;
      if (field) return [[key, visit(item, field.type, at)]];
      if (!isSilent(item)) dropped.push({ path: at, why: whyUnknown(at, minor, catalogue) });
      return [];
    });
    return Object.fromEntries(entries);
  };
  return { config: visit(config, kubeletConfigurationType(catalogue, minor), '') as JsonObject, dropped };
}

function isSilent(value: Json): boolean {
  if (isJsonObject(value)) return Object.values(value).every(isSilent);
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
  const kubelet = `a ${formatMinor(minor)} kubelet does not know it`;
  if (minors === undefined) return kubelet;
  return minor < minors[0]
    ? `${kubelet} (it came with ${formatMinor(minors[0])})`
    : `${kubelet} (${formatMinor(minors[1])} was the last that did)`;
}
