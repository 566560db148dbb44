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
  type YAMLMap,
} from 'yaml';
import type { Position, Problem } from '../errors.ts';
import type { Json } from '../json.ts';
import { resolvePlainScalar, type YamlScalar } from '../text/yaml-scalar.ts';

/** A node of a YAML or JSON text with the place it came from: what decoders read, so that each finding has its line. */
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
  /** In the order written. A key given twice is there twice: the last one counts. */
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
  /** 0-based place in the file, empty documents counted. */
  readonly index: number;
  readonly root: SourceNode | null;
  positionAt(offset: number): Position;
}

export interface Source {
  readonly documents: readonly SourceDocument[];
  readonly problems: readonly Problem[];
}

/** Objects above this can be stored by no API server. */
const MAX_BYTES = 1024 * 1024;
const MAX_NODES = 200_000;
const MAX_DEPTH = 200;

/**
 * Reads YAML or JSON text the way Kubernetes components do, keeping places. Time and memory are bounded: size, depth and the number of nodes
 * after aliases are limited.
 * @param text the file's text; a byte order mark and CRLF are accepted
 * @param file the name used in positions (`-` for standard input)
 * @returns the documents; when `problems` is not empty they may be incomplete. Codes: CONFIG_TOO_LARGE, CONFIG_NOT_TEXT, CONFIG_SYNTAX
 */
export function parseSource(text: string, file: string): Source {
  const refused = refuseText(text, file);
  if (refused) return { documents: [], problems: [refused] };
  const lineCounter = new LineCounter();
  const positionAt = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(offset);
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  try {
    return readDocuments(text, file, lineCounter, positionAt);
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof LimitError)) throw error;
    const message = error instanceof LimitError ? error.message : `the document is nested deeper than ${MAX_DEPTH} levels`;
    return { documents: [], problems: [{ code: 'CONFIG_TOO_LARGE', message, position: { file, line: 1, column: 1 } }] };
  }
}

/** What no YAML file may hold (YAML 1.1, 5.1 Character Set), and what decoding puts in place of bytes that are not UTF-8. */
const NOT_TEXT = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd-\uffff]/;

function whyNotText(char: string): string {
  if (char === '\0') return 'the file holds a NUL byte: it is binary or UTF-16';
  return char === '\ufffd'
    ? 'the file is not valid UTF-8'
    : `the file holds a control character (0x${char.charCodeAt(0).toString(16).padStart(2, '0')})`;
}

function refuseText(text: string, file: string): Problem | null {
  const position = { file, line: 1, column: 1 };
  if (text.length > MAX_BYTES) {
    const mend = 'A KubeletConfiguration has a few kilobytes: check that this is the right file';
    return { code: 'CONFIG_TOO_LARGE', message: `the file has ${text.length} characters, more than ${MAX_BYTES}`, mend, position };
  }
  const bad = NOT_TEXT.exec(text);
  if (!bad) return null;
  const before = text.slice(0, bad.index).split('\n');
  const mend = 'Save it as UTF-8';
  return {
    code: 'CONFIG_NOT_TEXT',
    message: whyNotText(bad[0]),
    mend,
    position: { file, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 },
  };
}

function readDocuments(text: string, file: string, lineCounter: LineCounter, positionAt: (offset: number) => Position): Source {
  if (nestingTooDeep(text)) throw new LimitError(`the document is nested deeper than ${MAX_DEPTH} levels`);
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
    for (const error of document.errors) {
      if (/call stack/.test(error.message)) throw new LimitError(`the document is nested deeper than ${MAX_DEPTH} levels`);
      problems.push({ code: 'CONFIG_SYNTAX', message: syntaxMessage(error.message), position: positionAt(error.pos[0]) });
    }
    if (document.errors.length > 0) continue;
    const reader = new TreeReader(document, problems, positionAt);
    documents.push({ file, index, root: isEmpty(document.contents) ? null : reader.read(document.contents), positionAt });
  }
  return { documents, problems };
}

/** A cheap look before the recursive parser: brackets of flow collections and leading blanks of block ones. */
function nestingTooDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x5b || code === 0x7b) {
      if (++depth > MAX_DEPTH * 4) return true;
    } else if (code === 0x5d || code === 0x7d) depth = Math.max(0, depth - 1);
  }
  return new RegExp(`^(?:[ ]*- ?){${MAX_DEPTH},}|^(?:\\? ){${MAX_DEPTH},}`, 'm').test(text);
}

function isEmpty(node: unknown): boolean {
  return node === null || (isScalar(node) && node.type === 'PLAIN' && (node.source ?? '') === '');
}

function syntaxMessage(message: string): string {
  const first = message.split('\n')[0] ?? message;
  return `not valid YAML: ${first.charAt(0).toLowerCase()}${first.slice(1)}`.replace(/\.$/, '');
}

class LimitError extends Error {}

class TreeReader {
  readonly #document: Document;
  readonly #problems: Problem[];
  readonly #positionAt: (offset: number) => Position;
  #nodes = 0;

  constructor(document: Document, problems: Problem[], positionAt: (offset: number) => Position) {
    this.#document = document;
    this.#problems = problems;
    this.#positionAt = positionAt;
  }

