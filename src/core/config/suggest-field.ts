import type { FieldTree } from './field-tree.ts';
import { fieldTreeOf } from './field-tree.ts';
import type { ModelKind } from './model.ts';
import { V1BETA3_SCHEMAS } from './schema-v1beta3.ts';
import { V1BETA4_SCHEMAS } from './schema-v1beta4.ts';

export type SchemaVersion = 'v1beta3' | 'v1beta4';

/** Fields of v1beta3 that v1beta4 has elsewhere: where they went. */
const MOVED: ReadonlyMap<string, string> = new Map([
  [
    'ClusterConfiguration.apiServer.timeoutForControlPlane',
    'v1beta4 has timeouts.controlPlaneComponentHealthCheck in InitConfiguration and JoinConfiguration instead',
  ],
  ['JoinConfiguration.discovery.timeout', 'v1beta4 has timeouts.discovery instead'],
]);

/** Where an unknown field stands. */
export interface UnknownField {
  readonly kind: ModelKind;
  readonly version: SchemaVersion;
  /** Names of the fields above it, list places left out. */
  readonly parents: readonly string[];
  readonly name: string;
}

/**
 * Says what may have been meant by an unknown field: another letter case, a field of the other API version, a slip of the pen, or the same
 * name elsewhere in the documents.
 * @returns a sentence for `mend`, or undefined when there is no likely answer
 */
export function suggestField(field: UnknownField): string | undefined {
  const siblings = fieldsAt(field.version, field.kind, field.parents) ?? [];
  const otherCase = siblings.find((name) => name.toLowerCase() === field.name.toLowerCase());
  return (
    question(otherCase) ??
    otherVersion(field) ??
    question(closestName(field.name, siblings)) ??
    elsewhere(field) ??
    header(field) ??
    undefined
  );
}

/**
 * The candidate that is at most two slips away (one for names of up to four letters); the nearest, of equals the first.
 * @returns null when none is near enough
 */
export function closestName(name: string, candidates: Iterable<string>): string | null {
  const limit = name.length <= 4 ? 1 : 2;
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > limit) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, replacements and swaps of neighbours between two short texts. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (last[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let distance = Math.min(replaced, (last[j] as number) + 1, (row[j - 1] as number) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        distance = Math.min(distance, (beforeLast[j - 2] as number) + 1);
      row.push(distance);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] as number;
}

function question(name: string | null | undefined): string | undefined {
  return name ? `Did you mean ${name}?` : undefined;
}

function otherVersion({ kind, version, parents, name }: UnknownField): string | undefined {
  if (version === 'v1beta4') return MOVED.get([kind, ...parents, name].join('.'));
  return fieldsAt('v1beta4', kind, parents)?.includes(name)
    ? 'It came with kubeadm.k8s.io/v1beta4: write that apiVersion, or run config migrate'
    : undefined;
}

function elsewhere({ kind, version, name }: UnknownField): string | undefined {
  const places = fieldIndex(version).get(name.toLowerCase()) ?? [];
  const here = places.filter((place) => place.kind === kind);
  const [nearest] = here.length > 0 ? here : places;
  if (!nearest) return undefined;
  return nearest.kind === kind ? `Did you mean ${nearest.path}?` : `It belongs in ${nearest.kind}, as ${nearest.path}`;
}

function header({ parents, name }: UnknownField): string | undefined {
  return parents.length === 0 && /^(metadata|spec|status)$/.test(name) ? 'Configuration documents have none: leave it out' : undefined;
}

function fieldsAt(version: SchemaVersion, kind: ModelKind, parents: readonly string[]): readonly string[] | null {
  let tree: FieldTree | undefined = rootOf(version, kind);
  for (const name of parents) tree = unlisted(tree)?.fields.get(name);
  const struct = unlisted(tree);
  return struct ? [...struct.fields.keys()] : null;
}

function unlisted(tree: FieldTree | undefined): (FieldTree & { readonly kind: 'struct' }) | undefined {
  const inner = tree?.kind === 'list' ? tree.item : tree;
  return inner?.kind === 'struct' ? inner : undefined;
}

function rootOf(version: SchemaVersion, kind: ModelKind): FieldTree | undefined {
  const schemas: { readonly [K in ModelKind]?: Parameters<typeof fieldTreeOf>[0] } =
    version === 'v1beta4' ? V1BETA4_SCHEMAS : V1BETA3_SCHEMAS;
  const schema = schemas[kind];
  return schema && fieldTreeOf(schema);
}

interface Place {
  readonly kind: ModelKind;
  readonly path: string;
}
const indexes = new Map<SchemaVersion, ReadonlyMap<string, readonly Place[]>>();

/** Lower-case field names to where they occur, the shallowest first. */
function fieldIndex(version: SchemaVersion): ReadonlyMap<string, readonly Place[]> {
  const known = indexes.get(version);
  if (known) return known;
  const index = new Map<string, Place[]>();
  const visit = (tree: FieldTree, kind: ModelKind, path: string) => {
    if (tree.kind === 'list' && !/\.extra\w+$/.test(path)) visit(tree.item, kind, `${path}[]`);
    if (tree.kind !== 'struct') return;
    for (const [name, field] of tree.fields) {
      const place = { kind, path: path === '' ? name : `${path}.${name}` };
      index.set(name.toLowerCase(), [...(index.get(name.toLowerCase()) ?? []), place]);
      visit(field, kind, place.path);
    }
  };
  for (const kind of Object.keys(V1BETA4_SCHEMAS) as ModelKind[]) {
    const root = rootOf(version, kind);
    if (root) visit(root, kind, '');
  }
  const depth = ({ path }: Place) => path.split('.').length;
  for (const places of index.values()) places.sort((a, b) => depth(a) - depth(b));
  indexes.set(version, index);
  return index;
}
