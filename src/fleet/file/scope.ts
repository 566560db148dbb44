import { closestName } from '../../base/text/closest-name.ts';
import type { SourceScalar } from '../../codec/source.ts';
import { invalidTemplate, unknownVariable, variableCycle } from './fleet-problems.ts';
import type { ProblemCollector, SettingLocation } from './problem-collector.ts';

/** A variable's value with its type and its text: `01` stays `01` in a string. */
export type VariableText = Pick<SourceScalar, 'scalar' | 'text'>;

export interface Variables {
  /** The value as written, possibly a template, with its place. */
  find(name: string): { readonly value: VariableText; readonly place: () => SettingLocation } | undefined;
  names(): Iterable<string>;
}

/** The variables of one host, resolved on demand. */
export class Scope {
  readonly host: string;
  readonly #variables: Variables;
  readonly #findings: ProblemCollector;
  readonly #values = new Map<string, VariableText | null>();
  readonly #open: string[] = [];

  constructor(host: string, variables: Variables, findings: ProblemCollector) {
    this.host = host;
    this.#variables = variables;
    this.#findings = findings;
  }

  /** The text with resolved variables; null after an error, which has been reported. */
  text(text: string, place: () => SettingLocation): string | null {
    return isTemplate(text) ? (this.scalar(text, place)?.text ?? null) : text;
  }

  /** The same for a value: a template of a single variable has that variable's type. */
  scalar(text: string, place: () => SettingLocation): VariableText | null {
    const template = parseTemplate(text);
    if ('fault' in template) {
      this.#findings.addShared(template.fault, place(), () => invalidTemplate(text, template.fault));
      return null;
    }
    const [first] = template.parts;
    if (template.parts.length === 1 && typeof first === 'object') return this.lookUp(first.variable, place);
    let result = '';
    for (const part of template.parts) {
      const filled = typeof part === 'string' ? part : (this.lookUp(part.variable, place)?.text ?? null);
      if (filled === null) return null;
      result += filled;
    }
    return { text: result, scalar: { type: 'string', value: result } };
  }

  /** A variable's value, resolved at the first use. */
  lookUp(name: string, place: () => SettingLocation): VariableText | null {
    const known = this.#values.get(name);
    if (known !== undefined) return known;
    const found = this.#variables.find(name);
    if (found === undefined) {
      const [host, likely] = [this.host, closestName(name, this.#variables.names())];
      this.#findings.addShared(`no ${name}`, place(), (others) => unknownVariable(name, host, likely, others));
      return null;
    }
    const { value: written, place: writtenAt } = found;
    const value = written.scalar.type === 'string' && isTemplate(written.text) ? this.#workOut(name, written.text, writtenAt) : written;
    this.#values.set(name, value);
    return value;
  }

  #workOut(name: string, text: string, place: () => SettingLocation): VariableText | null {
    if (this.#open.includes(name)) {
      const circle = [...this.#open.slice(this.#open.indexOf(name)), name];
      this.#findings.addShared('circle', place(), () => variableCycle(circle));
      return null;
    }
    this.#open.push(name);
    const value = this.scalar(text, place);
    this.#open.pop();
    return value;
  }
}

const OPEN = '{{';
const NAME = /^[A-Za-z_]\w*$/;
const LITERAL = /^(?:"([^"\\]*)"|'([^'\\]*)')$/;

export function isTemplate(text: string): boolean {
  return text.includes(OPEN);
}

/**
 * Parses a template: `{{ name }}` is a variable, `{{ "{{" }}` literal braces. Filters and conditions are not
 * supported, so that the meaning of a file is visible in it.
 */
export function parseTemplate(
  text: string,
): { readonly parts: readonly (string | { readonly variable: string })[] } | { readonly fault: string } {
  const parts: (string | { readonly variable: string })[] = [];
  let at = 0;
  for (let open = text.indexOf(OPEN); open >= 0; open = text.indexOf(OPEN, at)) {
    if (open > at) parts.push(text.slice(at, open));
    const closing = /^\{\{(?:\s*"[^"]*"\s*|\s*'[^']*'\s*|[^{}"']*)\}\}/.exec(text.slice(open, open + 300))?.[0];
    if (closing === undefined) return { fault: 'contains {{ without a closing }}, or more than one name between the braces' };
    const inside = closing.slice(2, -2).trim();
    const literal = LITERAL.exec(inside);
    if (literal) parts.push(literal[1] ?? literal[2] ?? '');
    else if (NAME.test(inside)) parts.push({ variable: inside });
    else return { fault: inside === '' ? 'has an empty {{ }}' : 'contains more than the name of a variable between {{ and }}' };
    at = open + closing.length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return { parts };
}
