import type { Problem } from '../../base/errors.ts';
import { formatGoDuration, parseGoDuration } from '../../base/text/go-duration.ts';
import { Secret } from '../../base/text/secret.ts';
import { invalidFlag } from '../../codec/document-problems.ts';
import { isBootstrapToken, isCertificateKey, TOKEN_FORM } from './bootstrap-token.ts';
import type { DurationText } from './model.ts';

/** What a command line gives for a flag. */
export type FlagValue = string | number | boolean | readonly string[] | Secret;

/** Reads a flag's value, or says what is wrong with it. */
export type FlagReader<T> = (value: FlagValue) => T | Problem;

/** Tells a problem from a value that was read. */
export function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'code' in value && 'message' in value;
}

/** Any text; what it may be is judged with the model. */
export const text: FlagReader<string> = (value) => (value instanceof Secret ? value.reveal() : String(value));

/** Values separated by commas, or a list of such. */
export const list: FlagReader<readonly string[]> = (value) =>
  (Array.isArray(value) ? (value as readonly string[]) : [String(value)]).flatMap((item) => item.split(',')).filter((item) => item !== '');

/** A boolean as Go's flags take it. */
export const boolean: FlagReader<boolean> = (value) => {
  if (typeof value === 'boolean') return value;
  const parsed = parseGoBool(String(value));
  return parsed ?? invalidFlag(String(value), 'true or false');
};

/** A decimal number; the range is judged with the model. */
export const integer: FlagReader<number> = (value) =>
  /^[-+]?[0-9]{1,10}$/.test(String(value)) ? Number(value) : invalidFlag(String(value), 'an integer');

/** A duration in Go's syntax; `0` needs no unit. */
export const duration: FlagReader<DurationText> = (value) => {
  const ns = parseGoDuration(String(value));
  return ns === null ? invalidFlag(String(value), 'a duration such as 24h or 90s') : formatGoDuration(ns);
};

/** A bootstrap token; its value never stands in the problem. */
export const token: FlagReader<Secret> = (value) => {
  const written = value instanceof Secret ? value.reveal() : String(value);
  return isBootstrapToken(written)
    ? new Secret(written)
    : invalidFlag(null, `a bootstrap token of the form ${TOKEN_FORM}`, 'CONFIG_INVALID_TOKEN');
};

/** A certificate key; its value never stands in the problem. */
export const certificateKey: FlagReader<Secret> = (value) => {
  const written = value instanceof Secret ? value.reveal() : String(value);
  return isCertificateKey(written) ? new Secret(written) : invalidFlag(null, '64 hexadecimal digits', 'CONFIG_INVALID_CERTIFICATE_KEY');
};

/** `Name=true,Other=false` */
export const featureGates: FlagReader<Readonly<Record<string, boolean>>> = (value) => {
  const gates = new Map<string, boolean>();
  for (const item of list(value) as readonly string[]) {
    const [name = '', on, ...more] = item.split('=').map((part) => part.trim());
    const parsed = on === undefined || more.length > 0 ? null : parseGoBool(on);
    if (name === '' || parsed === null) return invalidFlag(item, 'Name=true or Name=false');
    gates.set(name, parsed);
  }
  return Object.fromEntries(gates);
};

function parseGoBool(written: string): boolean | null {
  if (/^(?:1|t|T|true|TRUE|True)$/.test(written)) return true;
  return /^(?:0|f|F|false|FALSE|False)$/.test(written) ? false : null;
}

/**
 * Lay flags of the command line, under kubeadm's names, over the models of a file. A flag wins over the file. kubeadm forbids most
 * mixtures; here only contradictions are errors. The values are judged afterwards, once: load the file with `check: 'structure'`.
 * Names are without dashes; positional arguments are among them (`api-server-endpoint`, `bootstrap-token`, `version`). Flags of other names, and those that
 * are undefined or empty, do not count.
 */
export type Flags = Readonly<Record<string, FlagValue | undefined>>;
