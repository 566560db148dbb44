import { isJsonObject } from '../base/json.ts';
import { sortKeysNaturally } from '../base/text/natural-order.ts';
import type { SourceDocument, SourceNode } from './source.ts';
import type { YamlValue } from './yaml-encode.ts';
import type { YamlScalar } from './yaml-scalar.ts';

/**
 * Equal to encoding the value as YAML and parsing the text. Nodes have no positions (`isValue`); their
 * offsets follow the order in which `encodeYaml` prints them, so that problems keep that order.
 * @param value JSON data; bigint for integers beyond 2^53
 */
export function documentOfValue(value: YamlValue, file: string): SourceDocument {
  let count = 0;
  const nodeOf = (item: YamlValue): SourceNode => {
    const offset = count++;
    if (Array.isArray(item)) return { kind: 'list', items: (item as readonly YamlValue[]).map(nodeOf), offset };
    if (isJsonObject(item)) {
      const members: { readonly [key: string]: YamlValue } = item;
      const entries = sortKeysNaturally(Object.keys(members)).map((key) => {
        const keyOffset = count++;
        return { key, keyOffset, value: nodeOf(members[key] as YamlValue) };
      });
      return { kind: 'map', entries, offset };
    }
    return scalarNode(item as Scalar, offset);
  };
  const root = nodeOf(value);
  return { file, index: 0, root, isValue: true, positionAt: (offset) => ({ file, line: offset + 1, column: 1 }) };
}

type Scalar = null | boolean | number | bigint | string;

function scalarNode(value: Scalar, offset: number): SourceNode {
  const scalar = scalarOf(value);
  return { kind: 'scalar', scalar, text: String(scalar.value), offset };
}

function scalarOf(value: Scalar): YamlScalar {
  if (value === null) return { type: 'null', value };
  if (typeof value === 'boolean') return { type: 'bool', value };
  if (typeof value === 'string') return { type: 'string', value };
  if (typeof value === 'bigint') return { type: 'int', value: Number.isSafeInteger(Number(value)) ? Number(value) : value };
  if (Number.isSafeInteger(value)) return { type: 'int', value: value === 0 ? 0 : value };
  // Integers of 64 bits are printed with the digits that JavaScript shows, larger ones with an exponent.
  const integer = Number.isInteger(value) && Math.abs(value) < 1e21 ? BigInt(String(value)) : null;
  return integer !== null && integer >= -(2n ** 63n) && integer < 2n ** 64n ? { type: 'int', value: integer } : { type: 'float', value };
}
