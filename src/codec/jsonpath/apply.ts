import { isJsonObject, type Json } from '../../base/json.ts';
import { type JsonPath, JsonPathError, type JsonPathPart, type JsonPathStep, type Operator } from './parse.ts';

/** How the results of a template are printed. */
export interface JsonPathOptions {
  /** The results of each path as a JSON list, in place of text. */
  readonly asJson?: boolean;
  /** Missing fields: they print nothing, or are an error. Default: ignored */
  readonly missing?: 'ignored' | 'refused';
}

/**
 * The results of a path are separated by spaces; objects and lists are printed as JSON, without a final
 * newline, as kubectl prints them.
 * @throws JsonPathError for an index out of bounds, for an index, slice or filter of another value than a
 *   list, and for a missing field that is refused
 */
export function applyJsonPath({ parts }: JsonPath, document: Json, options: JsonPathOptions = {}): string {
  const refuses = options.missing === 'refused';
  const lists = parts.flatMap((part) => applyPart(part, document, refuses));
  if (options.asJson === true) return lists.map((list) => `${JSON.stringify(list, null, 4)}\n`).join('');
  return lists.map((list) => list.map(printed).join(' ')).join('');
}

/** The results of each text and path, in the order of printing. */
function applyPart(part: JsonPathPart, current: Json, refuses: boolean): readonly (readonly Json[])[] {
  if (part.kind === 'text') return [[part.text]];
  const results = part.steps.reduce<readonly Json[]>(
    (values, step) => {
      const found = applyStep(step, values, part.offset);
      const isMissing = refuses && (step.kind === 'field' || step.kind === 'key') && found.length === 0;
      if (isMissing) throw new JsonPathError(`${step.name} is not found`, part.offset);
      return found;
    },
    [current],
  );
  if (part.kind === 'path') return [results];
  return results.flatMap((item) => part.body.flatMap((each) => applyPart(each, item, refuses)));
}

function applySteps(steps: readonly JsonPathStep[], values: readonly Json[], offset: number): readonly Json[] {
  return steps.reduce<readonly Json[]>((current, step) => applyStep(step, current, offset), values);
}

function applyStep(step: JsonPathStep, values: readonly Json[], offset: number): readonly Json[] {
  switch (step.kind) {
    case 'literal':
      return [step.value];
    case 'field':
      return values.flatMap((value) => memberOf(value, step.name));
    case 'key':
      return values.flatMap((value) => {
        const own = memberOf(value, step.name);
        return own.length > 0
          ? own
          : step.path.reduce<readonly Json[]>((found, name) => found.flatMap((one) => memberOf(one, name)), [value]);
      });
    case 'wildcard':
      return values.flatMap(childrenOf);
    case 'recursive':
      return values.flatMap(containersOf);
    case 'union':
      return step.members.flatMap((member) => applySteps(member, values, offset));
    case 'slice':
      return values.flatMap((value) => slice(step, value));
    case 'filter':
      return values.flatMap((value) => listOf(value, step.offset).filter((item) => passes(step, item)));
  }
}

function passes({ left, test, offset }: JsonPathStep & { readonly kind: 'filter' }, item: Json): boolean {
  const lefts = applySteps(left, [item], offset);
  if (test === null) return lefts.length > 0;
  const rights = applySteps(test.right, [item], offset);
  if (lefts.length > 1 || rights.length > 1) throw new JsonPathError('a filter compares one value with one value', offset);
  const [a, b] = [lefts[0], rights[0]];
  return a !== undefined && b !== undefined && compare(a, test.operator, b);
}

/** Values of different types are not equal, and none is less than the other. */
function compare(a: Json, operator: Operator, b: Json): boolean {
  if (operator === '==') return a === b;
  if (operator === '!=') return a !== b;
  if (!((typeof a === 'number' && typeof b === 'number') || (typeof a === 'string' && typeof b === 'string'))) return false;
  if (operator === '<') return a < b;
  if (operator === '<=') return a <= b;
  return operator === '>' ? a > b : a >= b;
}

function slice({ start, end, step, isIndex, offset }: JsonPathStep & { readonly kind: 'slice' }, value: Json): readonly Json[] {
  if (value === null) return [];
  const list = listOf(value, offset);
  const position = (index: number): number => (index < 0 ? index + list.length : index);
  const first = position(start ?? 0);
  const last = isIndex ? first + 1 : position(end ?? list.length);
  if (first === last) return [];
  const bad = first < 0 || first >= list.length ? (start ?? 0) : last < 0 || last > list.length ? (end ?? 0) : null;
  if (bad !== null) throw new JsonPathError(`index ${bad} is out of bounds: the list has ${list.length} entries`, offset);
  return list.slice(first, Math.max(first, last)).filter((_, i) => i % step === 0);
}

function listOf(value: Json, offset: number): readonly Json[] {
  if (Array.isArray(value)) return value;
  if (value === null) return [];
  throw new JsonPathError(
    `${isJsonObject(value) ? 'an object' : `the ${typeof value} ${printed(value).slice(0, 40)}`} is not a list`,
    offset,
  );
}

function childrenOf(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : isJsonObject(value) ? (Object.values(value) as readonly Json[]) : [];
}

/** The value and everything below that has members itself, the parents first. */
function containersOf(value: Json): readonly Json[] {
  const children = childrenOf(value);
  return children.length === 0 ? [] : [value, ...children.flatMap(containersOf)];
}

function memberOf(value: Json, name: string): readonly Json[] {
  return isJsonObject(value) && Object.hasOwn(value, name) ? [value[name] as Json] : [];
}

function printed(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
