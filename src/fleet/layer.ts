import type { Position } from '../base/errors.ts';
import { formatFieldPath, type Step } from '../codec/field-path.ts';
import { entryOf, type SourceDocument, type SourceNode, type SourceScalar } from '../codec/source.ts';
import type { Place } from './findings.ts';
import type { FleetLayer } from './schema.ts';
import type { VariableText } from './scope.ts';

/** What one place says of a host: the baseline, a group, an import, an inventory, the host itself. Later layers win. */
export interface Layer {
  /** `baseline`, `group edge`, `host edge-[001:200]`. */
  readonly label: string;
  readonly written: FleetLayer;
  /** The mapping `kubeletConfiguration`; null when the layer has none. */
  readonly kubelet: SourceNode | null;
  readonly document: SourceDocument | null;
  readonly variables: ReadonlyMap<string, VariableText>;
  /** Where one of its members is written, or the nearest thing around it. */
  place(steps: readonly Step[]): Place;
}

/** A layer of a fleet file. `path` leads to its mapping. */
export function fileLayer(label: string, written: FleetLayer, document: SourceDocument, path: readonly Step[]): Layer {
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

/** Worked out when it is asked for: of most places nobody ever hears. */
class FilePlace implements Place {
  readonly #document: SourceDocument;
  readonly #node: SourceNode | null;
  readonly #way: readonly Step[];
  readonly #steps: readonly Step[];

  constructor(document: SourceDocument, node: SourceNode | null, route: readonly Step[], steps: readonly Step[]) {
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

/** A layer of something that was imported: all of it is at one place. */
export function importedLayer(label: string, written: FleetLayer, place: Place): Layer {
  const variables = Object.entries(written.variables ?? {}).map(([name, value]) => [name, scalarOf(value)] as const);
  return { label, written, document: null, kubelet: null, variables: new Map(variables), place: () => place };
}

/** A value of a program as if it had been written. */
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

function childOf(node: SourceNode | null, step: Step): SourceNode | null {
  if (typeof step === 'number') return node?.kind === 'list' ? (node.items[step] ?? null) : null;
  return entryOf(node, step)?.value ?? null;
}

/** Of a scalar where it is written, of a mapping or list its key. */
function offsetOf(node: SourceNode | null, steps: readonly Step[]): number | null {
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

function ownOffset(document: SourceDocument, path: readonly Step[]): number {
  return offsetOf(document.root, path) ?? 0;
}
