import type { Position, Problem } from '../base/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../base/json.ts';
import { readScalar, type ScalarToken, zeroScalar } from './scalar.ts';
import type { SourceDocument, SourceEntry, SourceList, SourceMap, SourceNode, SourceScalar } from './source.ts';
import type { FieldNode, ListNode, MapNode, ObjectNode, ScalarNode, TypeNode } from './type-node.ts';
import { duplicateTypedField, type FieldLocation, missingTypedHeader, wrongKind, wrongScalar, wrongShape } from './typed-problems.ts';

/** Creates the problems of unknown fields of one document. */
export interface UnknownFieldReporter {
  /** @param parent the containing type, with its path in the catalogue. @param name the key as written */
  report(place: FieldLocation, parent: { readonly type: ObjectNode; readonly path: string }, name: string): Problem;
}

interface TypedDecodeOptions {
  /** The type of the document, including its header. */
  readonly type: ObjectNode;
  readonly header: { readonly apiVersion: string; readonly kind: string };
  readonly unknown: UnknownFieldReporter;
  readonly lenient?: boolean;
  /** JSON has fewer number formats and merges duplicate objects. Default `yaml`. */
  readonly syntax?: 'yaml' | 'json';
  /** Fields that may contain credentials: their values never appear in a message. */
  readonly confidential?: readonly string[];
}

export interface DecodedDocument {
  /** Only the given fields, with normalised values (`readScalar`), without nulls. Objects have no prototype. */
  readonly value: JsonObject;
  /**
   * By path, such as `authentication.x509`, `registerWithTaints[0].key`, `evictionHard[memory.available]`:
   * the position of the key, for list items that of the item.
   */
  readonly fields: ReadonlyMap<string, Position>;
  readonly problems: readonly Problem[];
}

/**
 * Decodes a document of one kind as Go's strict decoder does: it accepts and rejects the same input, but
 * reports all problems at once. Fields with problems are not in `value`.
 *
 * Codes: CONFIG_MISSING_HEADER, CONFIG_WRONG_KIND (no further checks), CONFIG_UNKNOWN_FIELD,
 * CONFIG_DUPLICATE_FIELD, CONFIG_WRONG_TYPE, CONFIG_OUT_OF_RANGE, CONFIG_INVALID_DURATION,
 * CONFIG_INVALID_QUANTITY, CONFIG_INVALID_TIMESTAMP.
 * @see sigs.k8s.io/yaml, sigs.k8s.io/json
 */
export function decodeTyped(document: SourceDocument, options: TypedDecodeOptions): DecodedDocument {
  const decoder = new Decoder(document, options);
  const value = decoder.decode();
  return { value, fields: decoder.fields, problems: decoder.sortedProblems() };
}

type Draft = { [key: string]: Json };

/** A node to read: its path in the document, and the path in the catalogue (`reservedMemory[].limits`). */
interface Site<N extends SourceNode = SourceNode> {
  readonly node: N;
  readonly path: string;
  readonly pattern: string;
}

/** A class, because the problems of a document are collected while its tree is traversed. */
class Decoder {
  readonly fields = new Map<string, Position>();
  readonly #document: SourceDocument;
  readonly #options: TypedDecodeOptions;
  readonly #problems: { readonly offset: number; readonly problem: Problem }[] = [];

  constructor(document: SourceDocument, options: TypedDecodeOptions) {
    this.#document = document;
    this.#options = options;
  }

  decode(): JsonObject {
    const { root } = this.#document;
    const value = emptyDraft();
    if (root === null || isNull(root)) this.#missingHeader(root?.offset ?? 0, ['apiVersion', 'kind']);
    else if (root.kind !== 'map') this.#wrongShape({ node: root, path: '', pattern: '' }, 'an object');
    else if (this.#checkHeader(root)) this.#readMembers({ node: root, path: '', pattern: '' }, this.#options.type, value);
    return value;
  }

  sortedProblems(): readonly Problem[] {
    return this.#problems.sort((a, b) => a.offset - b.offset).map(({ problem }) => problem);
  }

  /** A document with a missing header is checked further. */
  #checkHeader(root: SourceMap): boolean {
    let ours = true;
    const missing: ('apiVersion' | 'kind')[] = [];
    for (const member of ['apiVersion', 'kind'] as const) {
      const candidates = headerEntries(root, member, this.#options.syntax === 'json');
      for (const { key, value } of candidates) {
        // The exact name is decoded with the other fields; another letter case must be a string too.
        if (key !== member && !isNull(value) && textOf(value) === undefined)
          this.#wrongShape({ node: value, path: key, pattern: '' }, 'a string');
      }
      const chosen = candidates.findLast(({ value }) => !isNull(value));
      const text = textOf(chosen?.value);
      if (chosen === undefined || text === '') missing.push(member);
      else if (text !== undefined && text !== this.#options.header[member]) {
        this.#add(chosen.value.offset, wrongKind(member, text, this.#options.header[member], this.#at(chosen.value.offset)));
        ours = false;
      }
    }
    this.#missingHeader(root.offset, missing);
    return ours;
  }

  #missingHeader(offset: number, members: readonly ('apiVersion' | 'kind')[]): void {
    for (const member of members) this.#add(offset, missingTypedHeader(member, this.#options.header[member], this.#at(offset)));
  }

