import type { JsonObject } from '../../base/json.ts';
import type { SourceDocument, SourceNode } from '../../codec/source.ts';
import type { Catalogue, Minor } from '../../kubelet/catalogue/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/documents/decode.ts';
import { kubeletJsonSchema } from '../../kubelet/documents/json-schema.ts';

/** A document that changes single fields of the local configuration. A kubelet rejects it by its kind. */
export const OVERLAY_API_VERSION = 'kubeletadm.dev/v1alpha1';
export const OVERLAY_KIND = 'KubeletConfigurationOverlay';

export function isOverlayDocument(document: SourceDocument): boolean {
  const { kind, apiVersion } = headerOf(document);
  return kind === OVERLAY_KIND && apiVersion === OVERLAY_API_VERSION;
}

function headerOf({ root }: SourceDocument): { readonly kind: string; readonly apiVersion: string } {
  const text = (name: string): string => {
    const value = root?.kind === 'map' ? root.entries.findLast(({ key }) => key === name)?.value : undefined;
    return value?.kind === 'scalar' ? value.text : '';
  };
  return { kind: text('kind'), apiVersion: text('apiVersion') };
}

/** Converts the header of an overlay to that of a KubeletConfiguration; their fields are the same. */
export function asKubeletDocument(document: SourceDocument): SourceDocument {
  const { root } = document;
  if (root?.kind !== 'map') return document;
  const header: Readonly<Record<string, string>> = { kind: KUBELET_KIND, apiVersion: KUBELET_API_VERSION };
  const replaced = (value: SourceNode, text: string): SourceNode => ({
    kind: 'scalar',
    scalar: { type: 'string', value: text },
    text,
    offset: value.offset,
  });
  const entries = root.entries.map((entry) => {
    const text = header[entry.key];
    return text === undefined ? entry : { ...entry, value: replaced(entry.value, text) };
  });
  return { file: document.file, index: document.index, positionAt: (offset) => document.positionAt(offset), root: { ...root, entries } };
}

/** `configuration` replaces the local configuration; `overlay` changes single fields of it. */
export type PayloadKind = 'configuration' | 'overlay';

/** Builds a document for a ConfigMap. */
export function payloadDocument(kind: PayloadKind, fields: JsonObject): JsonObject {
  const header =
    kind === 'overlay' ? { apiVersion: OVERLAY_API_VERSION, kind: OVERLAY_KIND } : { apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND };
  return { ...header, ...fields };
}

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
