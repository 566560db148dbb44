import type { FieldNode, ObjectNode, ScalarNode, TypeNode } from './type-node.ts';

/**
 * Parses a table of types, one per line: `Name = field field …`, continued on indented lines. A field is
 * `name` (a string), `name:int32`, `name:[]Other`, `name:{}string` (a map) or `name:*Other` (a Go pointer: an
 * explicit zero differs from an absent value). The suffix `!` marks a field that Go always prints, `~` a
 * struct that Go omits when it is empty; structs without a suffix are always printed.
 * @returns the type of a name; types are built on demand
 */
export function readTypeTable(table: string): (name: string) => ObjectNode {
  let lines: ReadonlyMap<string, readonly string[]> | null = null;
  const built = new Map<string, ObjectNode>();
  const typeNamed = (name: string): ObjectNode => {
    const known = built.get(name);
    if (known !== undefined) return known;
    lines ??= readLines(table);
    const fields = new Map((lines.get(name) ?? []).map((text) => readField(text, typeNamed)).map((field) => [field.name, field]));
    const node: ObjectNode = { kind: 'object', fields };
    built.set(name, node);
    return node;
  };
  return typeNamed;
}

function readLines(table: string): ReadonlyMap<string, readonly string[]> {
  const entries = table.trim().split(/\n(?! )/);
  return new Map(
    entries.map((entry) => {
      const [name = '', , ...fields] = entry.split(/\s+/);
      return [name, fields];
    }),
  );
}

const FIELD = /^(?<name>\w+)(?::(?<pointer>\*?)(?<shape>(?:\[\]|\{\})?)(?<type>\w+))?(?<mark>[!~]?)$/;

function readField(text: string, typeNamed: (name: string) => ObjectNode): FieldNode {
  const { name = '', pointer = '', shape = '', type: typeName = 'string', mark = '' } = FIELD.exec(text)?.groups ?? {};
  const inner = SCALARS.get(typeName) ?? typeNamed(typeName);
  const type: TypeNode = shape === '[]' ? { kind: 'list', items: inner } : shape === '{}' ? { kind: 'map', values: inner } : inner;
  const alwaysPrinted = mark === '!' || (mark === '' && pointer === '' && isStruct(type));
  return { name, path: name, type, pointer: pointer !== '', omitempty: mark !== '!', printedWhenUnset: alwaysPrinted };
}

/** Types that `omitempty` never drops. */
function isStruct({ kind }: TypeNode): boolean {
  return kind === 'object' || kind === 'duration' || kind === 'durationOrNanoseconds' || kind === 'quantity' || kind === 'timestamp';
}

const SAME_NAME = ['bool', 'int32', 'int64', 'uint32', 'duration', 'durationOrNanoseconds', 'quantity', 'intOrString'] as const;
const SCALARS: ReadonlyMap<string, ScalarNode> = new Map<string, ScalarNode>([
  ...SAME_NAME.map((kind) => [kind, { kind }] as const),
  ['string', { kind: 'string', values: null }],
  ['float32', { kind: 'float' }],
  ['time', { kind: 'timestamp' }],
]);
