import type * as z from 'zod';
import type { Problem } from '../base/errors.ts';
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
import { formatFieldPath, type PathSegment, showFieldPath } from './field-path.ts';
import { type FieldTree, fieldTreeOf } from './field-tree.ts';
import { entryOf, type SourceDocument, type SourceEntry, type SourceMap, type SourceNode, sourceToJson } from './source.ts';
import type { FieldLocation } from './typed-problems.ts';

/** Code and hint of a problem that a schema reports, passed in the `params` of a zod issue. */
export interface IssueParams {
  readonly code: string;
  readonly hint?: string | undefined;
}

/** Properties of a document type in addition to its schema. */
export interface DocumentGrammar {
  /** A sentence for `hint` about an unknown field. `parents` are names without list indices. */
  readonly suggest: (parents: readonly string[], name: string) => string | undefined;
  /** The hint for arguments written as an object where the schema has a list. */
  readonly argumentHint?: (firstName: string) => string;
}

/**
 * Decodes a document, whose root is an object, as strictly as `kubeadm config validate`: unknown, duplicate
 * and wrongly capitalised fields and wrong types are errors. Null is treated as absent, and so is an empty
 * string for a plain Go string. `value` omits invalid fields; `origins` are by path inside the document.
 */
export function readDocument<T>(
  document: SourceDocument,
  schema: z.ZodType<T>,
  grammar: DocumentGrammar,
): { readonly value: T; readonly problems: readonly Problem[]; readonly origins: ReadonlyMap<string, FieldLocation> } {
  const tree = fieldTreeOf(schema);
  const reader = new Reader(document, tree, grammar);
  const json = reader.read(document.root as SourceNode, tree, []);
  const { value, issues } = parsePruned(schema, json ?? {});
  for (const issue of issues) reader.report(issue);
  let origins: ReadonlyMap<string, FieldLocation> | null = null;
  return {
    value,
    problems: reader.problems,
    // Computed on demand: for a file with thousands of hosts only few origins are used.
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

  /** The node as input of the schema; undefined when it is treated as absent. */
  read(node: SourceNode, tree: FieldTree, steps: readonly PathSegment[]): unknown {
    if (node.kind === 'map' && (tree.kind === 'struct' || tree.kind === 'map')) return this.#readMap(node, tree, steps);
    if (node.kind === 'list' && tree.kind === 'list') return node.items.map((item, i) => this.#readItem(item, tree.item, [...steps, i]));
    return this.#isAbsent(node, tree) ? undefined : sourceToJson(node);
  }

  report(issue: Issue): void {
    const steps = issue.path as readonly PathSegment[];
    if (steps.some((_, i) => this.#nullItems.has(formatFieldPath(steps.slice(0, i + 1))))) return;
    const { node, tree } = this.#at(steps);
    const problem = problemOf(issue, node, this.#grammar);
    const hint = node !== null && tree?.kind === 'leaf' ? tree.hint : undefined;
    this.#problem(steps, hint === undefined ? problem : { ...problem, hint });
  }

  /** The node at a path: null when absent or treated as absent. */
  #at(steps: readonly PathSegment[]): { readonly node: SourceNode | null; readonly tree: FieldTree | undefined } {
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

  #readMap(node: SourceMap, tree: FieldTree & { readonly kind: 'struct' | 'map' }, steps: readonly PathSegment[]): unknown {
    const json: { [key: string]: unknown } = Object.create(null);
    for (const entry of lastOfEach(node, (earlier, later) => this.#duplicate(earlier, later, steps))) {
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

  #readItem(item: SourceNode, tree: FieldTree, steps: readonly PathSegment[]): unknown {
    if (isNull(item)) {
      this.#problem(steps, nullItem());
      this.#nullItems.add(formatFieldPath(steps));
      return tree.kind === 'leaf' ? tree.zero : undefined;
    }
    const value = this.read(item, tree, steps);
    return value === undefined && tree.kind === 'leaf' ? tree.zero : value;
  }

  #unknown(entry: SourceEntry, steps: readonly PathSegment[]): void {
    const parents = steps.filter((step) => typeof step === 'string');
    this.#problem([...steps, entry.key], unknownField(this.#grammar.suggest(parents, entry.key)), entry.keyOffset);
  }

  #duplicate(earlier: SourceEntry, later: SourceEntry, steps: readonly PathSegment[]): void {
    const { line } = this.#document.positionAt(earlier.keyOffset);
    this.#problem([...steps, later.key], duplicateField(line), later.keyOffset);
  }

  /** Adds a problem, by default at the position of the value, or of the nearest enclosing node. */
  #problem(steps: readonly PathSegment[], problem: Problem, offset = nearestOffset(this.#document, this.#tree, steps)): void {
    const position = this.#document.positionAt(offset);
    this.problems.push({ ...problem, position, path: showFieldPath(formatFieldPath(steps)) });
  }
}

/** The positions of all known and unknown members, by path. */
function originsIn(document: SourceDocument, tree: FieldTree): ReadonlyMap<string, FieldLocation> {
  const origins = new Map<string, FieldLocation>();
  const place = (steps: readonly PathSegment[], offset: number): void => {
    const path = formatFieldPath(steps);
    origins.set(path, { position: document.positionAt(offset), path });
  };
  const walk = (node: SourceNode, at: FieldTree | undefined, steps: readonly PathSegment[]): void => {
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

function nearestOffset({ root }: SourceDocument, tree: FieldTree, steps: readonly PathSegment[]): number {
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

/** The position of a scalar is its own, that of an object or list is its key's. */
function entryOffset({ value, keyOffset }: SourceEntry): number {
  return value.kind === 'scalar' && value.text !== '' ? value.offset : keyOffset;
}

function isHeader({ key }: SourceEntry): boolean {
  return key === 'apiVersion' || key === 'kind';
}

function childOf(node: SourceNode | null, step: PathSegment): SourceNode | null {
  if (typeof step === 'string') return entryOf(node, step)?.value ?? null;
  return node?.kind === 'list' ? (node.items[step] ?? null) : null;
}

function memberOf(tree: FieldTree | undefined, step: PathSegment): FieldTree | undefined {
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

/** The last entry of each key; `onDuplicate` is called for earlier ones. */
function lastOfEach(node: SourceMap, onDuplicate: (earlier: SourceEntry, later: SourceEntry) => void): Iterable<SourceEntry> {
  const entries = new Map<string, SourceEntry>();
  for (const entry of node.entries) {
    const earlier = entries.get(entry.key);
    if (earlier) onDuplicate(earlier, entry);
    entries.set(entry.key, entry);
  }
  return entries.values();
}

function isNull(node: SourceNode): boolean {
  return node.kind === 'scalar' && node.scalar.type === 'null';
}

/** Invalid fields are removed and the rest is parsed again, so that the remaining fields are validated too. */
function parsePruned<T>(schema: z.ZodType<T>, json: unknown): { readonly value: T; readonly issues: readonly Issue[] } {
  const all: Issue[] = [];
  for (;;) {
    const result = schema.safeParse(json);
    if (result.success) return { value: result.data, issues: all };
    const gone = new Set<string>();
    const before = new Set(all.map(({ path }) => formatFieldPath(path as readonly PathSegment[])));
    for (const issue of result.error.issues) {
      const steps = issue.path as readonly PathSegment[];
      // A required field that was removed as invalid is not reported as missing.
      if (!before.has(formatFieldPath(steps))) all.push(issue);
      else if (issue.code === 'invalid_value' && substitute(json, steps, issue.values)) continue;
      if (!steps.some((_, i) => gone.has(formatFieldPath(steps.slice(0, i + 1))))) gone.add(formatFieldPath(prune(json, steps)));
    }
  }
}

/**
 * Replaces an invalid member of a list item by a value that no other item has, so that the rest of the item
 * is validated. False: the path has another form, or all values are used.
 */
function substitute(json: unknown, path: readonly PathSegment[], values: readonly unknown[]): boolean {
  const [index, field] = path.slice(-2);
  if (typeof index !== 'number' || typeof field !== 'string') return false;
  const list = valueAt(json, path.slice(0, -2));
  if (!Array.isArray(list)) return false;
  const items = list as readonly { [key: string]: unknown }[];
  const free = values.find((value) => items.every((item) => item?.[field] !== value));
  const item = items[index];
  if (free === undefined || typeof item !== 'object' || item === null) return false;
  item[field] = free;
  return true;
}

/**
 * Removes the nearest field at or above the path and returns its path. Lists keep their indices: a list is
 * removed as a whole when one of its items is not an object.
 */
function prune(json: unknown, path: readonly PathSegment[]): readonly PathSegment[] {
  for (let end = path.length; end > 0; end--) {
    const last = path[end - 1];
    if (typeof last !== 'string') continue;
    const parent = valueAt(json, path.slice(0, end - 1));
    if (typeof parent !== 'object' || parent === null || Array.isArray(parent) || !Object.hasOwn(parent, last)) continue;
    delete (parent as { [key: string]: unknown })[last];
    return path.slice(0, end);
  }
  throw new Error(`cannot remove ${formatFieldPath(path)}`);
}

function valueAt(json: unknown, path: readonly PathSegment[]): unknown {
  return path.reduce<unknown>((value, step) => (value as { [key: PathSegment]: unknown } | undefined)?.[step], json);
}

function problemOf(issue: Issue, found: SourceNode | null, grammar: DocumentGrammar): Problem {
  if (issue.code === 'custom') {
    const params = issue.params as IssueParams;
    return { code: params.code, message: issue.message, hint: params.hint };
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
  return expectedType(EXPECTED[issue.expected] ?? 'an object', described, typeHint(issue.expected, found, grammar));
}

/** Their values never appear in a message, even when they have the wrong type. */
const SECRET_FIELDS: ReadonlySet<string> = new Set(['token', 'tlsBootstrapToken', 'certificateKey']);

const EXPECTED: Readonly<Record<string, string>> = {
  string: 'a string',
  boolean: 'true or false',
  int: 'an integer',
  number: 'an integer',
  array: 'a list',
};

function typeHint(expected: string, found: SourceNode, grammar: DocumentGrammar): string | undefined {
  const isText = found.kind === 'scalar' && found.scalar.type === 'string';
  const written = found.kind === 'scalar' ? found.text : '';
  switch (expected) {
    case 'string':
      return found.kind === 'scalar' ? 'Quote the value' : undefined;
    case 'array':
      return argumentHint(found, grammar) ?? LIST_HINT;
    case 'record':
      return found.kind === 'list' ? 'In v1beta3, write arguments as an object: {NAME: VALUE}' : undefined;
    case 'boolean':
      return isText && /^(?:true|false)$/i.test(written) ? 'Remove the quotes' : undefined;
    case 'int':
    case 'number':
      return isText && /^[0-9]+$/.test(written) ? 'Remove the quotes' : undefined;
    default:
      return undefined;
  }
}

const LIST_HINT = 'Put a dash before each item';

/** Arguments in v1beta3 format, a frequent mistake after the change to v1beta4. */
function argumentHint(found: SourceNode, grammar: DocumentGrammar): string | undefined {
  if (found.kind !== 'map' || !found.entries.every(({ value }) => value.kind === 'scalar')) return undefined;
  const first = found.entries.find(({ key }) => /^[a-z][-a-z0-9]*$/.test(key));
  return first && grammar.argumentHint?.(first.key);
}

function describeNode(node: SourceNode, secret: boolean): string {
  if (node.kind !== 'scalar') return node.kind === 'list' ? 'a list' : 'an object';
  const { scalar } = node;
  if (scalar.type === 'null') return 'nothing';
  if (scalar.type === 'bool') return `the boolean ${node.text}`;
  const isNumber = scalar.type === 'int' || scalar.type === 'float';
  if (secret) return isNumber ? 'a number' : 'a string';
  return isNumber ? `the number ${printable(node.text, 40)}` : `the string ${quoteValue(node.text)}`;
}
