import * as z from 'zod';
import type { JsonObject } from '../../base/json.ts';
import type { KubeObject } from '../../kube/object.ts';
import { parseApiVersion, type ResourceType } from '../../kube/resources.ts';
import { NAME_VALIDATIONS, ROLLOUT_API_VERSION, ROLLOUT_KIND, rolloutSchema } from './schema.ts';

const { group, version } = parseApiVersion(ROLLOUT_API_VERSION);

const ROLLOUT_RESOURCE: ResourceType = { group, version, kind: ROLLOUT_KIND, plural: 'kubeletconfigrollouts', namespaced: false };

const COLUMNS: readonly JsonObject[] = [
  column('Phase', 'string', '.status.phase'),
  column('Nodes', 'integer', '.status.counts.selected'),
  column('Updated', 'integer', '.status.counts.updated'),
  column('In Progress', 'integer', '.status.counts.inProgress'),
  column('Failed', 'integer', '.status.counts.failed'),
  { ...column('Revision', 'string', '.status.updateRevision'), priority: 1 },
  { ...column('Message', 'string', ".status.conditions[?(@.type=='Ready')].message"), priority: 1 },
  column('Age', 'date', '.metadata.creationTimestamp'),
];

function column(name: string, type: string, jsonPath: string): JsonObject {
  return { name, type, jsonPath };
}

/** The CustomResourceDefinition of rollouts. */
export function rolloutDefinition(): KubeObject {
  const { plural, kind } = ROLLOUT_RESOURCE;
  const schema = {
    type: 'object',
    description: 'Rolls out a kubelet configuration to the selected nodes, and to nodes that join later.',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: structural(rolloutSchema.spec),
      status: structural(rolloutSchema.status),
    },
    'x-kubernetes-validations': NAME_VALIDATIONS,
  };
  const served = { name: version, served: true, storage: true };
  const names = { plural, singular: kind.toLowerCase(), kind, listKind: `${kind}List`, shortNames: ['kcr'], categories: ['kubeletadm'] };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names,
      versions: [{ ...served, schema: { openAPIV3Schema: schema }, subresources: { status: {} }, additionalPrinterColumns: COLUMNS }],
    },
  };
}

/** A structural schema, which API servers require. */
function structural(schema: z.ZodType): JsonObject {
  return z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0', override }) as unknown as JsonObject;
}

const override: NonNullable<z.core.ToJSONSchemaParams['override']> = ({ jsonSchema }) => {
  const open = jsonSchema as Record<string, unknown>;
  const { additionalProperties } = open;
  // Unknown fields are pruned, or kept by x-kubernetes-preserve-unknown-fields.
  if (additionalProperties === false || (typeof additionalProperties === 'object' && Object.keys(additionalProperties ?? {}).length === 0))
    delete open.additionalProperties;
  // API servers do not store an empty map.
  if (open.properties !== undefined && Object.keys(open.properties ?? {}).length === 0) delete open.properties;
  if (open['x-kubernetes-int-or-string'] === true) open.anyOf = [{ type: 'integer' }, { type: 'string' }];
};
