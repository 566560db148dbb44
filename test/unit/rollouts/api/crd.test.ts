import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../../src/base/json.ts';
import { isJsonObject } from '../../../../src/base/json.ts';
import { rolloutDefinition } from '../../../../src/rollouts/api/crd.ts';

function schema(): JsonObject {
  const { versions } = rolloutDefinition().spec as {
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: JsonObject } }[];
  };
  return versions[0]?.schema.openAPIV3Schema ?? {};
}

/** All schemas of fields, by path. */
function fieldsOf(node: JsonObject, path = ''): readonly (readonly [string, JsonObject])[] {
  const children = isJsonObject(node.properties) ? Object.entries(node.properties) : [];
  const nested: readonly (readonly [string, Json])[] = [
    ...children.map(([name, child]) => [`${path}.${name}`, child] as const),
    ...(isJsonObject(node.items) ? ([[`${path}[]`, node.items]] as const) : []),
    ...(isJsonObject(node.additionalProperties) ? ([[`${path}{}`, node.additionalProperties]] as const) : []),
  ];
  return [[path, node], ...nested.flatMap(([at, child]) => (isJsonObject(child) ? fieldsOf(child, at) : []))];
}

describe('the CustomResourceDefinition', () => {
  it('has a structural schema: each field has a type, and no unknown field is refused', () => {
    const fields = fieldsOf(schema());
    expect(fields.length).toBeGreaterThan(80);
    const untyped = fields.filter(([, field]) => field.type === undefined && field['x-kubernetes-int-or-string'] !== true);
    expect(untyped.map(([path]) => path)).toEqual([]);
    expect(fields.filter(([, field]) => field.additionalProperties === false).map(([path]) => path)).toEqual([]);
    const keywords = new Set(fields.flatMap(([, field]) => Object.keys(field)).filter((name) => !name.startsWith('x-kubernetes-')));
    expect([...keywords].toSorted()).toEqual(
      [
        'additionalProperties',
        'anyOf',
        'default',
        'description',
        'enum',
        'format',
        'items',
        'maxItems',
        'maxLength',
        'maxProperties',
        'maximum',
        'minItems',
        'pattern',
        'minLength',
        'minimum',
        'properties',
        'required',
        'type',
      ].toSorted(),
    );
  });

  it('describes and limits each list, so that the cost of CEL rules is bounded', () => {
    const lists = fieldsOf(schema()).filter(([path, field]) => field.type === 'array' && path.startsWith('.spec'));
    expect(lists.filter(([, { maxItems }]) => maxItems === undefined)).toEqual([]);
  });

  it('has a rule with a message wherever fields depend on each other', () => {
    const rules = fieldsOf(schema()).flatMap(([path, field]) =>
      (Array.isArray(field['x-kubernetes-validations']) ? field['x-kubernetes-validations'] : []).map(
        (rule) => `${path}: ${(rule as JsonObject).message}`,
      ),
    );
    expect(rules.filter((rule) => !rule.includes('order') && !rule.includes('canary.nodeSelector'))).toMatchInlineSnapshot(`
      [
        ": metadata.name has at most 52 characters",
        ".spec.nodeSelector.matchExpressions[]: values are required for In and NotIn, and not allowed for Exists and DoesNotExist",
        ".spec.payload: exactly one of configMapRef and overlay is required",
        ".spec.payload.overlay: an overlay has fields of a KubeletConfiguration only, without apiVersion and kind",
        ".spec.strategy: topologyOrder requires topologyKey",
        ".spec.strategy.canary.count: a number of at least 0, or a percentage from 0% to 100%",
        ".spec.strategy.maxUnavailable: a number of at least 1, or a percentage from 1% to 100%",
        ".spec.strategy.gates[]: exactly one of prometheus and job is required",
        ".spec.strategy.gates[].prometheus.thresholdRange: min, max or both are required, and min is not above max",
        ".spec.strategy.windows[].timeZone: the name of a time zone, e.g. Europe/Berlin or Etc/UTC",
      ]
    `);
  });
});
