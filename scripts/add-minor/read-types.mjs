// Reads the Go structs of KubeletConfiguration from a source tree: paths, kinds, pointers and omitempty.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** The package of KubeletConfiguration in a tree of kubernetes/kubernetes, or in one of kubernetes/kubelet. */
const TYPES = ['staging/src/k8s.io/kubelet/config/v1beta1/types.go', 'config/v1beta1/types.go'];

/** Packages of other types, below staging/src/k8s.io; a tree of kubernetes/kubelet does not have them. */
const PACKAGES = {
  logsapi: 'component-base/logs/api/v1/types.go',
  tracingapi: 'component-base/tracing/api/v1/types.go',
  v1: 'api/core/v1/types.go',
};

const SCALARS = {
  string: 'string',
  bool: 'bool',
  int32: 'int32',
  int64: 'int64',
  uint32: 'uint32',
  float64: 'float',
  'metav1.Duration': 'duration',
  TimeOrMetaDuration: 'durationOrNanoseconds',
  'metav1.Time': 'timestamp',
  'resource.Quantity': 'quantity',
  'resource.QuantityValue': 'quantity',
};

/**
 * The fields of KubeletConfiguration in a tree.
 * @param trees where to look for other packages: this tree, and checkouts such as component-base
 * @returns paths in the order of the structs, and the paths of structs whose package the tree does not have
 */
export function readTypes(tree, trees) {
  const file = TYPES.map((name) => path.join(tree, name)).find((name) => existsSync(name));
  if (file === undefined) throw new Error(`${tree}: no ${TYPES.join(' and no ')}`);
  const packages = { '': parsePackage(file) };
  for (const [name, at] of Object.entries(PACKAGES)) {
    const inOwnCheckout = at.slice(at.indexOf('/') + 1);
    const places = [path.join(tree, 'staging/src/k8s.io', at), ...trees.map((other) => path.join(other, inOwnCheckout))];
    const from = places.find((place) => existsSync(place));
    if (from !== undefined) packages[name] = parsePackage(from);
  }
  const fields = new Map();
  const missing = [];
  walk({ name: 'KubeletConfiguration', pkg: '', at: '', packages, fields, missing });
  return { fields, missing };
}

function walk({ name, pkg, at, packages, fields, missing }) {
  for (const member of packages[pkg].structs.get(name) ?? []) {
    if (member.embedded) {
      if (member.type === 'metav1.TypeMeta') for (const header of ['kind', 'apiVersion']) fields.set(at + header, HEADER);
      else walk({ name: member.type, pkg, at, packages, fields, missing });
      continue;
    }
    const here = at + member.json;
    const type = resolveType(member.type, pkg, packages);
    fields.set(here, {
      kind: type.kind,
      pointer: member.pointer,
      omitempty: member.omitempty,
      documentedDefault: member.documentedDefault,
    });
    if (type.struct === undefined) continue;
    if (packages[type.pkg]?.structs.has(type.struct) !== true) missing.push(here);
    else walk({ name: type.struct, pkg: type.pkg, at: `${here}${type.kind === 'object' ? '.' : '[].'}`, packages, fields, missing });
  }
}

const HEADER = { kind: 'string', pointer: false, omitempty: true, documentedDefault: null };

function resolveType(go, pkg, packages) {
  if (go.startsWith('[]')) {
    const item = resolveType(go.slice(2), pkg, packages);
    return { ...item, kind: `array<${item.kind}>` };
  }
  const map = /^map\[(\w+(?:\.\w+)?)\](.+)$/.exec(go);
  if (map) return { kind: `map<string,${resolveType(map[2], pkg, packages).kind}>` };
  if (SCALARS[go] !== undefined) return { kind: SCALARS[go] };
  const [where, name] = go.includes('.') ? go.split('.') : [pkg, go];
  const known = packages[where];
  const alias = known?.aliases.get(name);
  if (alias !== undefined) return resolveType(alias, where, packages);
  if (known?.structs.get(name)?.some(({ embedded, type }) => embedded && type === 'resource.QuantityValue')) return { kind: 'quantity' };
  return { kind: 'object', struct: name, pkg: where };
}

function parsePackage(file) {
  const structs = new Map();
  const aliases = new Map();
  const text = readFileSync(file, 'utf8');
  for (const [, name, body] of text.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm)) structs.set(name, parseStruct(body));
  for (const [, name, to] of text.matchAll(/^type (\w+) (?!struct|interface)(\S+)$/gm)) aliases.set(name, to);
  return { structs, aliases };
}

function parseStruct(body) {
  const members = [];
  let comments = [];
  for (const line of body.split('\n').map((text) => text.trim())) {
    if (line.startsWith('//')) {
      comments.push(line.slice(2).trim());
      continue;
    }
    const member = /^(?:(\w+)\s+)?(\*?)([\w.[\]*]+)\s+`json:"([^"]*)"/.exec(line);
    if (member) members.push(describeMember(member, comments));
    comments = [];
  }
  return members;
}

function describeMember([, name, star, type, tag], comments) {
  const [json, ...options] = tag.split(',');
  return {
    embedded: name === undefined,
    json,
    type,
    pointer: star === '*',
    omitempty: options.includes('omitempty'),
    documentedDefault:
      comments
        .findLast((text) => text.startsWith('Default:'))
        ?.slice('Default:'.length)
        .trim() ?? null,
  };
}
