import { patchInvalid, patchNotApplicable } from './patch-problems.ts';
import { OPEN_SCHEMA, type PatchField, type PatchSchema } from './patch-schema.ts';
import { describeType, emptyObject, isMutableObject, type Mutable, type MutableObject, withoutNulls } from './patch-tree.ts';

const DIRECTIVE = '$patch';
const RETAIN_KEYS = '$retainKeys';
const DELETE_FROM = '$deleteFromPrimitiveList';
const SET_ORDER = '$setElementOrder';

/**
 * Modifies both values. Directives: `$patch: replace|delete`, `$retainKeys`,
 * `$deleteFromPrimitiveList/<list>` and `$setElementOrder/<list>`. A patch of null changes nothing. @throws
 * AppError PATCH_INVALID, PATCH_NOT_APPLICABLE
 * @see k8s.io/apimachinery pkg/util/strategicpatch (1.36)
 */
export function applyStrategicPatch(target: Mutable, patch: Mutable, schema: PatchSchema): Mutable {
  if (patch === null) return target;
  if (!isMutableObject(patch)) throw patchInvalid(`a strategic merge patch must be an object, not ${describeType(patch)}`);
  return mergeObject(isMutableObject(target) ? target : emptyObject(), patch, { schema, path: '' });
}

/** The current path and the schema of its value. */
interface Context {
  readonly schema: PatchSchema;
  readonly path: string;
}

function mergeObject(target: MutableObject, patch: MutableObject, context: Context): MutableObject {
  const directive = patch[DIRECTIVE];
  if (directive !== undefined) return followDirective(directive, patch, context);
  retainKeys(target, patch, context);
  for (const key of Object.keys(patch)) if (key.startsWith(SET_ORDER)) mergeOrdered(target, patch, key, context);
  for (const [key, value] of Object.entries(patch)) mergeMember(target, key, value, context);
  return target;
}

function followDirective(directive: Mutable, patch: MutableObject, { path }: Context): MutableObject {
  if (directive === 'delete') return emptyObject();
  if (directive !== 'replace') throw patchInvalid(`${DIRECTIVE} must be replace or delete, not ${describeValue(directive)}`, path);
  delete patch[DIRECTIVE];
  return patch;
}

/** Removes fields that the list does not name; all fields of the patch must be named. */
function retainKeys(target: MutableObject, patch: MutableObject, { path }: Context): void {
  const names = patch[RETAIN_KEYS];
  if (names === undefined) return;
  delete patch[RETAIN_KEYS];
  if (!Array.isArray(names)) throw patchInvalid(`${RETAIN_KEYS} must be a list of field names`, path);
  const retained = new Set(names);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || key.startsWith(DELETE_FROM) || key.startsWith(SET_ORDER) || retained.has(key)) continue;
    throw patchInvalid(`${key} is set but not listed in ${RETAIN_KEYS}`, path);
  }
  for (const key of Object.keys(target)) if (!retained.has(key)) delete target[key];
}

function mergeMember(target: MutableObject, patchKey: string, value: Mutable, context: Context): void {
  const deleting = patchKey.startsWith(DELETE_FROM);
  const key = deleting ? listName(patchKey, DELETE_FROM, context) : patchKey;
  if (value === null) {
    delete target[key];
    return;
  }
  const current = target[key];
  if (current === undefined || !isSameShape(current, value)) {
    if (!deleting) assign(target, key, withoutDirectives(withoutNulls(value)));
  } else if (Array.isArray(value)) {
    target[key] = mergeListField(current as Mutable[], value, { key, deleting, context });
  } else if (isMutableObject(value)) {
    target[key] = mergeObject(current as MutableObject, value, { schema: fieldOf(key, context).schema, path: join(context.path, key) });
  } else {
    target[key] = value;
  }
}

/** `$deleteFromPrimitiveList/finalizers` → `finalizers`. */
function listName(directive: string, prefix: string, { path }: Context): string {
  if (!directive.startsWith(`${prefix}/`)) throw patchInvalid(`${directive} must be ${prefix}/<list name>`, path);
  return directive.slice(prefix.length + 1);
}

function assign(target: MutableObject, key: string, value: Mutable | undefined): void {
  if (value === undefined) delete target[key];
  else target[key] = value;
}

function fieldOf(key: string, { schema }: Context): PatchField {
  return schema.fields.get(key) ?? { schema: OPEN_SCHEMA };
}

function mergeListField(
  current: Mutable[],
  patch: Mutable[],
  { key, deleting, context }: { readonly key: string; readonly deleting: boolean; readonly context: Context },
): Mutable[] {
  const { schema, strategy, mergeKey = '' } = fieldOf(key, context);
  if (strategy !== 'merge' && !deleting) return patch;
  return mergeList(current, patch, { items: schema, mergeKey, deleting, path: join(context.path, key) });
}

interface ListMerge {
  readonly items: PatchSchema;
  readonly mergeKey: string;
  readonly deleting: boolean;
  readonly path: string;
}

