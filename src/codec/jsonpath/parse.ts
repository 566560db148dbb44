/**
 * A template in the JSONPath dialect of kubectl: text with actions in braces, which are sequences of steps.
 * @see https://kubernetes.io/docs/reference/kubectl/jsonpath/
 */
export interface JsonPath {
  /** As written. */
  readonly template: string;
  readonly parts: readonly JsonPathPart[];
}

/** Text, a path whose results are printed, or a loop over the results of a path. */
export type JsonPathPart =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly steps: readonly JsonPathStep[]; readonly offset: number }
  | { readonly kind: 'range'; readonly steps: readonly JsonPathStep[]; readonly offset: number; readonly body: readonly JsonPathPart[] };

export type JsonPathStep =
  | { readonly kind: 'field'; readonly name: string }
  /** A quoted key in brackets: the field of this name, otherwise the field at the path. */
  | { readonly kind: 'key'; readonly name: string; readonly path: readonly string[] }
  | { readonly kind: 'wildcard' }
  /** The value and everything below. */
  | { readonly kind: 'recursive' }
  /** `[start:end:step]`; `isIndex`: `[start]`. Null: not given. */
  | {
      readonly kind: 'slice';
      readonly start: number | null;
      readonly end: number | null;
      readonly step: number;
      readonly isIndex: boolean;
      readonly offset: number;
    }
  | { readonly kind: 'union'; readonly members: readonly (readonly JsonPathStep[])[] }
  | {
      readonly kind: 'filter';
      readonly left: readonly JsonPathStep[];
      readonly test: { readonly operator: Operator; readonly right: readonly JsonPathStep[] } | null;
      readonly offset: number;
    }
  | { readonly kind: 'literal'; readonly value: string | number | boolean };

export type Operator = '==' | '!=' | '<' | '<=' | '>' | '>=';

const OPERATORS: readonly Operator[] = ['==', '!=', '<=', '>=', '<', '>'];

/** An error in a template, or a value that a template cannot be applied to. */
export class JsonPathError extends Error {
  /** Position in the template: characters before the error. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.name = 'JsonPathError';
    this.offset = offset;
  }
}

/**
 * Parses a template: `{.items[*].name}`, `{range .items[?(@.x=="y")]}…{end}`, `{..name}`, `{['a','b']}`, `{"\n"}`.
 * In contrast to kubectl, a template without an action, an unclosed `range` and an unknown word are errors, and
 * `['a.b']` is the field `a.b`, if it exists, before the path from `a` to `b`.
 * @throws JsonPathError
 * @see kubernetes/client-go util/jsonpath (1.36)
 */
export function parseJsonPath(template: string): JsonPath {
  return { template, parts: new Parser(template).parse() };
}

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  parse(): readonly JsonPathPart[] {
    const parts: JsonPathPart[] = [];
    const open: { readonly steps: readonly JsonPathStep[]; readonly offset: number; readonly parts: JsonPathPart[] }[] = [];
    while (this.#at < this.#text.length) {
      const current = open.at(-1)?.parts ?? parts;
      const brace = this.#text.indexOf('{', this.#at);
      const end = brace < 0 ? this.#text.length : brace;
      if (end > this.#at) current.push({ kind: 'text', text: this.#text.slice(this.#at, end) });
      this.#at = end;
      if (brace < 0) break;
      this.#at += 1;
      const word = this.#word();
      if (word === 'end') {
        const range = open.pop();
        if (range === undefined) throw new JsonPathError('{end} without {range}', brace);
        this.#close(brace);
        const { steps, offset, parts: body } = range;
        (open.at(-1)?.parts ?? parts).push({ kind: 'range', steps, offset, body });
        continue;
      }
      const steps = this.#steps('}', brace);
      this.#close(brace);
      if (word === 'range') open.push({ steps, offset: brace, parts: [] });
      else current.push({ kind: 'path', steps, offset: brace });
    }
    const unclosed = open.at(-1);
    if (unclosed !== undefined) throw new JsonPathError('{range} without {end}', unclosed.offset);
    if (!this.#text.includes('{')) throw new JsonPathError('the template has no expression in braces, such as {.items}', 0);
    return parts;
  }

  /** `range` or `end` at the beginning of an action, consumed. */
  #word(): 'range' | 'end' | null {
    const start = this.#at;
    this.#spaces();
    for (const word of ['range', 'end'] as const)
      if (this.#text.startsWith(word, this.#at) && isTerminator(this.#text[this.#at + word.length])) {
        this.#at += word.length;
        return word;
      }
    this.#at = start;
    return null;
  }

  #close(brace: number): void {
    this.#spaces();
    if (this.#text[this.#at] !== '}') throw new JsonPathError('this { has no }', brace);
    this.#at += 1;
  }

  #spaces(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1;
  }

