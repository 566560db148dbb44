import * as z from 'zod';
import type { JsonObject } from '../base/json.ts';
import type { ObjectNode, TypeNode } from '../codec/type-node.ts';
import type { Catalogue, Minor } from '../kubelet/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../kubelet/decode.ts';
import { kubeletConfigurationType } from '../kubelet/type.ts';
import { FLEET_API_VERSION, FLEET_KIND, fleetSchema } from './schema.ts';

/** A string with a variable can replace any scalar. */
const TEMPLATE = { type: 'string', pattern: '\\{\\{' } as const;

/** JSON Schema of parts that zod cannot describe. */
const PARTS: Readonly<Record<string, JsonObject>> = {
  port: { anyOf: [{ type: 'integer', minimum: 1, maximum: 65_535 }, TEMPLATE] },
  variable: { type: ['string', 'number', 'boolean'] },
  fingerprint: { type: 'string', pattern: '^\\s*(?:[0-9A-Fa-f]\\s*){40}(?:(?:[0-9A-Fa-f]\\s*){24})?$' },
  mode: { type: 'string', pattern: '^0?[0-7]{3}$' },
  swap: { enum: ['off', 'keep', false] },
  hookCommand: {
    anyOf: [
      { type: 'string', minLength: 1 },
      { type: 'array', items: { type: 'string' } },
    ],
  },
  sysctlValue: { type: ['string', 'number'] },
  hostKey: { type: 'string', pattern: '^\\s*\\S+\\s+[A-Za-z0-9+/]+=*' },
  kubeletConfiguration: { $ref: '#/definitions/KubeletConfiguration' },
};

/**
 * The JSON Schema (draft 7) of fleet files, for editors. The schema covers structure and fields of
 * KubeletConfiguration, but not the further checks of `fleet validate` (duplicate names, variables,
 * versions).
 * @param minor minor of the KubeletConfiguration fields
 */
export function fleetJsonSchema(catalogue: Catalogue, minor: Minor): JsonObject {
  const schema = z.toJSONSchema(fleetSchema, { io: 'input', target: 'draft-7', unrepresentable: 'any', override: describe });
  const { $schema, properties, required = [], ...rest } = schema as unknown as JsonObject & { readonly required?: readonly string[] };
  return {
    $schema: $schema as string,
    title: `${FLEET_KIND} of ${FLEET_API_VERSION}`,
    ...rest,
    required: ['apiVersion', 'kind', ...required],
    properties: { apiVersion: { const: FLEET_API_VERSION }, kind: { const: FLEET_KIND }, ...(properties as JsonObject) },
    definitions: { KubeletConfiguration: kubeletDefinition(catalogue, minor) },
  };
}

interface Described {
  readonly zodSchema: z.core.$ZodTypes;
  readonly jsonSchema: z.core.JSONSchema.BaseSchema;
}

/** Adds parts that zod leaves open, and removes internal metadata. */
function describe({ zodSchema, jsonSchema }: Described): void {
  const open = jsonSchema as Record<string, unknown>;
  const { part } = (zodSchema instanceof z.ZodType ? zodSchema.meta() : undefined) ?? {};
  if (typeof part === 'string') {
    const { description } = jsonSchema;
    for (const key of Object.keys(open)) delete open[key];
    Object.assign(open, PARTS[part], description === undefined ? {} : { description });
  }
  for (const own of ['part', 'hint', 'emptyIsAbsent']) delete open[own];
}

function kubeletDefinition(catalogue: Catalogue, minor: Minor): JsonObject {
  const definition = objectSchema(kubeletConfigurationType(catalogue, minor), catalogue);
  const header = { apiVersion: { const: KUBELET_API_VERSION }, kind: { const: KUBELET_KIND } };
  return { ...definition, properties: { ...(definition.properties as JsonObject), ...header } };
}

function objectSchema({ fields }: ObjectNode, catalogue: Catalogue): JsonObject {
  const properties = [...fields.values()].map(({ name, path, type }): [string, JsonObject] => {
    const description = catalogue.fields.get(path)?.description;
    const schema = typeSchema(type, catalogue);
    return [name, description === undefined || description === '' ? schema : { description, ...schema }];
  });
  return { type: ['object', 'null'], additionalProperties: false, properties: Object.fromEntries(properties) };
}

function typeSchema(type: TypeNode, catalogue: Catalogue): JsonObject {
  switch (type.kind) {
    case 'object':
      return objectSchema(type, catalogue);
    case 'list':
      return { type: ['array', 'null'], items: typeSchema(type.items, catalogue) };
    case 'map':
      return { type: ['object', 'null'], additionalProperties: typeSchema(type.values, catalogue) };
    case 'string':
      return type.values === null ? { type: ['string', 'null'] } : { anyOf: [{ enum: [...type.values, '', null] }, TEMPLATE] };
    case 'bool':
      return { anyOf: [{ type: ['boolean', 'null'] }, TEMPLATE] };
    case 'int32':
    case 'int64':
      return { anyOf: [{ type: ['integer', 'null'] }, TEMPLATE] };
    case 'uint32':
      return { anyOf: [{ type: ['integer', 'null'], minimum: 0 }, TEMPLATE] };
    case 'float':
      return { anyOf: [{ type: ['number', 'null'] }, TEMPLATE] };
    case 'quantity':
    case 'durationOrNanoseconds':
    case 'intOrString':
      return { type: ['string', 'number', 'null'] };
    case 'duration':
    case 'timestamp':
      return { type: ['string', 'null'] };
  }
}