function mergeList(current: Mutable[], patch: Mutable[], options: ListMerge): Mutable[] {
  const { mergeKey, path } = options;
  if (current.length === 0 && patch.length === 0) return current;
  if (typeOfItems([...current, ...patch], path) !== 'object') {
    if (options.deleting) return current.filter((item) => !patch.includes(item));
    const merged = withoutRepeats([...current, ...patch]);
    return inOrder(merged, { order: patch, serverOrder: current, identify: (item) => item });
  }
  if (mergeKey === '') throw patchNotApplicable('the items of this list have no merge key', path);
  const { remaining, additions } = applyItemDirectives(current as MutableObject[], patch as MutableObject[], options);
  const merged = mergeItems(remaining, additions, { ...options, places: current as MutableObject[] });
  for (const item of [...merged, ...additions]) keyValue(item, options);
  return inOrder(merged, {
    order: additions,
    serverOrder: remaining,
    identify: (item) => (isMutableObject(item) ? item[mergeKey] : undefined),
  });
}

/**
 * `delete` removes the item with that key, `replace` clears the list first. `current` is compacted in place
 * and keeps its length: Go derives the final order from the remaining content of the array.
 */
function applyItemDirectives(
  current: MutableObject[],
  patch: readonly MutableObject[],
  options: ListMerge,
): { remaining: MutableObject[]; additions: MutableObject[] } {
  let length = current.length;
  let replacing = false;
  const additions: MutableObject[] = [];
  for (const item of patch) {
    const directive = item[DIRECTIVE];
    if (directive === undefined) additions.push(item);
    else if (directive === 'replace') replacing = true;
    else if (directive === 'delete') length = closeUp(current, length, { key: keyValue(item, options), mergeKey: options.mergeKey });
    else throw patchInvalid(`${DIRECTIVE} of a list item must be replace or delete, not ${describeValue(directive)}`, options.path);
  }
  return replacing ? { remaining: additions, additions: [] } : { remaining: current.slice(0, length), additions };
}

/** Removes the items with that key among the first `length`; returns the new length. */
function closeUp(items: MutableObject[], length: number, { key, mergeKey }: { key: Mutable; mergeKey: string }): number {
  const kept = items.slice(0, length).filter((item) => item[mergeKey] !== key);
  // One by one, because the elements after the end keep the shifted values, as in Go.
  for (let removed = length; removed > kept.length; removed--) {
    const index = items.findIndex((item, at) => at < removed && item[mergeKey] === key);
    items.copyWithin(index, index + 1, removed);
  }
  return kept.length;
}

/** `places` is the original list: new items also overwrite the values that `closeUp` left after the end, as in Go. */
function mergeItems(
  remaining: readonly MutableObject[],
  patch: readonly MutableObject[],
  options: ListMerge & { readonly places: MutableObject[] },
): MutableObject[] {
  const merged = [...remaining];
  for (const item of patch) {
    const key = keyValue(item, options);
    const index = merged.findIndex((other) => other[options.mergeKey] === key);
    const found = merged[index];
    if (found !== undefined) {
      merged[index] = mergeObject(found, item, { schema: options.items, path: `${options.path}[${String(key)}]` });
      continue;
    }
    if (merged.length < options.places.length) options.places[merged.length] = item;
    merged.push(item);
  }
  return merged;
}

function keyValue(item: MutableObject, { mergeKey, path }: ListMerge): Mutable {
  const value = item[mergeKey];
  if (value === undefined) throw patchInvalid(`an item has no ${mergeKey}, the merge key of this list`, path);
  return value;
}

/** `$setElementOrder/<list>`: items that it does not name keep their relative order. */
function mergeOrdered(target: MutableObject, patch: MutableObject, directive: string, context: Context): void {
  const order = patch[directive];
  delete patch[directive];
  const key = listName(directive, SET_ORDER, context);
  const path = join(context.path, key);
  const [current, changes] = [target[key], patch[key]];
  if (!Array.isArray(order)) throw patchInvalid(`${directive} must be a list`, context.path);
  for (const list of [current, changes]) {
    if (list !== undefined && !Array.isArray(list))
      throw patchNotApplicable(`${directive} requires a list, not ${describeType(list)}`, path);
  }
  const { mergeKey = '' } = fieldOf(key, context);
  const identify = (item: Mutable): Mutable | undefined => (mergeKey === '' ? item : isMutableObject(item) ? item[mergeKey] : undefined);
  const [serverOrder, changed] = [current ?? [], changes ?? []] as [Mutable[], Mutable[]];
  if (!hasOrder(changed, order, identify)) throw patchInvalid(`the order of the list in the patch differs from ${directive}`, path);
  if (current === undefined && changes === undefined) return;
  const merged =
    current === undefined
      ? (withoutDirectives(changed) as Mutable[])
      : changes === undefined
        ? serverOrder
        : mergeListField(serverOrder, changed, { key, deleting: false, context });
  const type = typeOfItems([...serverOrder, ...changed], path);
  if (type === 'object') for (const item of [...merged, ...order, ...serverOrder]) checkKey(item, mergeKey, path);
  target[key] = inOrder(merged, { order, serverOrder, identify });
  delete patch[key];
}