  /** The steps up to one of these characters, which is not consumed. */
  #steps(until: string, opening: number): readonly JsonPathStep[] {
    const steps: JsonPathStep[] = [];
    for (;;) {
      this.#spaces();
      const offset = this.#at;
      const next = this.#text[offset];
      if (next === undefined) throw new JsonPathError(`this ${this.#text[opening] ?? '{'} is not closed`, opening);
      if (until.includes(next)) return steps;
      if (steps.length > 0 && /[-+0-9"'A-Za-z]/.test(next)) throw new JsonPathError('unexpected value or word after a path', offset);
      if (next === '@' || next === '$') this.#at += 1;
      else if (next === '"' || next === "'") steps.push({ kind: 'literal', value: this.#quoted() });
      else if (next === '[') steps.push(...this.#bracket());
      else if (next === '.') steps.push(...this.#dot());
      else if (/[-+0-9]/.test(next)) steps.push({ kind: 'literal', value: this.#number() });
      else steps.push(this.#bareword());
    }
  }

  #dot(): readonly JsonPathStep[] {
    const offset = this.#at;
    this.#at += 1;
    if (this.#text[this.#at] === '.') {
      this.#at += 1;
      const name = this.#name();
      return [{ kind: 'recursive' }, ...(name === '' ? [] : [fieldOf(name)])];
    }
    const name = this.#name();
    // `{.}` is the whole document, and `.[0]` is `[0]`.
    if (name !== '') return [fieldOf(name)];
    const next = this.#text[this.#at];
    if (next === undefined || '}[)],'.includes(next) || /\s/.test(next)) return [];
    throw new JsonPathError('a field name is missing after the dot', offset);
  }

  /** A field name; a backslash keeps the next character, so that `kubernetes\.io/os` is one name. */
  #name(): string {
    let name = '';
    while (!isTerminator(this.#text[this.#at])) {
      if (this.#text[this.#at] === '\\') this.#at += 1;
      name += this.#text[this.#at] ?? '';
      this.#at += 1;
    }
    return name;
  }

  #bareword(): JsonPathStep {
    const offset = this.#at;
    const word = this.#name();
    if (word === 'true' || word === 'false') return { kind: 'literal', value: word === 'true' };
    if (!/^[A-Za-z_]/.test(word)) throw new JsonPathError(`unexpected character ${JSON.stringify(this.#text[offset])}`, offset);
    // kubectl reads `{items}` as a keyword and fails when the template is applied.
    throw new JsonPathError(`unknown word ${JSON.stringify(word)}; a field begins with a dot: .${word}`, offset);
  }

  #number(): number {
    const match = /^[-+]?[0-9]+(?:\.[0-9]+)?/.exec(this.#text.slice(this.#at, this.#at + 40));
    if (match === null) throw new JsonPathError('expected a number', this.#at);
    this.#at += match[0].length;
    return Number(match[0]);
  }

  #quoted(): string {
    const start = this.#at;
    const quote = this.#text[start] as string;
    let value = '';
    for (this.#at += 1; this.#at < this.#text.length; this.#at += 1) {
      const next = this.#text[this.#at] as string;
      if (next === quote) {
        this.#at += 1;
        return value;
      }
      if (next !== '\\') value += next;
      else {
        this.#at += 1;
        const escaped = this.#text[this.#at] ?? '';
        value += ESCAPES[escaped] ?? escaped;
      }
    }
    throw new JsonPathError('this quote is not closed', start);
  }

  #bracket(): readonly JsonPathStep[] {
    const offset = this.#at;
    if (this.#text.startsWith('[?(', offset)) return [this.#filter()];
    this.#at += 1;
    const members: (readonly JsonPathStep[])[] = [];
    for (;;) {
      this.#spaces();
      members.push(this.#member(offset));
      this.#spaces();
      const next = this.#text[this.#at];
      this.#at += 1;
      if (next === ']') break;
      if (next === undefined) throw new JsonPathError('this [ is not closed', offset);
      if (next !== ',') throw new JsonPathError(`unexpected ${JSON.stringify(next)} in brackets`, this.#at - 1);
    }
    return members.length === 1 ? (members[0] as readonly JsonPathStep[]) : [{ kind: 'union', members }];
  }

  /** `*`, `'key'`, `0`, `1:3`, `::2`, or in a union also `.field`. */
  #member(opening: number): readonly JsonPathStep[] {
    const next = this.#text[this.#at];
    if (next === '*') {
      this.#at += 1;
      return [{ kind: 'wildcard' }];
    }
    if (next === "'" || next === '"') {
      const start = this.#at;
      const name = this.#quoted();
      return [{ kind: 'key', name, path: splitKey(this.#text.slice(start + 1, this.#at - 1)) }];
    }
    if (next === '.' || next === '@' || next === '$') return this.#steps(',]', opening);
    const offset = this.#at;
    const text = /^[-:0-9]*/.exec(this.#text.slice(offset, offset + 60))?.[0] ?? '';
    const numbers = text.split(':');
    if (text === '' || numbers.length > 3 || numbers.some((part) => !/^(?:-?[0-9]+)?$/.test(part)))
      throw new JsonPathError('expected an index, a slice or a quoted key', offset);
    this.#at += text.length;
    const [start = null, end = null, step = null] = numbers.map((part) => (part === '' ? null : Number(part)));
    if (step !== null && step <= 0) throw new JsonPathError('the step of a slice must be at least 1', offset);
    return [{ kind: 'slice', start, end, step: step ?? 1, isIndex: numbers.length === 1, offset }];
  }

  #filter(): JsonPathStep {
    const offset = this.#at;
    this.#at += 3;
    const left = this.#steps(')=!<>', offset);
    const operator = OPERATORS.find((each) => this.#text.startsWith(each, this.#at));
    if (operator === undefined && this.#text[this.#at] !== ')')
      throw new JsonPathError('unknown operator; use ==, !=, <, <=, > or >=', this.#at);
    this.#at += operator?.length ?? 0;
    const test = operator === undefined ? null : { operator, right: this.#steps(')', offset) };
    if (left.length === 0 || test?.right.length === 0) throw new JsonPathError('a filter compares two values: ?(@.name=="x")', offset);
    if (!this.#text.startsWith(')]', this.#at)) throw new JsonPathError('this filter does not end with )]', offset);
    this.#at += 2;
    return { kind: 'filter', left, test, offset };
  }
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', a: '\x07' };

/** Splits at dots without a backslash. */
function splitKey(text: string): readonly string[] {
  const names = text.match(/(?:[^\\.]|\\[\s\S])+/g) ?? [];
  return names.map((name) => name.replace(/\\([\s\S])/g, '$1'));
}

function fieldOf(name: string): JsonPathStep {
  return name === '*' ? { kind: 'wildcard' } : { kind: 'field', name };
}

function isTerminator(character: string | undefined): boolean {
  return character === undefined || /[\s.,[\]$@{}()"'=!<>]/.test(character);
}
