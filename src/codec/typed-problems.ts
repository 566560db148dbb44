import type { Position, Problem } from '../base/errors.ts';
import type { ScalarFault } from './scalar.ts';

/** The location of a field in a file. The path is as written; it differs from the model's when an older version was converted. */
export interface FieldLocation {
  readonly path: string;
  readonly position: Position;
}

export function missingTypedHeader(member: 'apiVersion' | 'kind', expected: string, position: Position): Problem {
  const [message, hint] = [`${member} is missing`, `Add ${member}: ${expected}`];
  return { code: 'CONFIG_MISSING_HEADER', message, hint, path: member, position };
}

export function wrongKind(member: 'apiVersion' | 'kind', found: string, expected: string, position: Position): Problem {
  return { code: 'CONFIG_WRONG_KIND', message: `is ${JSON.stringify(found)}, expected ${expected}`, path: member, position };
}

/** With `lenient` a warning: a kubelet of this version ignores the field. */
export function unknownTypedField(place: FieldLocation, lenient: boolean, hint?: string): Problem {
  return { code: 'CONFIG_UNKNOWN_FIELD', message: 'unknown field', hint, ...severity(lenient), ...place };
}

/** A duplicate key of an object, of which the last is effective. With `lenient` it is a warning. */
export function duplicateTypedField(place: FieldLocation, lenient: boolean, firstLine: number): Problem {
  const message = `duplicate field, first on line ${firstLine}`;
  const hint = 'Remove one of the two fields; the last one takes precedence';
  return { code: 'CONFIG_DUPLICATE_FIELD', message, hint, ...severity(lenient), ...place };
}

export function wrongShape(
  place: FieldLocation,
  { expected, found, hint }: { readonly expected: string; readonly found: string; readonly hint: string | undefined },
): Problem {
  return { code: 'CONFIG_WRONG_TYPE', message: `must be ${expected}, not ${found}`, hint, ...place };
}

const CODES = {
  'wrong-type': 'CONFIG_WRONG_TYPE',
  'out-of-range': 'CONFIG_OUT_OF_RANGE',
  'invalid-duration': 'CONFIG_INVALID_DURATION',
  'invalid-quantity': 'CONFIG_INVALID_QUANTITY',
  'invalid-timestamp': 'CONFIG_INVALID_TIMESTAMP',
} as const satisfies { readonly [K in ScalarFault['kind']]: string };

export function wrongScalar(place: Omit<FieldLocation, 'position'> & { readonly position?: Position }, fault: ScalarFault): Problem {
  return { code: CODES[fault.kind], message: fault.message, hint: fault.hint, ...place };
}

/** A file that starts like JSON but is not valid JSON. */
export function invalidJson(position: Position): Problem {
  const message = 'not valid JSON: the kubelet parses a file that begins with { as JSON';
  return { code: 'CONFIG_SYNTAX', message, hint: 'Use valid JSON, or YAML that does not begin with {', position };
}

function severity(lenient: boolean): { readonly severity?: 'warning' } {
  return lenient ? { severity: 'warning' } : {};
}
