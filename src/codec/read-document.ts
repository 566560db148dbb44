import type * as z from 'zod';
import type { Position, Problem } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import { printable } from '../base/text/printable.ts';
import {
  duplicateField,
  expectedType,
  invalidEnum,
  missingField,
  nullItem,
  numberOutOfRange,
  quoteValue,
  unknownField,
} from './document-problems.ts';
import { formatFieldPath, type Step, showFieldPath } from './field-path.ts';
import type { FieldTree } from './field-tree.ts';
import { fieldTreeOf } from './field-tree.ts';
import type { SourceDocument, SourceEntry, SourceMap, SourceNode } from './source.ts';
import { entryOf, sourceToJson } from './source.ts';

/** A place in a file. */
export interface WrittenOrigin {
  readonly position: Position;
  /** As written; it differs from the model's path where an older version was converted. */
  readonly path: string;
}

/** A problem a schema finds itself: which code it has, and how to fix it. Carried in the `params` of a zod issue. */
export interface IssueParams {
  readonly code: string;
  readonly hint?: string;
}

/** What there is to know of a kind of document besides its schema. */
export interface DocumentGrammar {
  /**
   * What may have been meant by a field that is not known.
   * @param parents names of the fields above it, list places left out
   * @returns a sentence for `hint`
   */
  readonly suggest: (parents: readonly string[], name: string) => string | undefined;
  /** What to say where names and values stand as a mapping, and the schema has them as a list. */
  readonly argumentHint?: (firstName: string) => string;
}

/** What a document says. `value` lacks what is wrong; `origins` are by path inside the document. */
export interface ReadDocument<T> {
  readonly value: T;
  readonly problems: readonly Problem[];
  readonly origins: ReadonlyMap<string, WrittenOrigin>;
}

/**
 * Reads a document by its schema, as strictly as `kubeadm config validate`: unknown, doubled and wrongly cased fields and wrong types are
 * errors. Null counts as absent, and so does an empty string where Go has a plain string.
 * @param document its root must be a mapping
 */
export function readDocument<T>(document: SourceDocument, schema: z.ZodType<T>, grammar: DocumentGrammar): ReadDocument<T> {
  const tree = fieldTreeOf(schema);
  const reader = new Reader(document, tree, grammar);
  const json = reader.read(document.root as SourceNode, tree, []);
  const { value, issues } = parsePruned(schema, json ?? {});
  for (const issue of issues) reader.report(issue);
  let origins: ReadonlyMap<string, WrittenOrigin> | null = null;
  return {
    value,
    problems: reader.problems,
    // Of a file with thousands of hosts few places are ever asked for.
    get origins() {
      origins ??= originsIn(document, tree);
      return origins;
    },
  };
}

type Issue = z.core.$ZodIssue;

class Reader {
  readonly problems: Problem[] = [];
  readonly #document: SourceDocument;
  readonly #tree: FieldTree;
  readonly #grammar: DocumentGrammar;
  readonly #nullItems = new Set<string>();

  constructor(document: SourceDocument, tree: FieldTree, grammar: DocumentGrammar) {
    this.#document = document;
    this.#tree = tree;
    this.#grammar = grammar;
  }

