import type { Problem } from '../../base/errors.ts';
import { formatGoDuration, parseGoDuration } from '../../base/text/go-duration.ts';
import { Secret } from '../../base/text/secret.ts';
import { invalidFlag } from '../../codec/document-problems.ts';
import type { Taint } from '../../kube/taint.ts';
import { isBootstrapToken, isCertificateKey, TOKEN_FORM } from './bootstrap-token.ts';
import type { DurationText } from './model.ts';

/** A value of a flag on the command line. */
export type FlagValue = string | number | boolean | readonly string[] | Secret;

/** Parses a flag value, or returns the problem. */
export type FlagReader<T> = (value: FlagValue) => T | Problem;

export function isProblem(value: unknown): value is Problem {
  return typeof value === 'object' && value !== null && 'code' in value && 'message' in value;
}

/** Any string; the value is validated with the model. */
export const text: FlagReader<string> = (value) => (value instanceof Secret ? value.reveal() : String(value));

/** Comma-separated values, or a list of them. */
export const list: FlagReader<readonly string[]> = (value) =>
  (Array.isArray(value) ? (value as readonly string[]) : [String(value)]).flatMap((item) => item.split(',')).filter((item) => item !== '');

/** A boolean as accepted by Go flags. */
export const boolean: FlagReader<boolean> = (value) => {
  if (typeof value === 'boolean') return value;
  const parsed = parseGoBool(String(value));
  return parsed ?? invalidFlag(String(value), 'true or false');
};

/** A decimal integer; the range is validated with the model. */
export const integer: FlagReader<number> = (value) =>
  /^[-+]?[0-9]{1,10}$/.test(String(value)) ? Number(value) : invalidFlag(String(value), 'an integer');

/** A duration in Go's syntax; `0` needs no unit. */
export const duration: FlagReader<DurationText> = (value) => {
  const ns = parseGoDuration(String(value));
  return ns === null ? invalidFlag(String(value), 'a duration such as 24h or 90s') : formatGoDuration(ns);
};

/** A bootstrap token; its value never appears in the problem. */
export const token: FlagReader<Secret> = (value) => {
  const written = value instanceof Secret ? value.reveal() : String(value);
  return isBootstrapToken(written)
    ? new Secret(written)
    : invalidFlag(null, `a bootstrap token of the form ${TOKEN_FORM}`, 'CONFIG_INVALID_TOKEN');
};

/** A certificate key; its value never appears in the problem. */
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

/** `key=value:Effect` or `key:Effect`, as kubectl taint takes them; key and value are validated with the model. */
export const taints: FlagReader<readonly Taint[]> = (value) => {
  const found: Taint[] = [];
  for (const item of list(value) as readonly string[]) {
    const [, key, text, effect] = /^([^=:]+)(?:=([^=:]*))?:(NoSchedule|PreferNoSchedule|NoExecute)$/.exec(item) ?? [];
    if (key === undefined)
      return invalidFlag(item, 'key=value:effect or key:effect with the effect NoSchedule, PreferNoSchedule or NoExecute');
    found.push({ key, ...(text === undefined ? {} : { value: text }), effect: effect as Taint['effect'] });
  }
  return found;
};

function parseGoBool(written: string): boolean | null {
  if (/^(?:1|t|T|true|TRUE|True)$/.test(written)) return true;
  return /^(?:0|f|F|false|FALSE|False)$/.test(written) ? false : null;
}

/**
 * Command-line flags by kubeadm's names, without dashes, to be merged over the models of a file; positional arguments
 * are included (`api-server-endpoint`, `bootstrap-token`, `version`). A flag overrides the file: kubeadm forbids most
 * combinations, here only contradictions are errors. The values are validated once, after merging: load the file with
 * `check: 'structure'`. Other flags, and undefined or empty ones, are ignored.
 */
export type Flags = Readonly<Record<string, FlagValue | undefined>>;
