import type { FieldNode, ObjectNode, TypeNode } from '../../codec/type-node.ts';
import type { Field, FieldType } from './catalogue.ts';

/**
 * The type of KubeletConfiguration (v1beta1).
 * @param all all fields of one minor, including the header
 */
export function configurationTypeOf(all: Iterable<Field>): ObjectNode {
  const children = new Map<string, Field[]>();
  for (const field of all) {
    const parent = field.path.slice(0, Math.max(field.path.lastIndexOf('.'), 0));
    const siblings = children.get(parent);
    if (siblings) siblings.push(field);
    else children.set(parent, [field]);
  }
  return buildObject('', children);
}

function buildObject(path: string, children: ReadonlyMap<string, readonly Field[]>): ObjectNode {
  const fields = (children.get(path) ?? []).map((field): [string, FieldNode] => {
    const name = field.path.slice(field.path.lastIndexOf('.') + 1);
    const { pointer, omitempty, printedWhenUnset } = field;
    return [name, { name, path: field.path, type: buildType(field, children), pointer, omitempty, printedWhenUnset }];
  });
  return { kind: 'object', fields: new Map(fields) };
}

function buildType({ path, type, values }: Field, children: ReadonlyMap<string, readonly Field[]>): TypeNode {
  if (type === 'object') return buildObject(path, children);
  if (type === 'array<object>') return { kind: 'list', items: buildObject(`${path}[]`, children) };
  return simpleType(type, values);
}

function simpleType(type: Exclude<FieldType, 'object' | 'array<object>'>, values: readonly string[] | null): TypeNode {
  switch (type) {
    case 'string':
    case 'enum':
      return { kind: 'string', values };
    case 'array<string>':
    case 'array<enum>':
      return { kind: 'list', items: { kind: 'string', values } };
    case 'array<int32>':
      return { kind: 'list', items: { kind: 'int32' } };
    case 'map<string,string>':
      return { kind: 'map', values: { kind: 'string', values } };
    case 'map<string,bool>':
      return { kind: 'map', values: { kind: 'bool' } };
    case 'map<string,quantity>':
      return { kind: 'map', values: { kind: 'quantity' } };
    case 'map<string,array<string>>':
      return { kind: 'map', values: { kind: 'list', items: { kind: 'string', values } } };
    default:
      return { kind: type };
  }
}