  read(node: unknown, depth = 0): SourceNode {
    if (++this.#nodes > MAX_NODES) throw new LimitError(`the document has more than ${MAX_NODES} values once its aliases are followed`);
    if (depth > MAX_DEPTH) throw new LimitError(`the document is nested deeper than ${MAX_DEPTH} levels`);
    if (isAlias(node)) return this.#readAlias(node, depth);
    if (isMap(node)) return { kind: 'map', entries: this.#readEntries(node, depth), offset: offsetOf(node) };
    if (isSeq(node)) return { kind: 'list', items: node.items.map((item) => this.read(item, depth + 1)), offset: offsetOf(node) };
    if (isScalar(node)) return this.#readScalar(node, offsetOf(node));
    return { kind: 'scalar', scalar: { type: 'null', value: null }, text: '', offset: 0 };
  }

  #readAlias(alias: Alias, depth: number): SourceNode {
    const target = alias.resolve(this.#document);
    if (target === undefined) {
      this.#problem(`unresolved alias *${alias.source}`, offsetOf(alias));
      return { kind: 'scalar', scalar: { type: 'null', value: null }, text: '', offset: offsetOf(alias) };
    }
    return this.read(target, depth + 1);
  }

  /** In order: what is merged in with `<<` takes the place of keys before it and is replaced by those after it. */
  #readEntries(map: YAMLMap, depth: number): SourceEntry[] {
    // By key where a merge key is concerned: those replace and are replaced, while a key written twice stays twice.
    const entries = new Set<{ readonly entry: SourceEntry; readonly merged: boolean }>();
    const byKey = new Map<string, { readonly entry: SourceEntry; readonly merged: boolean }>();
    const put = (entry: SourceEntry, merged: boolean): void => {
      const same = byKey.get(entry.key);
      if (same !== undefined && (merged || same.merged)) entries.delete(same);
      const added = { entry, merged };
      entries.add(added);
      byKey.set(entry.key, added);
    };
    for (const pair of map.items as Pair[]) {
      const key = this.#readKey(pair, map);
      if (key === null) continue;
      const value: SourceNode = pair.value === null ? emptyAt(key.keyOffset) : this.read(pair.value, depth + 1);
      if (key.merge) for (const entry of this.#mergeEntries(value)) put(entry, true);
      else put({ key: key.key, keyOffset: key.keyOffset, value }, false);
    }
    return [...entries].map(({ entry }) => entry);
  }

  #readKey(pair: Pair, map: YAMLMap): { key: string; keyOffset: number; merge: boolean } | null {
    const node = isAlias(pair.key) ? pair.key.resolve(this.#document) : pair.key;
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
    return { key: keyText(scalar), keyOffset, merge: text === '<<' && node.type === 'PLAIN' };
  }

  #mergeEntries(value: SourceNode): readonly SourceEntry[] {
    if (value.kind === 'map') return value.entries;
    // Of several mappings the first that has a key wins.
    if (value.kind === 'list' && value.items.every((item) => item.kind === 'map'))
      return value.items.toReversed().flatMap((item) => item.entries);
    this.#problem('a merge key (<<) needs a mapping, or a list of mappings', value.offset);
    return [];
  }

  #readScalar(node: Scalar, offset: number): SourceScalar {
    const text = node.source ?? String(node.value ?? '');
    const plain = node.type === 'PLAIN' ? resolvePlainScalar(text) : ({ type: 'string', value: text } as const);
    const scalar = node.tag === undefined ? plain : resolveTagged(text, node.tag);
    if (scalar === null) this.#problem(`"${text}" cannot be read as !!${node.tag?.slice(YAML_TAG.length)}`, offset);
    else if (scalar.type === 'float' && !Number.isFinite(scalar.value)) this.#problem(`${text} is not a number JSON has`, offset);
    return { kind: 'scalar', scalar: scalar ?? { type: 'string', value: text }, text, offset };
  }

  #problem(message: string, offset: number): void {
    this.#problems.push({ code: 'CONFIG_SYNTAX', message: `not valid YAML: ${message}`, position: this.#positionAt(offset) });
  }
}

function emptyAt(offset: number): SourceScalar {
  return { kind: 'scalar', scalar: { type: 'null', value: null }, text: '', offset };
}

/** Tags of YAML itself; others are the user's own and leave text as it is. */
const YAML_TAG = 'tag:yaml.org,2002:';

/** Null when the text is none of the tag's kind. */
function resolveTagged(text: string, tag: string): YamlScalar | null {
  const kind = tag.startsWith(YAML_TAG) ? tag.slice(YAML_TAG.length) : 'str';
  if (kind === 'str') return { type: 'string', value: text };
  const scalar = resolvePlainScalar(text);
  if (kind === 'float' && scalar.type === 'int') return { type: 'float', value: Number(scalar.value) };
  return scalar.type === kind ? scalar : null;
}

function keyText(scalar: YamlScalar): string {
  return scalar.value === null ? 'null' : String(scalar.value);
}

function offsetOf(node: Node | null | undefined): number {
  return node?.range?.[0] ?? 0;
}

/** The value of a source node as plain JSON; of a key given twice the last counts. Integers beyond 2^53 lose precision. */
export function sourceToJson(node: SourceNode): Json {
  switch (node.kind) {
    case 'scalar':
      return typeof node.scalar.value === 'bigint' ? Number(node.scalar.value) : node.scalar.value;
    case 'list':
      return node.items.map(sourceToJson);
    case 'map':
      return Object.fromEntries(node.entries.map((entry) => [entry.key, sourceToJson(entry.value)]));
  }
}

/** The entry that counts for a key: the last one. */
export function entryOf(node: SourceNode | null, key: string): SourceEntry | undefined {
  return node?.kind === 'map' ? node.entries.findLast((entry) => entry.key === key) : undefined;
}
