import type { JsonObject } from '../base/json.ts';
import type { Catalogue, Minor } from '../kubelet/catalogue.ts';
import { kubeletJsonSchema } from '../kubelet/json-schema.ts';
import { OVERLAY_API_VERSION, OVERLAY_KIND } from './agent/overlay.ts';

/**
 * The JSON Schema (draft 7) of a KubeletConfigurationOverlay: the fields of a KubeletConfiguration of one minor version;
 * null removes a field.
 */
export function overlayJsonSchema(catalogue: Catalogue, minor: Minor): JsonObject {
  const schema = kubeletJsonSchema(catalogue, minor, { isRemovable: true });
  const header = { apiVersion: { const: OVERLAY_API_VERSION }, kind: { const: OVERLAY_KIND } };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: OVERLAY_KIND,
    ...schema,
    type: 'object',
    required: ['apiVersion', 'kind'],
    properties: { ...(schema.properties as JsonObject), ...header },
  };
}
