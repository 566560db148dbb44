import { quoteGo } from '../base/text/go-quote.ts';
import { Secret, SensitiveText } from '../base/text/secret.ts';
import { encodeYaml } from './yaml-encode.ts';

/**
 * Compiled templates by path below `templates/`, without `.hbs`: the path of the file on the host. The helpers encode
 * values; `src/template-options.json` lists them.
 */
export type Templates = ReadonlyMap<string, (context: unknown, options: { readonly helpers: Encoders }) => string>;

type Encoders = Readonly<Record<string, (...values: readonly unknown[]) => string>>;

/**
 * Renders one file. Handlebars only prints: every value passes an encoder for the target syntax, and each
 * encoder throws on a missing value (Handlebars' own `strict` does not cover `#each` and helper arguments).
 * @param path on the host, e.g. `/var/lib/kubelet/instance-config.yaml`
 * @returns a string, or SensitiveText when the context contained a Secret
 */
export function renderTemplate(templates: Templates, path: string, context: Readonly<Record<string, unknown>>): string | SensitiveText {
  const template = templates.get(path.replace(/^\//, ''));
  if (template === undefined) throw new Error(`no template for ${path}`);
  const secrets: Secret[] = [];
  const mark = unusedMark(context);
  const text = template(context, { helpers: encoders({ secrets, mark }) });
  if (secrets.length === 0) return text;
  const [first = '', ...rest] = text.split(mark);
  const parts = rest.flatMap((part) => {
    const end = part.indexOf(END);
    return [secrets[Number(part.slice(0, end))] as Secret, part.slice(end + END.length)];
  });
  return new SensitiveText([first, ...parts]);
}

/** Secrets in a rendered text are `mark`, their index and `END`. */
interface Hidden {
  readonly secrets: Secret[];
  readonly mark: string;
}

const END = '⟧';

/** A marker that no value of the context contains. */
function unusedMark(context: unknown): string {
  const texts = JSON.stringify(context);
  let mark = '⟦';
  while (texts.includes(mark)) mark += '⟦';
  return mark;
}

function encoders(hidden: Hidden): Encoders {
  return {
    yaml: (value) => encodeValue(value, hidden),
    goQuote: (value) => quoteGo(requireText(value, 'goQuote')),
    line: (value) => requireMatch(value, /^[^\n\0]*$/, 'a line'),
    word: (value) => requireMatch(value, /^[^\s\0]+$/, 'a word'),
    unitWord: (value) => encodeUnitWord(requireText(value, 'unitWord')),
    unitPath: (value) => quoteUnitWord(requireText(value, 'unitPath')),
    environmentPart: (value) => encodeEnvironmentPart(value, hidden),
    execWords: (words) => requireList(words, 'execWords').map(encodeExecWord).join(' '),
  };
}

/** A string on one line; other values as a block. */
function encodeValue(value: unknown, hidden: Hidden): string {
  if (typeof value === 'string') return encodeInLine(value);
  return encodeYaml(hideSecrets(value, hidden) as never).replace(/\n$/, '');
}

/** Replaces each Secret by a marker; its value is already encoded as YAML. */
function hideSecrets(value: unknown, hidden: Hidden): unknown {
  if (value instanceof Secret) return hide(new Secret(encodeInLine(value.reveal())), hidden);
  if (Array.isArray(value)) return value.map((item) => hideSecrets(item, hidden));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hideSecrets(item, hidden)]));
  if (value === undefined) throw new Error('a template got an undefined value');
  return value;
}

/** Encodes a string as YAML that fits on one line: a block scalar would need its own indentation. */
function encodeInLine(text: string): string {
  const encoded = encodeYaml(text).replace(/\n$/, '');
  return encoded.includes('\n') ? JSON.stringify(text) : encoded;
}

/** A path in a unit file: `%` doubled; characters that systemd would split at are rejected. */
function encodeUnitWord(text: string): string {
  if (!/^[^\s"'\\;$]+$/.test(text)) throw new Error(`not a valid word of a unit file: ${text}`);
  return text.replaceAll('%', '%%');
}

/** An item of a list in a unit file: quotes around spaces, `%` doubled. @see systemd.syntax(7), systemd.unit(5) */
function quoteUnitWord(text: string): string {
  const plain = text.replaceAll('%', '%%');
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replace(/[\\"]/g, '\\$&')}"`;
}

/** A part of a value in an environment file of systemd, which needs no quotes. @see systemd.exec(5) EnvironmentFile= */
function encodeEnvironmentPart(value: unknown, hidden: Hidden): string {
  const plain = value instanceof Secret ? value.reveal() : requireText(value, 'environmentPart');
  if (!/^[^\s"'\\\0]*$/.test(plain)) throw new Error('not a valid value of an environment file');
  return value instanceof Secret ? hide(value, hidden) : plain;
}

function hide(secret: Secret, { secrets, mark }: Hidden): string {
  return `${mark}${secrets.push(secret) - 1}${END}`;
}

/** A word of a command line in a unit file, in which `$` is doubled as well. */
function encodeExecWord(word: unknown): string {
  return quoteUnitWord(requireText(word, 'execWords').replaceAll('$', '$$$$'));
}

function requireMatch(value: unknown, pattern: RegExp, what: string): string {
  const text = requireText(value, what);
  if (!pattern.test(text)) throw new Error(`not ${what} of a text file: ${JSON.stringify(text)}`);
  return text;
}

function requireList(value: unknown, helper: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${helper} got ${typeof value} instead of a list`);
  return value;
}

function requireText(value: unknown, helper: string): string {
  if (typeof value !== 'string') throw new Error(`${helper} got ${typeof value} instead of a string`);
  return value;
}