function checkKey(item: Mutable, mergeKey: string, path: string): void {
  if (mergeKey === '') throw patchNotApplicable('the items of this list have no merge key', path);
  if (!isMutableObject(item) || item[mergeKey] === undefined) throw patchInvalid(`an item has no ${mergeKey}`, path);
}

/** Items that the patch adds must occur in the order list, in the same sequence. */
function hasOrder(changes: readonly Mutable[], order: readonly Mutable[], identify: Order['identify']): boolean {
  const kept = changes.filter((item) => !isDeletion(item));
  let [at, index] = [0, 0];
  while (order.length > 0 && index < kept.length) {
    if (at >= order.length) return false;
    const item = kept[index] as Mutable;
    if ((isMutableObject(item) && item[DIRECTIVE] !== undefined) || identify(item) === identify(order[at++] as Mutable)) index++;
  }
  return true;
}

function isDeletion(item: Mutable): boolean {
  return isMutableObject(item) && item[DIRECTIVE] === 'delete';
}

interface Order {
  /** The items that the patch names, in its order. */
  readonly order: readonly Mutable[];
  readonly serverOrder: readonly Mutable[];
  readonly identify: (item: Mutable) => Mutable | undefined;
}

/** Sorts the named items by the patch and the others by the original list, then merges both by the original list. */
function inOrder(merged: readonly Mutable[], { order, serverOrder, identify }: Order): Mutable[] {
  const ranks = ranksOf(order, identify);
  const serverRanks = ranksOf(serverOrder, identify);
  const rank = (from: ReadonlyMap<Mutable | undefined, number>, item: Mutable): number => from.get(identify(item)) ?? -1;
  const sorted = (items: readonly Mutable[], by: ReadonlyMap<Mutable | undefined, number>): readonly Mutable[] =>
    items.toSorted((a, b) => Number(isDeletion(a)) - Number(isDeletion(b)) || rank(by, a) - rank(by, b));
  const isNamed = (item: Mutable): boolean => ranks.has(identify(item));
  const named = sorted(merged.filter(isNamed), ranks);
  const others = sorted(
    merged.filter((item) => !isNamed(item)),
    serverRanks,
  );
  const woven: Mutable[] = [];
  let [i, j] = [0, 0];
  while (i < others.length && j < named.length) {
    const [left, right] = [rank(serverRanks, others[i] as Mutable), rank(serverRanks, named[j] as Mutable)];
    if (left >= 0 && right >= 0 && left < right) woven.push(others[i++] as Mutable);
    else woven.push(named[j++] as Mutable);
  }
  return [...woven, ...named.slice(j), ...others.slice(i)];
}

function ranksOf(items: readonly Mutable[], identify: (item: Mutable) => Mutable | undefined): ReadonlyMap<Mutable | undefined, number> {
  const ranks = new Map<Mutable | undefined, number>();
  for (const [index, item] of items.entries()) {
    const key = identify(item);
    if (!ranks.has(key)) ranks.set(key, index);
  }
  return ranks;
}

function typeOfItems(items: readonly Mutable[], path: string): 'object' | 'scalar' {
  const types = new Set(items.map(itemType));
  if (types.has('list')) throw patchNotApplicable('a strategic merge patch cannot change a list of lists; use a JSON patch', path);
  if (types.size !== 1 || types.has('null'))
    throw patchNotApplicable(
      items.length === 0 ? 'the patch cannot be merged, because both lists are empty' : 'the items of the two lists have different types',
      path,
    );
  return types.has('object') ? 'object' : 'scalar';
}

function itemType(item: Mutable): string {
  if (item === null) return 'null';
  if (Array.isArray(item)) return 'list';
  if (typeof item === 'number') return Number.isInteger(item) ? 'integer' : 'fraction';
  return typeof item;
}

/** As in Go, the last item moves to the index of the repeated one. */
function withoutRepeats(items: Mutable[]): Mutable[] {
  for (let i = 0; i < items.length; i++) {
    for (let j = i + 1; j < items.length; j++) {
      if (items[i] !== items[j]) continue;
      items[j--] = items.at(-1) as Mutable;
      items.pop();
    }
  }
  return items;
}

function isSameShape(a: Mutable, b: Mutable): boolean {
  return Array.isArray(a) === Array.isArray(b) && isMutableObject(a) === isMutableObject(b);
}

/** Drops objects with `$patch`, at any depth; undefined when the value itself is one. */
function withoutDirectives(value: Mutable): Mutable | undefined {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined);
  if (!isMutableObject(value)) return value;
  if (value[DIRECTIVE] !== undefined) return undefined;
  for (const [key, item] of Object.entries(value)) assign(value, key, withoutDirectives(item));
  return value;
}

function describeValue(value: Mutable): string {
  return typeof value === 'object' ? describeType(value) : JSON.stringify(value);
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
