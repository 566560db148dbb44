import type { JsonObject } from '../../base/json.ts';
import type { ObjectNode, TypeNode } from '../../codec/type-node.ts';
import type { Catalogue, Minor } from '../catalogue/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from './decode.ts';

/**
 * The JSON Schema (draft 7) of a KubeletConfiguration: the fields of one minor version, their types, and the words of
 * enumerations. Ranges and rules between fields are not part of it: `config validate` checks these.
 */
export function kubeletJsonSchema(catalogue: Catalogue, minor: Minor, options: Omit<Context, 'catalogue'> = {}): JsonObject {
  const definition = objectSchema(catalogue.configurationType(minor), { ...options, catalogue });
  const header = { apiVersion: { const: KUBELET_API_VERSION }, kind: { const: KUBELET_KIND } };
  return { ...definition, properties: { ...(definition.properties as JsonObject), ...header } };
}

interface Context {
  readonly catalogue: Catalogue;
  /** A form of a scalar that is valid in place of its own type, such as a template of a fleet file. */
  readonly alternative?: JsonObject | undefined;
  /** Whether every field may be null, as in an overlay, which removes a field so. */
  readonly isRemovable?: boolean | undefined;
}

function objectSchema({ fields }: ObjectNode, context: Context): JsonObject {
  const properties = [...fields.values()].map(({ name, path, type, pointer }): [string, JsonObject] => {
    const description = context.catalogue.fields.get(path)?.description;
    // Go reads no duration from null, but a pointer to one.
    const schema: JsonObject =
      type.kind === 'duration' && (pointer || context.isRemovable === true) ? { type: ['string', 'null'] } : typeSchema(type, context);
    return [name, description === undefined || description === '' ? schema : { description, ...schema }];
  });
  return { type: ['object', 'null'], additionalProperties: false, properties: Object.fromEntries(properties) };
}

function typeSchema(type: TypeNode, context: Context): JsonObject {
  const scalar = (schema: JsonObject): JsonObject =>
    context.alternative === undefined ? schema : { anyOf: [schema, context.alternative] };
  switch (type.kind) {
    case 'object':
      return objectSchema(type, context);
    case 'list':
      return { type: ['array', 'null'], items: typeSchema(type.items, context) };
    case 'map':
      return { type: ['object', 'null'], additionalProperties: typeSchema(type.values, context) };
    case 'string':
      return type.values === null ? { type: ['string', 'null'] } : scalar({ enum: [...new Set([...type.values, '', null])] });
    case 'bool':
      return scalar({ type: ['boolean', 'null'] });
    case 'int32':
    case 'int64':
      return scalar({ type: ['integer', 'null'] });
    case 'uint32':
      return scalar({ type: ['integer', 'null'], minimum: 0 });
    case 'float':
      return scalar({ type: ['number', 'null'] });
    case 'quantity':
    case 'durationOrNanoseconds':
    case 'intOrString':
      return { type: ['string', 'number', 'null'] };
    case 'duration':
      return { type: 'string' };
    case 'timestamp':
      return { type: ['string', 'null'] };
  }
}
