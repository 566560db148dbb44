import { closestName } from '../../base/text/closest-name.ts';
import type { FieldTree } from '../../codec/field-tree.ts';
import { fieldTreeOf } from '../../codec/field-tree.ts';
import type { ModelKind } from './model.ts';
import { V1BETA4_SCHEMAS } from './schema-v1beta4.ts';
import { V1BETA3_SCHEMAS } from './v1beta3.ts';

export type SchemaVersion = 'v1beta3' | 'v1beta4';

/** Fields of v1beta3 that v1beta4 moved, with the new place. */
const MOVED: ReadonlyMap<string, string> = new Map([
  [
    'ClusterConfiguration.apiServer.timeoutForControlPlane',
    'Use timeouts.controlPlaneComponentHealthCheck of InitConfiguration and JoinConfiguration (v1beta4) instead',
  ],
  ['JoinConfiguration.discovery.timeout', 'Use timeouts.discovery (v1beta4) instead'],
]);

export interface UnknownField {
  readonly kind: ModelKind;
  readonly version: SchemaVersion;
  /** Names of the parent fields, without list indices. */
  readonly parents: readonly string[];
  readonly name: string;
}

/**
 * Suggests the intended field for an unknown one: another letter case, a field of the other API version, a
 * typo, or the same name elsewhere in the documents.
 * @returns a sentence for `hint`, or undefined without a likely match
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

function question(name: string | null | undefined): string | undefined {
  return name ? `Did you mean ${name}?` : undefined;
}

function otherVersion({ kind, version, parents, name }: UnknownField): string | undefined {
  if (version === 'v1beta4') return MOVED.get([kind, ...parents, name].join('.'));
  return fieldsAt('v1beta4', kind, parents)?.includes(name)
    ? 'Use apiVersion kubeadm.k8s.io/v1beta4, which has this field. To convert the file, run kubeletadm config migrate --old-config FILE'
    : undefined;
}

function elsewhere({ kind, version, name }: UnknownField): string | undefined {
  const places = fieldIndex(version).get(name.toLowerCase()) ?? [];
  const here = places.filter((place) => place.kind === kind);
  const [nearest] = here.length > 0 ? here : places;
  if (!nearest) return undefined;
  return nearest.kind === kind ? `Did you mean ${nearest.path}?` : `Set the field in ${nearest.kind}: ${nearest.path}`;
}

function header({ parents, name }: UnknownField): string | undefined {
  return parents.length === 0 && /^(metadata|spec|status)$/.test(name)
    ? 'Remove the field: documents of kubeadm have no metadata, spec or status'
    : undefined;
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

type Place = { readonly kind: ModelKind; readonly path: string };
const indexes = new Map<SchemaVersion, ReadonlyMap<string, readonly Place[]>>();

/** Positions by lower-case field name, the shallowest first. */
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
