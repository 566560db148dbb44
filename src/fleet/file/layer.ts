import type { Position } from '../../base/errors.ts';
import { formatFieldPath, type PathSegment } from '../../codec/field-path.ts';
import { entryOf, type SourceDocument, type SourceNode, type SourceScalar } from '../../codec/source.ts';
import type { SettingLocation } from './problem-collector.ts';
import type { FleetLayer } from './schema.ts';
import type { VariableText } from './scope.ts';

/** Settings from one place: baseline, group, import, inventory or host. Later layers win. */
export interface Layer {
  /** `baseline`, `group edge`, `host edge-[001:200]`. */
  readonly label: string;
  readonly written: FleetLayer;
  readonly kubelet: SourceNode | null;
  readonly document: SourceDocument | null;
  readonly variables: ReadonlyMap<string, VariableText>;
  /** Position of a member, or of its nearest parent. */
  place(steps: readonly PathSegment[]): SettingLocation;
}

export function fileLayer(label: string, written: FleetLayer, document: SourceDocument, path: readonly PathSegment[]): Layer {
  const node = path.reduce<SourceNode | null>(childOf, document.root);
  const variables = entryOf(node, 'variables')?.value;
  const texts = variables?.kind === 'map' ? variables.entries : [];
  return {
    label,
    written,
    document,
    kubelet: written.kubeletConfiguration === undefined ? null : (entryOf(node, 'kubeletConfiguration')?.value ?? null),
    variables: new Map(texts.flatMap(({ key, value }) => (value.kind === 'scalar' ? [[key, value] as const] : []))),
    place: (steps) => new FilePlace(document, node, path, steps),
  };
}

/** Computed on demand, because most positions are never reported. */
class FilePlace implements SettingLocation {
  readonly #document: SourceDocument;
  readonly #node: SourceNode | null;
  readonly #way: readonly PathSegment[];
  readonly #steps: readonly PathSegment[];

  constructor(document: SourceDocument, node: SourceNode | null, route: readonly PathSegment[], steps: readonly PathSegment[]) {
    this.#document = document;
    this.#node = node;
    this.#way = route;
    this.#steps = steps;
  }

  get position(): Position {
    return this.#document.positionAt(offsetOf(this.#node, this.#steps) ?? ownOffset(this.#document, this.#way));
  }

  get path(): string {
    return formatFieldPath([...this.#way, ...this.#steps]);
  }
}

export function importedLayer(label: string, written: FleetLayer, place: SettingLocation): Layer {
  const variables = Object.entries(written.variables ?? {}).map(([name, value]) => [name, scalarOf(value)] as const);
  return { label, written, document: null, kubelet: null, variables: new Map(variables), place: () => place };
}

export function scalarOf(value: string | number | boolean): Omit<SourceScalar, 'kind' | 'offset'> {
  const text = String(value);
  switch (typeof value) {
    case 'string':
      return { text, scalar: { type: 'string', value } };
    case 'boolean':
      return { text, scalar: { type: 'bool', value } };
    default:
      return { text, scalar: Number.isInteger(value) ? { type: 'int', value: BigInt(value) } : { type: 'float', value } };
  }
}

function childOf(node: SourceNode | null, step: PathSegment): SourceNode | null {
  if (typeof step === 'number') return node?.kind === 'list' ? (node.items[step] ?? null) : null;
  return entryOf(node, step)?.value ?? null;
}

/** Position of a scalar's value, or of the key of an object or list. */
function offsetOf(node: SourceNode | null, steps: readonly PathSegment[]): number | null {
  let offset = node?.offset ?? null;
  let at = node;
  for (const step of steps) {
    const entry = typeof step === 'string' ? entryOf(at, step) : undefined;
    const child = childOf(at, step);
    if (child === null) return offset;
    offset = entry === undefined || (child.kind === 'scalar' && child.text !== '') ? child.offset : entry.keyOffset;
    at = child;
  }
  return offset;
}

function ownOffset(document: SourceDocument, path: readonly PathSegment[]): number {
  return offsetOf(document.root, path) ?? 0;
}
