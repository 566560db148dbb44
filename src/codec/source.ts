import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseAllDocuments,
  type Scalar,
  visit,
  type YAMLMap,
} from 'yaml';
import type { Position, Problem } from '../base/errors.ts';
import type { Json } from '../base/json.ts';
import { explainYamlError } from './yaml-errors.ts';
import { resolvePlainScalar, type YamlScalar } from './yaml-scalar.ts';

/** A node of a YAML or JSON text with its position, so that every problem has a line number. */
export type SourceNode = SourceScalar | SourceList | SourceMap;
export interface SourceScalar {
  readonly kind: 'scalar';
  readonly scalar: YamlScalar;
  /** As written, without quotes. */
  readonly text: string;
  readonly offset: number;
}
export interface SourceList {
  readonly kind: 'list';
  readonly items: readonly SourceNode[];
  readonly offset: number;
}
export interface SourceMap {
  readonly kind: 'map';
  /** In order. A duplicate key occurs twice; the last entry is effective. */
  readonly entries: readonly SourceEntry[];
  readonly offset: number;
}
export interface SourceEntry {
  readonly key: string;
  readonly keyOffset: number;
  readonly value: SourceNode;
}

/** One document of a file. `root` is null when it is empty. */
export interface SourceDocument {
  readonly file: string;
  /** 0-based index in the file, including empty documents. */
  readonly index: number;
  readonly root: SourceNode | null;
  /** The document was created from a value (`documentOfValue`): `positionAt` only defines an order. */
  readonly isValue?: true;
  /** Unknown and duplicate fields are warnings. */
  readonly isLenient?: boolean;
  positionAt(offset: number): Position;
}

export interface Source {
  readonly documents: readonly SourceDocument[];
  readonly problems: readonly Problem[];
}

/** Limits of a text, so that parsing takes bounded time and memory. */
export interface SourceLimits {
  readonly characters: number;
  readonly nodes: number;
  readonly hint: string;
}

/** Limits of a configuration file: several times the size of the largest KubeletConfiguration. */
export const CONFIG_LIMITS: SourceLimits = {
  characters: 64 * 1024,
  nodes: 20_000,
  hint: 'Check that this is the right file: a configuration of kubeadm or of a kubelet has a few kilobytes',
};
const MAX_DEPTH = 200;

/**
 * Parses YAML or JSON text as Kubernetes components do, with positions. Size, depth and the number of nodes
 * after alias expansion are limited. A byte order mark and CRLF are accepted.
 * @param file the name used in positions (`-` for standard input)
 * @returns the documents; if `problems` is not empty they may be incomplete. Codes: CONFIG_TOO_LARGE,
 *   CONFIG_NOT_TEXT, CONFIG_SYNTAX
 */
export function parseSource(text: string, file: string, limits: SourceLimits = CONFIG_LIMITS): Source {
  const refusal = (message: string): Source => refuse(message, file, limits);
  const refused = refuseText(text, file, limits);
  if (refused !== null) return { documents: [], problems: [refused] };
  if (nestingTooDeep(text)) return refusal(TOO_DEEP);
  if ((text.match(/^%/gm)?.length ?? 0) > MAX_DIRECTIVES) return refusal(`the file has more than ${MAX_DIRECTIVES} YAML directives (%)`);
  try {
    return readDocuments(text, file, limits.nodes);
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof LimitError)) throw error;
    return refusal(error instanceof LimitError ? error.message : TOO_DEEP);
  }
}

/** A directive takes as much time as a hundred other lines; files have at most one. */
const MAX_DIRECTIVES = 100;
const TOO_DEEP = `the document is nested deeper than ${MAX_DEPTH} levels`;

/** Invalid in YAML (YAML 1.1, 5.1 Character Set), and the replacement character of bytes that are not UTF-8. */
const NOT_TEXT = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd-\uffff]/;

function whyNotText(char: string): string {
  if (char === '\0') return 'the file contains a NUL byte: binary or UTF-16';
  return char === '\ufffd'
    ? 'the file is not valid UTF-8'
    : `the file contains a control character (0x${char.charCodeAt(0).toString(16).padStart(2, '0')})`;
}

