import Handlebars from 'handlebars';
import type { Arg } from '../../base/arg.ts';
import { quoteGo } from '../../base/text/go-quote.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { renderFlagsEnv } from '../../kubelet/flags-env.ts';

/** Template texts by path below `templates/`, without `.hbs`: the path of the file on the host. */
export type Templates = ReadonlyMap<string, string>;

/**
 * Renders one file. Handlebars only prints: every value passes an encoder for the target syntax, and each
 * encoder throws on a missing value (Handlebars' own `strict` does not cover `#each` and helper arguments).
 * @param path on the host, e.g. `/var/lib/kubelet/instance-config.yaml`
 * @returns a string, or SensitiveText when the context contained a Secret
 */
export function renderTemplate(templates: Templates, path: string, context: Readonly<Record<string, unknown>>): string | SensitiveText {
  const source = templates.get(path.replace(/^\//, ''));
  if (source === undefined) throw new Error(`no template for ${path}`);
  const secrets: Secret[] = [];
  const text = compiled(source)(context, { helpers: encoders(secrets) });
  if (secrets.length === 0) return text;
  const parts = text.split(/⟦(\d+)⟧/u).map((part, i) => (i % 2 === 0 ? part : (secrets[Number(part)] as Secret)));
  return new SensitiveText(parts);
}

const HANDLEBARS = Handlebars.create();
const COMPILED = new Map<string, Handlebars.TemplateDelegate>();

/** Cached, since compiling is many times slower than rendering. */
function compiled(source: string): Handlebars.TemplateDelegate {
  const known = COMPILED.get(source);
  if (known !== undefined) return known;
  const made = HANDLEBARS.compile(source, { strict: true, noEscape: true, knownHelpersOnly: true, knownHelpers: KNOWN_HELPERS });
  COMPILED.set(source, made);
  return made;
}

const KNOWN_HELPERS = { yaml: true, goQuote: true, flagsEnv: true, unitWord: true };

function encoders(secrets: Secret[]): Record<string, Handlebars.HelperDelegate> {
  return {
    yaml: (value: unknown) => encodeYaml(hideSecrets(value, secrets) as never).replace(/\n$/, ''),
    goQuote: (value: unknown) => quoteGo(requireText(value, 'goQuote')),
    flagsEnv: (flags: unknown) => renderFlagsEnv(requireList(flags, 'flagsEnv') as readonly Arg[]).replace(/\n$/, ''),
    unitWord: (value: unknown) => encodeUnitWord(requireText(value, 'unitWord')),
  };
}

/** Replaces each Secret by a marker; its value is already encoded as YAML. */
function hideSecrets(value: unknown, secrets: Secret[]): unknown {
  if (value instanceof Secret) {
    secrets.push(new Secret(encodeInLine(value.reveal())));
    return `⟦${secrets.length - 1}⟧`;
  }
  if (Array.isArray(value)) return value.map((item) => hideSecrets(item, secrets));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, hideSecrets(item, secrets)]));
  if (value === undefined) throw new Error('a template got an undefined value');
  if (typeof value === 'string' && value.includes('⟦')) throw new Error('a value contains the marker reserved for secrets: ⟦');
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

function requireText(value: unknown, helper: string): string {
  if (typeof value !== 'string') throw new Error(`${helper} got ${typeof value} instead of a string`);
  return value;
}

function requireList(value: unknown, helper: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`${helper} got ${typeof value} instead of a list`);
  return value;
}
