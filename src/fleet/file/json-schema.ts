import * as z from 'zod';
import type { JsonObject } from '../../base/json.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import { kubeletJsonSchema } from '../../kubelet/documents/json-schema.ts';
import { FLEET_API_VERSION, FLEET_KIND, fleetSchema, TEMPLATE } from './schema.ts';

/** The title of the JSON Schema, in all versions of kubeletadm. */
export const FLEET_SCHEMA_TITLE = `${FLEET_KIND} of ${FLEET_API_VERSION}`;

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
    title: FLEET_SCHEMA_TITLE,
    ...rest,
    required: ['apiVersion', 'kind', ...required],
    properties: {
      apiVersion: { const: FLEET_API_VERSION },
      kind: { const: FLEET_KIND },
      ...(properties as JsonObject),
      ...Object.fromEntries(['cluster', 'baseline'].map((name) => [name, orEmpty((properties as JsonObject)[name] as JsonObject)])),
    },
    definitions: { KubeletConfiguration: kubeletJsonSchema(catalogue, minor, { alternative: TEMPLATE }) },
  };
}

/** A start file has these members with comments only, which YAML reads as null. */
function orEmpty(member: JsonObject): JsonObject {
  return { ...member, type: ['object', 'null'] };
}

/** Adds parts that zod leaves open, and removes internal metadata. */
const describe: NonNullable<z.core.ToJSONSchemaParams['override']> = ({ zodSchema, jsonSchema }) => {
  const open = jsonSchema as Record<string, unknown>;
  const { jsonSchema: part } = (zodSchema instanceof z.ZodType ? zodSchema.meta() : undefined) ?? {};
  if (typeof part === 'object') {
    const { description } = jsonSchema;
    for (const key of Object.keys(open)) delete open[key];
    Object.assign(open, part, description === undefined ? {} : { description });
  }
  for (const own of ['jsonSchema', 'hint', 'emptyIsAbsent', 'merge', 'template']) delete open[own];
};