function refuseText(text: string, file: string, limits: SourceLimits): Problem | null {
  const position = { file, line: 1, column: 1 };
  if (text.length > limits.characters) {
    const message = `the file has ${text.length} characters; the limit is ${limits.characters}`;
    return { code: 'CONFIG_TOO_LARGE', message, hint: limits.hint, position };
  }
  const bad = NOT_TEXT.exec(text);
  if (!bad) return null;
  const before = text.slice(0, bad.index).split('\n');
  const place = { file, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
  return { code: 'CONFIG_NOT_TEXT', message: whyNotText(bad[0]), hint: 'Save the file as UTF-8', position: place };
}

function refuse(message: string, file: string, { hint }: SourceLimits): Source {
  const problem: Problem = { code: 'CONFIG_TOO_LARGE', message, hint, position: { file, line: 1, column: 1 } };
  return { documents: [], problems: [problem] };
}

function readDocuments(text: string, file: string, maxNodes: number): Source {
  const lineCounter = new LineCounter();
  const positionAt = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(offset);
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const parsed = parseAllDocuments(text, {
    lineCounter,
    schema: 'failsafe',
    version: '1.1',
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
    stringKeys: false,
  });
  const problems: Problem[] = [];
  const documents: SourceDocument[] = [];
  for (const [index, document] of (Array.isArray(parsed) ? parsed : []).entries()) {
    if (document.errors.some(({ message }) => /call stack/.test(message))) throw new LimitError(TOO_DEEP);
    const error = document.errors[0];
    if (error !== undefined) {
      // Only the first error is reported; the parser's later errors usually follow from it.
      const { message, offset } = explainYamlError(text, { message: error.message, offset: error.pos[0] });
      problems.push({ code: 'CONFIG_SYNTAX', message: `not valid YAML: ${message}`, position: positionAt(offset) });
      continue;
    }
    const reader = new TreeReader(document, problems, positionAt, maxNodes);
    documents.push({ file, index, root: isEmpty(document.contents) ? null : reader.read(document.contents), positionAt });
  }
  const tab = problems.length === 0 && Array.isArray(parsed) ? misplacedTab(text, parsed) : null;
  const message = 'not valid YAML: a line must not begin with a tab';
  if (tab !== null) problems.push({ code: 'CONFIG_SYNTAX', message, hint: 'Use spaces', position: positionAt(tab) });
  return { documents, problems };
}

/**
 * A line without content that begins with a tab, outside of quotes and flow collections: the parser of
 * Kubernetes rejects it, the yaml library treats it as an empty line.
 */
function misplacedTab(text: string, documents: readonly Document[]): number | null {
  if (!text.includes('\t')) return null;
  const lines = [...text.matchAll(/^\t[ \t]*(?:#.*)?\r?$/gm)].map(({ index }) => index);
  if (lines.length === 0) return null;
  const tabIndents = tabIndentRanges(documents);
  let [next, end] = [0, 0];
  for (const line of lines) {
    for (; next < tabIndents.length && (tabIndents[next]?.[0] ?? 0) < line; next++) end = Math.max(end, tabIndents[next]?.[1] ?? 0);
    if (line >= end) return line;
  }
  return null;
}

/** Ranges in which a line may begin with a tab: quoted scalars and flow collections, sorted by start. */
function tabIndentRanges(documents: readonly Document[]): readonly (readonly [number, number])[] {
  const tabIndents: [number, number][] = [];
  const add = (node: Node): void => {
    if (node.range) tabIndents.push([node.range[0], node.range[1]]);
  };
  for (const document of documents) {
    visit(document, {
      Scalar: (_, node) => (node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE' ? add(node) : undefined),
      Collection: (_, node) => (node.flow === true ? add(node) : undefined),
    });
  }
  return tabIndents.sort((a, b) => a[0] - b[0]);
}

/** Before the recursive parser runs: brackets of flow collections and nested dashes of block ones. */
function nestingTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH * 4) return true;
    } else if (code === 0x5d || code === 0x7d) depth = Math.max(0, depth - 1);
  }
  return TOO_MANY_DASHES.test(text);
}

/** Each dash takes exactly one space: two parts that match the same space would cause exponential backtracking. */
const TOO_MANY_DASHES = new RegExp(`^(?: *- ){${MAX_DEPTH},}|^(?: *\\? ){${MAX_DEPTH},}`, 'm');

function isEmpty(node: unknown): boolean {
  return node === null || (isScalar(node) && node.type === 'PLAIN' && (node.source ?? '') === '');
}

/** Maximum number of problems of one file; more are usually repetitions of one mistake. */
const MAX_PROBLEMS = 50;

class LimitError extends Error {}

class TreeReader {
  readonly #document: Document;
  readonly #problems: Problem[];
  readonly #positionAt: (offset: number) => Position;
  readonly #maxNodes: number;
  #nodes = 0;
  #targets: ReadonlyMap<Alias, Node> | null = null;

  constructor(document: Document, problems: Problem[], positionAt: (offset: number) => Position, maxNodes: number) {
    this.#document = document;
    this.#problems = problems;
    this.#positionAt = positionAt;
    this.#maxNodes = maxNodes;
  }

  read(node: unknown, depth = 0): SourceNode {
    if (++this.#nodes > this.#maxNodes) throw new LimitError(`the document has more than ${this.#maxNodes} values after alias expansion`);
    if (depth > MAX_DEPTH) throw new LimitError(TOO_DEEP);
    if (isAlias(node)) return this.#readAlias(node, depth);
    if (isMap(node)) return { kind: 'map', entries: this.#readEntries(node, depth), offset: offsetOf(node) };
    if (isSeq(node)) return { kind: 'list', items: node.items.map((item) => this.read(item, depth + 1)), offset: offsetOf(node) };
    if (isScalar(node)) return this.#readScalar(node, offsetOf(node));
    return emptyAt(0);
  }

  #readAlias(alias: Alias, depth: number): SourceNode {
    const target = this.#target(alias);
    if (target === undefined) {
      this.#problem(`unresolved alias *${alias.source}`, offsetOf(alias));
      return emptyAt(offsetOf(alias));
    }
    return this.read(target, depth + 1);
  }

  /** The last preceding node with the anchor. All aliases are resolved together: a document may contain many. */
  #target(alias: Alias): Node | undefined {
    if (this.#targets === null) {
      const [targets, anchors] = [new Map<Alias, Node>(), new Map<string, Node>()];
      visit(this.#document, {
        Alias: (_, node) => {
          const target = anchors.get(node.source);
          if (target !== undefined) targets.set(node, target);
        },
        Value: (_, node) => {
          if (node.anchor !== undefined) anchors.set(node.anchor, node);
        },
      });
      this.#targets = targets;
    }
    return this.#targets.get(alias);
  }

  #readEntries(map: YAMLMap, depth: number): readonly SourceEntry[] {
    const entries: SourceEntry[] = [];
    let merged: MergedEntries | null = null;
    for (const pair of map.items as Pair[]) {
      const key = this.#readKey(pair, map);
      if (key === null) continue;
      const value: SourceNode = pair.value === null ? emptyAt(key.keyOffset) : this.read(pair.value, depth + 1);
      if (key.merge) {
        merged ??= new MergedEntries(entries);
        for (const entry of this.#mergeEntries(value)) merged.put(entry, true);
      } else {
        const entry = { key: key.key, keyOffset: key.keyOffset, value };
        if (merged === null) entries.push(entry);
        else merged.put(entry, false);
      }
    }
    return merged === null ? entries : merged.inOrder();
  }

  #readKey(pair: Pair, map: YAMLMap): { key: string; keyOffset: number; merge: boolean } | null {
    const node = isAlias(pair.key) ? this.#target(pair.key) : pair.key;
    const keyOffset = offsetOf(pair.key as Node | null) || offsetOf(map);
    if (!isScalar(node)) {
      this.#problem('a mapping key must be a string', keyOffset);
      return null;
    }
    const { scalar, text } = this.#readScalar(node, keyOffset);
    if (scalar.type === 'null') {
      this.#problem('a mapping key must be a string, not null', keyOffset);
      return null;
    }
    return { key: String(scalar.value), keyOffset, merge: text === '<<' && node.type === 'PLAIN' };
  }

  #mergeEntries(value: SourceNode): readonly SourceEntry[] {
    if (value.kind === 'map') return value.entries;
    // The first of several mappings that has a key wins.
    if (value.kind === 'list' && value.items.every((item) => item.kind === 'map'))
      return value.items.toReversed().flatMap((item) => item.entries);
    this.#problem('a merge key (<<) requires a mapping or a list of mappings', value.offset);
    return [];
  }

  #readScalar(node: Scalar, offset: number): SourceScalar {
    const text = node.source ?? String(node.value ?? '');
    const plain = node.type === 'PLAIN' ? resolvePlainScalar(text) : ({ type: 'string', value: text } as const);
    const scalar = node.tag === undefined ? plain : resolveTagged(text, node.tag);
    if (scalar === null) this.#problem(`"${text}" cannot be read as !!${node.tag?.slice(YAML_TAG.length)}`, offset);
    else if (scalar.type === 'float' && !Number.isFinite(scalar.value)) this.#problem(`JSON has no number ${text}`, offset);
    return { kind: 'scalar', scalar: scalar ?? { type: 'string', value: text }, text, offset };
  }

  #problem(message: string, offset: number): void {
    if (this.#problems.length >= MAX_PROBLEMS) return;
    this.#problems.push({ code: 'CONFIG_SYNTAX', message: `not valid YAML: ${message}`, position: this.#positionAt(offset) });
  }
}