  /** Reads a value that is not null; undefined when it is rejected. */
  #read(type: TypeNode, site: Site, earlier?: Json): Json | undefined {
    const { node } = site;
    switch (type.kind) {
      case 'object':
        if (node.kind !== 'map') return this.#wrongShape(site, 'an object');
        return this.#readMembers({ ...site, node }, type, draftOf(earlier));
      case 'map':
        if (node.kind !== 'map') return this.#wrongShape(site, 'an object');
        return this.#readMap({ ...site, node }, type, draftOf(earlier));
      case 'list':
        if (node.kind !== 'list')
          return this.#wrongShape(site, 'a list', node.kind === 'scalar' ? 'Use brackets, or a dash before each item' : undefined);
        return this.#readList({ ...site, node }, type, Array.isArray(earlier) ? earlier : []);
      default:
        if (node.kind !== 'scalar') return this.#wrongShape(site, EXPECTED[type.kind]);
        return this.#readScalar({ ...site, node }, type);
    }
  }

  #readMembers({ node, path: parent, pattern }: Site<SourceMap>, type: ObjectNode, value: Draft): Draft {
    for (const entry of this.#effectiveEntries(node, (name) => dotted(parent, name))) {
      const field = type.fields.get(entry.key);
      if (field) this.#readField(field, { node: entry.value, path: dotted(parent, entry.key), pattern: field.path }, { entry, value });
      else this.#reportUnknown(entry, { path: dotted(parent, entry.key), type, pattern });
    }
    return value;
  }

  #readField(field: FieldNode, site: Site, { entry, value }: { readonly entry: SourceEntry; readonly value: Draft }): void {
    if (isNull(site.node) && (field.pointer || field.type.kind !== 'duration')) {
      // Relevant only for JSON, where an earlier value of the same name is kept: null resets pointers, lists
      // and maps only.
      if (field.pointer || field.type.kind === 'list' || field.type.kind === 'map') delete value[field.name];
      return;
    }
    const read = this.#read(field.type, site, value[field.name]);
    if (read === undefined) return;
    value[field.name] = read;
    this.fields.set(site.path, this.#at(entry.keyOffset));
  }

  #readMap({ node, path: parent, pattern }: Site<SourceMap>, type: MapNode, value: Draft): Draft {
    for (const entry of this.#effectiveEntries(node, (name) => `${parent}[${name}]`)) {
      const path = `${parent}[${entry.key}]`;
      const read = isNull(entry.value) ? zeroOf(type.values) : this.#read(type.values, { node: entry.value, path, pattern });
      if (read === undefined) continue;
      value[entry.key] = read;
      this.fields.set(path, this.#at(entry.keyOffset));
    }
    return value;
  }

  /** @param earlier the value of a duplicate field in JSON, into which Go decodes item by item */
  #readList({ node, path: parent, pattern }: Site<SourceList>, type: ListNode, earlier: readonly Json[]): Json[] {
    const items: Json[] = [];
    for (const [index, item] of node.items.entries()) {
      const path = `${parent}[${index}]`;
      const before = earlier[index];
      const read = isNull(item)
        ? (before ?? zeroOf(type.items))
        : this.#read(type.items, { node: item, path, pattern: `${pattern}[]` }, before);
      if (read === undefined) continue;
      items.push(read);
      this.fields.set(path, this.#at(item.offset));
    }
    return items;
  }

  #readScalar(site: Site<SourceScalar>, type: ScalarNode): Json | undefined {
    const { node, path, pattern } = site;
    const result = readScalar(type, tokenOf(node, this.#options.syntax === 'json'));
    if ('value' in result) return result.value;
    const fault = this.#options.confidential?.some((path) => pattern.startsWith(path))
      ? { ...result.fault, message: `must be ${EXPECTED[type.kind]}`, hint: 'Quote the value' }
      : result.fault;
    this.#add(node.offset, wrongScalar(this.#place(path, node.offset), fault));
    return undefined;
  }

  /**
   * The effective entries of an object, in order. Converting YAML to JSON keeps the last entry of each name;
   * in a JSON file all entries are decoded: objects are merged, other values replaced.
   */
  #effectiveEntries(map: SourceMap, pathOf: (name: string) => string): readonly SourceEntry[] {
    const first = new Map<string, SourceEntry>();
    for (const entry of map.entries) {
      const known = first.get(entry.key);
      if (known === undefined) first.set(entry.key, entry);
      else this.#reportDuplicate(pathOf(entry.key), entry, known);
    }
    if (this.#options.syntax === 'json' || first.size === map.entries.length) return map.entries;
    return [...new Map(map.entries.map((entry) => [entry.key, entry])).values()];
  }

  #reportDuplicate(path: string, entry: SourceEntry, first: SourceEntry): void {
    const line = this.#at(first.keyOffset).line;
    this.#add(
      entry.keyOffset,
      duplicateTypedField(this.#place(path, entry.keyOffset), this.#options.lenient ?? this.#document.isLenient ?? false, line),
    );
  }

  #reportUnknown(entry: SourceEntry, at: { readonly path: string; readonly pattern: string; readonly type: ObjectNode }): void {
    const parent = { type: at.type, path: at.pattern };
    const problem = this.#options.unknown.report(this.#place(at.path, entry.keyOffset), parent, entry.key);
    this.#add(entry.keyOffset, this.#document.isLenient ? { ...problem, severity: 'warning' } : problem);
  }

  #wrongShape({ node, path }: Site, expected: string, hint?: string): undefined {
    this.#add(node.offset, wrongShape(this.#place(path, node.offset), { expected, found: SHAPES[node.kind], hint }));
    return undefined;
  }

  #add(offset: number, problem: Problem): void {
    this.#problems.push({ offset, problem });
  }

  #place(path: string, offset: number): FieldLocation {
    return { path, position: this.#at(offset) };
  }

  #at(offset: number): Position {
    return this.#document.positionAt(offset);
  }
}

