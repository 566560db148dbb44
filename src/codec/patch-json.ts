import { type Json, jsonEqual } from '../base/json.ts';
import { patchInvalid, patchNotApplicable, patchTestFailed } from './patch-problems.ts';
import { cloneJson, describeType, isMutableObject, type Mutable, type MutableObject } from './patch-tree.ts';

/**
 * Applies a JSON patch (RFC 6902), modifying `target`, as evanphx/json-patch v4, which kubeadm and the API
 * server use, also where that is more lenient than the RFC: `replace` of a missing key adds it, indices may
 * be negative (counted from the end), a missing `value` is null, `copy` of a missing key yields null.
 * @throws AppError PATCH_INVALID, PATCH_NOT_APPLICABLE, PATCH_TEST_FAILED with the number of the operation
 *   (from 1)
 */
export function applyJsonPatch(target: Mutable, patch: Mutable): Mutable {
  if (patch === null) return target;
  if (!Array.isArray(patch)) throw patchInvalid(`a JSON patch must be a list of operations, not ${describeType(patch)}`);
  const document: Document = { root: target };
  for (const [index, operation] of patch.entries()) run(document, readOperation(operation, `operation ${index + 1}`));
  return document.root;
}

interface Document {
  root: Mutable;
}

interface Operation {
  /** `operation 2 (replace /a/b)`: for messages. */
  readonly label: string;
  readonly kind: string;
  readonly path: string | undefined;
  readonly from: string | undefined;
  readonly value: Mutable;
}

function readOperation(value: Mutable, place: string): Operation {
  if (value !== null && !isMutableObject(value)) throw patchInvalid(`${place} must be an object, not ${describeType(value)}`);
  const text = (key: string): string | undefined => (typeof value?.[key] === 'string' ? value[key] : undefined);
  const [kind = 'unknown', path] = [text('op'), text('path')];
  return {
    label: `${place} (${[kind, path].filter((part) => part !== undefined).join(' ')})`,
    kind,
    path,
    from: text('from'),
    value: value?.value ?? null,
  };
}

const RUNNERS: ReadonlyMap<string, (document: Document, operation: Operation) => void> = new Map([
  ['add', (document, operation) => add(document, operation, operation.value)],
  ['remove', (document, operation) => remove(locate(document, 'path', operation))],
  ['replace', replace],
  ['move', move],
  ['copy', (document, operation) => add(document, operation, cloneJson((get(locate(document, 'from', operation)) ?? null) as Json))],
  ['test', test],
]);

function run(document: Document, operation: Operation): void {
  const runner = RUNNERS.get(operation.kind);
  if (runner === undefined) throw patchInvalid(`${operation.label}: op must be one of ${[...RUNNERS.keys()].join(', ')}`);
  runner(document, operation);
}

function move(document: Document, operation: Operation): void {
  const source = locate(document, 'from', operation);
  const value = get(source) ?? null;
  remove(source);
  add(document, operation, value);
}

function add(document: Document, operation: Operation, value: Mutable): void {
  const { container, key } = locate(document, 'path', operation);
  if (!Array.isArray(container)) container[key] = value;
  else container.splice(key === '-' ? container.length : indexOf(key, container.length + 1, operation), 0, value);
}

function remove({ container, key, operation }: Location): void {
  if (Array.isArray(container)) container.splice(indexOf(key, container.length, operation), 1);
  else if (key in container) delete container[key];
  else throw patchNotApplicable(`${operation.label}: ${key} does not exist`);
}

function replace(document: Document, operation: Operation): void {
  if (required(operation, 'path') === '') {
    if (typeof operation.value !== 'object' || operation.value === null)
      throw patchInvalid(`${operation.label}: the whole document can only be replaced by an object or a list`);
    document.root = operation.value;
    return;
  }
  const { container, key } = locate(document, 'path', operation);
  if (Array.isArray(container)) container[indexOf(key, container.length, operation)] = operation.value;
  else container[key] = operation.value;
}

function test(document: Document, operation: Operation): void {
  const path = required(operation, 'path');
  const found = path === '' ? document.root : get(locate(document, 'path', operation));
  if (!jsonEqual((found ?? null) as Json, operation.value as Json)) throw patchTestFailed(`${operation.label}: the current value differs`);
}

interface Location {
  readonly container: MutableObject | Mutable[];
  readonly key: string;
  readonly operation: Operation;
}

function get({ container, key, operation }: Location): Mutable | undefined {
  return Array.isArray(container) ? container[indexOf(key, container.length, operation)] : container[key];
}

function required(operation: Operation, field: 'path' | 'from'): string {
  const value = operation[field];
  if (value === undefined) throw patchInvalid(`${operation.label} requires ${field}`);
  return value;
}

/** Finds the container of the last path segment. Text before the first slash is ignored. */
function locate(document: Document, field: 'path' | 'from', operation: Operation): Location {
  const pointer = required(operation, field);
  const parts = pointer.split('/').slice(1).map(unescapePart);
  const key = parts.pop();
  if (key === undefined)
    throw patchNotApplicable(`${operation.label}: ${pointer === '' ? 'the whole document' : pointer} is not a path inside the document`);
  let at: Mutable | undefined = document.root;
  for (const part of parts) {
    at = Array.isArray(at) ? at[indexOf(part, at.length, operation)] : isMutableObject(at) ? at[part] : undefined;
    if (typeof at !== 'object' || at === null)
      throw patchNotApplicable(`${operation.label}: cannot change ${pointer}: ${part} is ${describeType(at)}`);
  }
  return { container: at as MutableObject | Mutable[], key, operation };
}

function unescapePart(part: string): string {
  return part.replace(/~[01]/g, (escaped) => (escaped === '~1' ? '/' : '~'));
}

function indexOf(text: string, length: number, operation: Operation): number {
  if (!/^[-+]?[0-9]{1,15}$/.test(text)) throw patchNotApplicable(`${operation.label}: ${text} is not a valid list index`);
  const index = Number(text) < 0 ? Number(text) + length : Number(text);
  if (index < 0 || index >= length) throw patchNotApplicable(`${operation.label}: list index ${text} is out of range`);
  return index;
}