/** The entries of a mapping with merge keys: entries merged with `<<` replace preceding keys and are replaced by following keys. */
class MergedEntries {
  readonly #entries = new Set<{ readonly entry: SourceEntry; readonly merged: boolean }>();
  /** For merge keys only: these replace and are replaced, while a duplicate key is kept. */
  readonly #byKey = new Map<string, { readonly entry: SourceEntry; readonly merged: boolean }>();

  constructor(preceding: readonly SourceEntry[]) {
    for (const entry of preceding) this.put(entry, false);
  }

  put(entry: SourceEntry, merged: boolean): void {
    const same = this.#byKey.get(entry.key);
    if (same !== undefined && (merged || same.merged)) this.#entries.delete(same);
    const added = { entry, merged };
    this.#entries.add(added);
    this.#byKey.set(entry.key, added);
  }

  inOrder(): readonly SourceEntry[] {
    return [...this.#entries].map(({ entry }) => entry);
  }
}

function emptyAt(offset: number): SourceScalar {
  return { kind: 'scalar', scalar: { type: 'null', value: null }, text: '', offset };
}

/** Tags of YAML itself; user-defined tags keep the text as a string. */
const YAML_TAG = 'tag:yaml.org,2002:';

function resolveTagged(text: string, tag: string): YamlScalar | null {
  const kind = tag.startsWith(YAML_TAG) ? tag.slice(YAML_TAG.length) : 'str';
  if (kind === 'str') return { type: 'string', value: text };
  const scalar = resolvePlainScalar(text);
  if (kind === 'float' && scalar.type === 'int') return { type: 'float', value: Number(scalar.value) };
  return scalar.type === kind ? scalar : null;
}

function offsetOf(node: Node | null | undefined): number {
  return node?.range?.[0] ?? 0;
}

/** The last of duplicate keys is effective. Integers beyond 2^53 lose precision. */
export function sourceToJson(node: SourceNode): Json {
  return toJson(node, Number);
}

/** With integers beyond ±(2^53 - 1) as decimal text, as in a decoded KubeletConfiguration. */
export function sourceToExactJson(node: SourceNode): Json {
  return toJson(node, (integer) => (Number.isSafeInteger(Number(integer)) ? Number(integer) : String(integer)));
}

function toJson(node: SourceNode, integerToJson: (integer: bigint) => Json): Json {
  switch (node.kind) {
    case 'scalar':
      return typeof node.scalar.value === 'bigint' ? integerToJson(node.scalar.value) : node.scalar.value;
    case 'list':
      return node.items.map((item) => toJson(item, integerToJson));
    case 'map':
      return Object.fromEntries(node.entries.map((entry) => [entry.key, toJson(entry.value, integerToJson)]));
  }
}

/** The effective entry of a key: the last one. */
export function entryOf(node: SourceNode | null, key: string): SourceEntry | undefined {
  return node?.kind === 'map' ? node.entries.findLast((entry) => entry.key === key) : undefined;
}
