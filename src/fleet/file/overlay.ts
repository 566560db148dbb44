import type { SourceDocument, SourceEntry, SourceMap, SourceNode } from '../../codec/source.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/documents/decode.ts';
import type { Layer } from './layer.ts';
import type { FleetOverlay } from './model.ts';
import type { SettingLocation } from './problem-collector.ts';
import type { Scope } from './scope.ts';
import { isTemplate, parseTemplate } from './scope.ts';

/**
 * Builds documents from a layer's `kubeletConfiguration`. Positions refer to the fleet file; a missing header
 * is added. Hosts with equal variable values share the document.
 * @returns null for a host if the layer has no configuration, or a template cannot be resolved
 */
export function overlayBuilder(layer: Layer): (scope: Scope) => FleetOverlay | null {
  const { kubelet, document } = layer;
  if (kubelet?.kind !== 'map' || document === null) return () => null;
  const root = withHeader(kubelet);
  const place = (offset: number): SettingLocation => ({
    path: layer.place(['kubeletConfiguration']).path,
    position: document.positionAt(offset),
  });
  const variables = [...variablesIn(kubelet)];
  const known = new Map<string, FleetOverlay>();
  const overlay = (node: SourceMap): FleetOverlay => ({
    layer: layer.label,
    document: { ...documentOf(document, node), layer: ownerOf(layer.label) },
  });
  // An invalid template is reported once, for the first host.
  const plain = !hasTemplate(kubelet) ? overlay(root) : null;
  return (scope) => {
    if (plain !== null) return plain;
    const values: string[] = [];
    for (const { name, offset } of variables) {
      const value = scope.lookUp(name, () => place(offset));
      if (value === null) return null;
      values.push(`${value.scalar.type} ${value.text}`);
    }
    const key = values.join('\0');
    const same = known.get(key);
    if (same) return same;
    const filled = fill(root, scope, place);
    if (filled === null) return null;
    const made = overlay(filled as SourceMap);
    known.set(key, made);
    return made;
  };
}

function documentOf({ file, index, positionAt }: SourceDocument, root: SourceMap): SourceDocument {
  return { file, index, root, positionAt };
}

/** The layer without the name of a host, which may be a range. */
function ownerOf(label: string): string {
  return label.startsWith('host ') ? 'host' : label;
}

function withHeader(node: SourceMap): SourceMap {
  const header = [
    ['apiVersion', KUBELET_API_VERSION],
    ['kind', KUBELET_KIND],
  ] as const;
  const missing = header.filter(([name]) => !node.entries.some(({ key }) => key === name));
  return { ...node, entries: [...missing.map(([name, value]) => textEntry(name, value, node.offset)), ...node.entries] };
}

function textEntry(key: string, text: string, offset: number): SourceEntry {
  return { key, keyOffset: offset, value: { kind: 'scalar', text, scalar: { type: 'string', value: text }, offset } };
}

function hasTemplate(node: SourceNode): boolean {
  if (node.kind === 'scalar') return node.scalar.type === 'string' && isTemplate(node.text);
  return node.kind === 'list' ? node.items.some(hasTemplate) : node.entries.some(({ value }) => hasTemplate(value));
}

/** Each variable once, with its first position. */
function variablesIn(node: SourceNode): Iterable<{ readonly name: string; readonly offset: number }> {
  const found = new Map<string, { readonly name: string; readonly offset: number }>();
  const walk = (at: SourceNode): void => {
    if (at.kind === 'list') for (const item of at.items) walk(item);
    if (at.kind === 'map') for (const { value } of at.entries) walk(value);
    if (at.kind !== 'scalar' || at.scalar.type !== 'string' || !isTemplate(at.text)) return;
    const template = parseTemplate(at.text);
    for (const part of 'parts' in template ? template.parts : [])
      if (typeof part === 'object' && !found.has(part.variable)) found.set(part.variable, { name: part.variable, offset: at.offset });
  };
  walk(node);
  return found.values();
}

function fill(node: SourceNode, scope: Scope, place: (offset: number) => SettingLocation): SourceNode | null {
  switch (node.kind) {
    case 'scalar': {
      if (node.scalar.type !== 'string' || !isTemplate(node.text)) return node;
      const value = scope.scalar(node.text, () => place(node.offset));
      return value === null ? null : { kind: 'scalar', scalar: value.scalar, text: value.text, offset: node.offset };
    }
    case 'list': {
      const items = node.items.map((item) => fill(item, scope, place));
      return items.includes(null) ? null : { ...node, items: items as SourceNode[] };
    }
    case 'map': {
      const entries = node.entries.map((entry) => ({ ...entry, value: fill(entry.value, scope, place) }));
      return entries.some(({ value }) => value === null) ? null : { ...node, entries: entries as SourceEntry[] };
    }
  }
}