  /** The node as the schema should see it; undefined when it counts as absent. */
  read(node: SourceNode, tree: FieldTree, steps: readonly Step[]): unknown {
    if (node.kind === 'map' && (tree.kind === 'struct' || tree.kind === 'map')) return this.#readMap(node, tree, steps);
    if (node.kind === 'list' && tree.kind === 'list') return node.items.map((item, i) => this.#readItem(item, tree.item, [...steps, i]));
    return this.#isAbsent(node, tree) ? undefined : sourceToJson(node);
  }

  /** Turns what a schema complains of into a problem with its place. */
  report(issue: Issue): void {
    const steps = issue.path as readonly Step[];
    if (steps.some((_, i) => this.#nullItems.has(formatFieldPath(steps.slice(0, i + 1))))) return;
    const { node, tree } = this.#at(steps);
    const problem = problemOf(issue, node, this.#grammar);
    const hint = node !== null && tree?.kind === 'leaf' ? tree.hint : undefined;
    this.#problem(steps, hint === undefined ? problem : { ...problem, hint });
  }

  /** What stands at a path: null for nothing, or what counts as nothing. */
  #at(steps: readonly Step[]): { readonly node: SourceNode | null; readonly tree: FieldTree | undefined } {
    let node = this.#document.root;
    let tree: FieldTree | undefined = this.#tree;
    for (const step of steps) {
      node = childOf(node, step);
      tree = memberOf(tree, step);
    }
    return { node: node === null || tree === undefined || this.#isAbsent(node, tree) ? null : node, tree };
  }

  #isAbsent(node: SourceNode, tree: FieldTree): boolean {
    return isNull(node) || (tree.kind === 'leaf' && tree.emptyIsAbsent && node.kind === 'scalar' && node.scalar.value === '');
  }

  #readMap(node: SourceMap, tree: FieldTree & { readonly kind: 'struct' | 'map' }, steps: readonly Step[]): unknown {
    const json: { [key: string]: unknown } = Object.create(null);
    for (const entry of lastOfEach(node, (earlier, later) => this.#doubled(earlier, later, steps))) {
      if (steps.length === 0 && isHeader(entry)) continue;
      const field = tree.kind === 'map' ? tree.value : tree.fields.get(entry.key);
      if (!field || entry.key === '__proto__') this.#unknown(entry, steps);
      else {
        const absent = tree.kind === 'map' && field.kind === 'leaf' ? field.zero : undefined;
        const value = this.read(entry.value, field, [...steps, entry.key]) ?? absent;
        if (value !== undefined) json[entry.key] = value;
      }
    }
    return json;
  }

  #readItem(item: SourceNode, tree: FieldTree, steps: readonly Step[]): unknown {
    if (isNull(item)) {
      this.#problem(steps, nullItem());
      this.#nullItems.add(formatFieldPath(steps));
      return tree.kind === 'leaf' ? tree.zero : undefined;
    }
    const value = this.read(item, tree, steps);
    return value === undefined && tree.kind === 'leaf' ? tree.zero : value;
  }

  #unknown(entry: SourceEntry, steps: readonly Step[]): void {
    const parents = steps.filter((step) => typeof step === 'string');
    const position = this.#document.positionAt(entry.keyOffset);
    const hint = this.#grammar.suggest(parents, entry.key);
    this.problems.push({ ...unknownField(hint), position, path: showFieldPath(formatFieldPath([...steps, entry.key])) });
  }

  #doubled(earlier: SourceEntry, later: SourceEntry, steps: readonly Step[]): void {
    const problem = duplicateField(this.#document.positionAt(earlier.keyOffset).line);
    const path = showFieldPath(formatFieldPath([...steps, later.key]));
    this.problems.push({ ...problem, position: this.#document.positionAt(later.keyOffset), path });
  }

  /** Puts a problem where the value stands, or the nearest thing around it. */
  #problem(steps: readonly Step[], problem: Problem): void {
    const position = this.#document.positionAt(nearestOffset(this.#document, this.#tree, steps));
    this.problems.push({ ...problem, position, path: showFieldPath(formatFieldPath(steps)) });
  }
}

/** Where each member that is read is written, and each that is not known, by its path. */
function originsIn(document: SourceDocument, tree: FieldTree): ReadonlyMap<string, WrittenOrigin> {
  const origins = new Map<string, WrittenOrigin>();
  const place = (steps: readonly Step[], offset: number): void => {
    const path = formatFieldPath(steps);
    origins.set(path, { position: document.positionAt(offset), path });
  };
  const walk = (node: SourceNode, at: FieldTree | undefined, steps: readonly Step[]): void => {
    if (node.kind === 'list' && at?.kind === 'list') {
      for (const [i, item] of node.items.entries()) {
        place([...steps, i], item.offset);
        walk(item, at.item, [...steps, i]);
      }
    }
    if (node.kind !== 'map' || (at?.kind !== 'struct' && at?.kind !== 'map')) return;
    for (const entry of lastOfEach(node, () => undefined)) {
      if (steps.length === 0 && isHeader(entry)) continue;
      place([...steps, entry.key], entryOffset(entry));
      walk(entry.value, memberOf(at, entry.key), [...steps, entry.key]);
    }
  };
  if (document.root !== null) walk(document.root, tree, []);
  return origins;
}

/** Where the value at a path stands, or the nearest thing around it. */
function nearestOffset({ root }: SourceDocument, tree: FieldTree, steps: readonly Step[]): number {
  let offset = root?.offset ?? 0;
  let node = root;
  let at: FieldTree | undefined = tree;
  for (const step of steps) {
    const entry: SourceEntry | undefined = typeof step === 'string' ? entryOf(node, step) : undefined;
    const child = childOf(node, step);
    if (child === null || at === undefined || at.kind === 'leaf') break;
    offset = entry === undefined ? child.offset : entryOffset(entry);
    node = child;
    at = memberOf(at, step);
  }
  return offset;
}

/** A scalar is where it is written, a mapping or list where its key is. */
function entryOffset({ value, keyOffset }: SourceEntry): number {
  return value.kind === 'scalar' && value.text !== '' ? value.offset : keyOffset;
}

function isHeader({ key }: SourceEntry): boolean {
  return key === 'apiVersion' || key === 'kind';
}

function childOf(node: SourceNode | null, step: Step): SourceNode | null {
  if (typeof step === 'string') return entryOf(node, step)?.value ?? null;
  return node?.kind === 'list' ? (node.items[step] ?? null) : null;
}

function memberOf(tree: FieldTree | undefined, step: Step): FieldTree | undefined {
  switch (tree?.kind) {
    case 'struct':
      return tree.fields.get(String(step));
    case 'map':
      return tree.value;
    case 'list':
      return tree.item;
    default:
      return undefined;
  }
}

/** One entry for each key, the last one; `onDouble` hears of the others. */
function lastOfEach(node: SourceMap, onDouble: (earlier: SourceEntry, later: SourceEntry) => void): Iterable<SourceEntry> {
  const entries = new Map<string, SourceEntry>();
  for (const entry of node.entries) {
    const earlier = entries.get(entry.key);
    if (earlier) onDouble(earlier, entry);
    entries.set(entry.key, entry);
  }
  return entries.values();
}

function isNull(node: SourceNode): boolean {
  return node.kind === 'scalar' && node.scalar.type === 'null';
}

/** Parses, and where that fails leaves the wrong parts out and parses again, so that the rest can be judged too. */
function parsePruned<T>(schema: z.ZodType<T>, json: unknown): { readonly value: T; readonly issues: readonly Issue[] } {
  const all: Issue[] = [];
  for (;;) {
    const result = schema.safeParse(json);
    if (result.success) return { value: result.data, issues: all };
    const gone = new Set<string>();
    const before = new Set(all.map(({ path }) => formatFieldPath(path as readonly Step[])));
    for (const issue of result.error.issues) {
      const steps = issue.path as readonly Step[];
      // A required field that was wrong and was left out: it is not missing as well.
      if (!before.has(formatFieldPath(steps))) all.push(issue);
      else if (issue.code === 'invalid_value' && substitute(json, steps, issue.values)) continue;
      if (!steps.some((_, i) => gone.has(formatFieldPath(steps.slice(0, i + 1))))) gone.add(formatFieldPath(prune(json, steps)));
    }
  }
}

/**
 * Gives a member of a list's item a value that no other item has there, in place of a wrong one, so that the rest of the item is judged and no two items become
 * doubles of each other by it.
 * @returns false: the path is another one, or all values are taken
 */
function substitute(json: unknown, path: readonly Step[], values: readonly unknown[]): boolean {
  const [index, field] = path.slice(-2);
  if (typeof index !== 'number' || typeof field !== 'string') return false;
  let list: unknown = json;
  for (const step of path.slice(0, -2)) list = (list as { [key: Step]: unknown } | undefined)?.[step];
  if (!Array.isArray(list)) return false;
  const items = list as readonly { [key: string]: unknown }[];
  const free = values.find((value) => items.every((item) => item?.[field] !== value));
  const item = items[index];
  if (free === undefined || typeof item !== 'object' || item === null) return false;
  item[field] = free;
  return true;
}

/**
 * Removes the nearest field at or above the path and tells which. A list keeps its places: it goes as a whole when one of its items is
 * no mapping.
 */
function prune(json: unknown, path: readonly Step[]): readonly Step[] {
  for (let end = path.length; end > 0; end--) {
    const last = path[end - 1];
    if (typeof last !== 'string') continue;
    let parent: unknown = json;
    for (const step of path.slice(0, end - 1)) parent = (parent as { [key: Step]: unknown } | undefined)?.[step];
    if (typeof parent !== 'object' || parent === null || Array.isArray(parent) || !Object.hasOwn(parent, last)) continue;
    delete (parent as { [key: string]: unknown })[last];
    return path.slice(0, end);
  }
  throw new Error(`cannot leave out ${formatFieldPath(path)}`);
}

function problemOf(issue: Issue, found: SourceNode | null, grammar: DocumentGrammar): Problem {
  if (issue.code === 'custom') {
    const params = issue.params as IssueParams;
    return { code: params.code, message: issue.message, ...(params.hint === undefined ? {} : { hint: params.hint }) };
  }
  const values = issue.code === 'invalid_value' ? issue.values.map(String) : undefined;
  if (found === null) return missingField(values);
  const described = describeNode(found, SECRET_FIELDS.has(String(issue.path.at(-1))));
  if (values) {
    if (found.kind !== 'scalar' || found.scalar.type !== 'string') return expectedType('a string', described);
    const { text } = found;
    const otherCase = values.find((value) => value.toLowerCase() === text.toLowerCase());
    return invalidEnum(text, values, otherCase ?? closestName(text, values));
  }
  if (issue.code === 'too_big' || issue.code === 'too_small') return numberOutOfRange(found.kind === 'scalar' ? found.text : '');
  if (issue.code !== 'invalid_type') return expectedType('a quantity such as 1 or 100m', described);
  return expectedType(desired(issue.expected), described, typeHint(issue.expected, found, grammar));
}

/** Their values never stand in a message, not even when they have the wrong type. */
const SECRET_FIELDS: ReadonlySet<string> = new Set(['token', 'tlsBootstrapToken', 'certificateKey']);

function desired(expected: string): string {
  switch (expected) {
    case 'string':
      return 'a string';
    case 'boolean':
      return 'true or false';
    case 'int':
    case 'number':
      return 'a whole number';
    case 'array':
      return 'a list';
    default:
      return 'a mapping';
  }
}

/** How a wrong type usually comes about. */
function typeHint(expected: string, found: SourceNode, grammar: DocumentGrammar): string | undefined {
  const isText = found.kind === 'scalar' && found.scalar.type === 'string';
  const written = found.kind === 'scalar' ? found.text : '';
  switch (expected) {
    case 'string':
      return found.kind === 'scalar' ? 'Write it in quotes' : undefined;
    case 'array':
      return argumentHint(found, grammar) ?? LIST_HINT;
    case 'record':
      return found.kind === 'list' ? 'In v1beta3 arguments are a mapping of names to values' : undefined;
    case 'boolean':
      return isText && /^(?:true|false)$/i.test(written) ? 'Leave the quotes away' : undefined;
    case 'int':
    case 'number':
      return isText && /^[0-9]+$/.test(written) ? 'Leave the quotes away' : undefined;
    default:
      return undefined;
  }
}

const LIST_HINT = 'Put a dash before each item';

/** Arguments as v1beta3 wrote them: the slip everyone makes who comes from there. */
function argumentHint(found: SourceNode, grammar: DocumentGrammar): string | undefined {
  if (found.kind !== 'map' || !found.entries.every(({ value }) => value.kind === 'scalar')) return undefined;
  const first = found.entries.find(({ key }) => /^[a-z][-a-z0-9]*$/.test(key));
  return first && grammar.argumentHint?.(first.key);
}

/** A value in words. */
function describeNode(node: SourceNode, secret: boolean): string {
  if (node.kind !== 'scalar') return node.kind === 'list' ? 'a list' : 'a mapping';
  const { scalar } = node;
  if (scalar.type === 'null') return 'nothing';
  if (scalar.type === 'bool') return `the boolean ${node.text}`;
  const isNumber = scalar.type === 'int' || scalar.type === 'float';
  if (secret) return isNumber ? 'a number' : 'a string';
  return isNumber ? `the number ${printable(node.text, 40)}` : `the string ${quoteValue(node.text)}`;
}
