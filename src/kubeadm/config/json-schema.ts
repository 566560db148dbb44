import * as z from 'zod';
import type { JsonObject } from '../../base/json.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import { KUBELET_API_VERSION } from '../../kubelet/documents/decode.ts';
import { kubeletJsonSchema } from '../../kubelet/documents/json-schema.ts';
import { V1BETA3, V1BETA4 } from './document-header.ts';
import type { ConfigKind } from './model.ts';
import { V1BETA4_SCHEMAS } from './schema-v1beta4.ts';
import { V1BETA3_SCHEMAS } from './v1beta3.ts';

/** The schema of a kind in one API version. */
interface Variant {
  readonly apiVersion: string;
  readonly kind: ConfigKind;
  readonly schema: () => JsonObject;
}

/** All kinds that have a schema. A KubeProxyConfiguration is passed on without decoding. */
const KUBE_PROXY = 'KubeProxyConfiguration';

/**
 * The JSON Schema (draft 7) of configuration files: kubeadm documents, KubeletConfiguration and overlays. Editors apply
 * it to each document of a file. It covers fields and types, but not the further checks of `config validate`.
 * @param minor the kubelet version of the fields of KubeletConfiguration
 * @param kind null: any document that a configuration file may contain
 */
export function configJsonSchema(catalogue: Catalogue, minor: Minor, kind: ConfigKind | null): JsonObject {
  const variants = variantsOf(catalogue, minor).filter((each) => kind === null || each.kind === kind);
  const kinds = [...new Set(variants.map((each) => each.kind)), ...(kind === null ? [KUBE_PROXY] : [])];
  const header = { apiVersion: { type: 'string' }, kind: { enum: kinds } };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: kind ?? 'Configuration files of kubeadm and kubeletadm',
    type: 'object',
    required: ['apiVersion', 'kind'],
    properties: header,
    allOf: [
      ...kinds.filter((each) => each !== KUBE_PROXY).map((each) => versionsOf(each, variants)),
      ...variants.map((variant) => ({
        if: {
          required: ['apiVersion', 'kind'],
          properties: { apiVersion: { const: variant.apiVersion }, kind: { const: variant.kind } },
        },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { $ref: `#/definitions/${nameOf(variant)}` },
      })),
    ],
    definitions: Object.fromEntries(variants.map((variant) => [nameOf(variant), variant.schema()])),
  };
}

function versionsOf(kind: string, variants: readonly Variant[]): JsonObject {
  const versions = variants.filter((each) => each.kind === kind).map(({ apiVersion }) => apiVersion);
  return {
    if: { required: ['kind'], properties: { kind: { const: kind } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties: { apiVersion: { enum: versions } } },
  };
}

/** `InitConfiguration.v1beta4`. */
function nameOf({ apiVersion, kind }: Variant): string {
  return `${kind}.${apiVersion.split('/')[1]}`;
}

function variantsOf(catalogue: Catalogue, minor: Minor): readonly Variant[] {
  const documents = (apiVersion: string, schemas: Readonly<Record<string, z.ZodType>>): readonly Variant[] =>
    Object.entries(schemas).map(([kind, schema]) => ({
      apiVersion,
      kind: kind as ConfigKind,
      schema: () => documentSchema(schema, apiVersion, kind),
    }));
  return [
    ...documents(V1BETA4, V1BETA4_SCHEMAS),
    ...documents(V1BETA3, V1BETA3_SCHEMAS),
    { apiVersion: KUBELET_API_VERSION, kind: 'KubeletConfiguration', schema: () => kubeletJsonSchema(catalogue, minor) },
  ];
}

function documentSchema(schema: z.ZodType, apiVersion: string, kind: string): JsonObject {
  const {
    $schema: _,
    properties,
    ...rest
  } = z.toJSONSchema(schema, {
    io: 'input',
    target: 'draft-7',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      for (const own of ['hint', 'emptyIsAbsent']) delete (jsonSchema as Record<string, unknown>)[own];
    },
  }) as unknown as JsonObject & { readonly properties: JsonObject };
  const header = { apiVersion: { const: apiVersion }, kind: { const: kind } };
  return { ...rest, properties: { ...header, ...membersOf(properties) } };
}

/** Null counts as absent for every member. */
function membersOf(properties: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, orNull(deep(schema as JsonObject))]));
}

function deep(schema: JsonObject): JsonObject {
  const { properties, items } = schema;
  return {
    ...schema,
    ...(properties === undefined ? {} : { properties: membersOf(properties as JsonObject) }),
    ...(items === undefined ? {} : { items: deep(items as JsonObject) }),
  };
}

function orNull(schema: JsonObject): JsonObject {
  const { type, enum: values } = schema;
  if (Array.isArray(values))
    return { ...schema, ...(type === undefined ? {} : { type: [type as string, 'null'] }), enum: [...values, null] };
  return typeof type === 'string' ? { ...schema, type: [type, 'null'] } : { anyOf: [schema, { type: 'null' }] };
}