const EXPECTED = {
  string: 'a string',
  bool: 'true or false',
  int32: 'an integer',
  int64: 'an integer',
  uint32: 'an integer',
  float: 'a number',
  duration: 'a duration',
  durationOrNanoseconds: 'a duration',
  quantity: 'a quantity',
  intOrString: 'an integer or a string',
  timestamp: 'a timestamp',
} as const satisfies { readonly [K in ScalarNode['kind']]: string };

const SHAPES = { scalar: 'a single value', list: 'a list', map: 'an object' } as const satisfies {
  readonly [K in SourceNode['kind']]: string;
};

/**
 * The entries that may contain the header, the effective one last: for the header alone Go's JSON library
 * ignores letter case. Keys converted from YAML are sorted and unique at this point.
 */
function headerEntries(root: SourceMap, member: 'apiVersion' | 'kind', json: boolean): readonly SourceEntry[] {
  const entries = root.entries.filter(({ key }) => key.length === member.length && key.toLowerCase() === member.toLowerCase());
  if (json || entries.length < 2) return entries;
  const last = new Map(entries.map((entry) => [entry.key, entry]));
  return [...last.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
}

function tokenOf({ scalar, text }: SourceScalar, json: boolean): ScalarToken {
  switch (scalar.type) {
    case 'null':
      return { kind: 'null' };
    case 'bool':
      return { kind: 'bool', value: scalar.value };
    case 'int':
      return { kind: 'number', text: json ? text : String(scalar.value) };
    case 'float':
      return { kind: 'number', text: json ? text : Object.is(scalar.value, -0) ? '-0' : String(scalar.value) };
    default:
      return { kind: 'string', value: scalar.value };
  }
}

function isNull(node: SourceNode): boolean {
  return node.kind === 'scalar' && node.scalar.type === 'null';
}

function textOf(node: SourceNode | undefined): string | undefined {
  if (node?.kind !== 'scalar') return undefined;
  return node.scalar.type === 'string' || node.scalar.type === 'timestamp' ? node.scalar.value : undefined;
}

function zeroOf(type: TypeNode): Json {
  if (type.kind === 'object') return emptyDraft();
  return type.kind === 'list' || type.kind === 'map' ? null : zeroScalar(type);
}

function draftOf(earlier: Json | undefined): Draft {
  return isJsonObject(earlier) ? (earlier as Draft) : emptyDraft();
}

function emptyDraft(): Draft {
  return Object.create(null) as Draft;
}

function dotted(parent: string, name: string): string {
  return parent === '' ? name : `${parent}.${name}`;
}
