import { labelKey, labelValue } from './name-rules.ts';

export type Labels = Readonly<Record<string, string>>;

export interface LabelSelector {
  /** As written, for the API server. */
  readonly text: string;
  readonly requirements: readonly LabelRequirement[];
  readonly matches: (labels: Labels) => boolean;
}

/** As in `matchExpressions` of an object, which does not have Gt and Lt. */
export interface LabelRequirement {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';
  readonly values: readonly string[];
}

/** A label selector that is not valid; the message is that of the API server. */
export class LabelSelectorError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LabelSelectorError';
  }
}

/**
 * Parses `a`, `!a`, `a=b`, `a==b`, `a!=b`, `a in (x,y)`, `a notin (x,y)`, `a>1`, `a<1`, joined by commas. An
 * empty selector matches everything. @throws LabelSelectorError
 * @see k8s.io/apimachinery pkg/labels (1.36)
 */
export function parseLabelSelector(text: string): LabelSelector {
  const requirements = new LabelSelectorParser(text).parse();
  return { text, requirements, matches: (labels) => requirements.every((one) => matchesRequirement(one, labels)) };
}

const BINARY = 'in, notin, =, ==, !=, gt, lt';

class LabelSelectorParser {
  readonly #tokens: readonly string[];
  #next = 0;

  constructor(text: string) {
    this.#tokens = text.match(/!=|==|[=!<>(),]|[^\s=!<>(),]+/g) ?? [];
  }

  parse(): readonly LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    if (this.#peek() === '') return requirements;
    for (;;) {
      const first = this.#peek();
      if (first !== '!' && !isWord(first)) throw new LabelSelectorError(`found '${first}', expected: !, identifier, or 'end of string'`);
      requirements.push(this.#requirement());
      const after = this.#take();
      if (after === '') return requirements;
      if (after !== ',') throw new LabelSelectorError(`found '${after}', expected: ',' or 'end of string'`);
      const following = this.#peek();
      if (following !== '!' && !isWord(following)) throw new LabelSelectorError(`found '${following}', expected: identifier after ','`);
    }
  }

  #requirement(): LabelRequirement {
    const absent = this.#peek() === '!';
    if (absent) this.#take();
    const key = this.#take();
    if (!isWord(key)) throw unparsable(`found '${key}', expected: identifier`);
    const wrong = labelKey(key);
    if (wrong.length > 0) throw unparsable(`<nil>: Invalid value: ${JSON.stringify(key)}: ${wrong.join('; ')}`);
    if (absent) return { key, operator: 'DoesNotExist', values: [] };
    const operator = this.#peek();
    if (operator === '' || operator === ',') return { key, operator: 'Exists', values: [] };
    this.#take();
    return this.#comparison(key, operator);
  }

  #comparison(key: string, operator: string): LabelRequirement {
    switch (operator) {
      case '=':
      case '==':
        return { key, operator: 'In', values: checked(key, [this.#value()]) };
      case '!=':
        return { key, operator: 'NotIn', values: checked(key, [this.#value()]) };
      case 'in':
        return { key, operator: 'In', values: checked(key, this.#values()) };
      case 'notin':
        return { key, operator: 'NotIn', values: checked(key, this.#values()) };
      case '>':
      case '<':
        return { key, operator: operator === '>' ? 'Gt' : 'Lt', values: [integer(this.#value())] };
      default:
        throw unparsable(`found '${operator}', expected: ${BINARY}`);
    }
  }

  #value(): string {
    const next = this.#peek();
    if (next === '' || next === ',') return '';
    if (!isWord(next)) throw unparsable(`found '${next}', expected: identifier`);
    return this.#take();
  }

  #values(): readonly string[] {
    const open = this.#take();
    if (open !== '(') throw unparsable(`found '${open}' expected: '('`);
    const values: string[] = [];
    for (;;) {
      values.push(isWord(this.#peek()) ? this.#take() : '');
      const next = this.#take();
      if (next === ')') return values;
      if (next !== ',') throw unparsable(`found '${next}', expected: ',' or ')'`);
    }
  }

  #peek(): string {
    return this.#tokens[this.#next] ?? '';
  }

  #take(): string {
    const token = this.#peek();
    this.#next += 1;
    return token;
  }
}

function isWord(token: string): boolean {
  return token !== '' && !/^[=!<>(),]/.test(token);
}

function checked(key: string, values: readonly string[]): readonly string[] {
  for (const [index, value] of values.entries()) {
    const wrong = labelValue(value);
    if (wrong.length > 0) throw unparsable(`values[${index}][${key}]: Invalid value: ${JSON.stringify(value)}: ${wrong.join('; ')}`);
  }
  return values;
}

function integer(value: string): string {
  if (/^[+-]?\d+$/.test(value)) return value;
  throw unparsable(`values[0]: Invalid value: ${JSON.stringify(value)}: for 'Gt', 'Lt' operators, the value must be an integer`);
}

/** NotIn is also true for an absent label. */
function matchesRequirement({ key, operator, values }: LabelRequirement, labels: Labels): boolean {
  const own = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return own !== undefined && values.includes(own);
    case 'NotIn':
      return own === undefined || !values.includes(own);
    case 'Exists':
      return own !== undefined;
    case 'DoesNotExist':
      return own === undefined;
    default: {
      if (own === undefined || !/^[+-]?\d+$/.test(own)) return false;
      const [value = '0'] = values;
      return operator === 'Gt' ? BigInt(own) > BigInt(value) : BigInt(own) < BigInt(value);
    }
  }
}

function unparsable(why: string): LabelSelectorError {
  return new LabelSelectorError(`unable to parse requirement: ${why}`);
}
