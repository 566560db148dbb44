import type { Position, Problem } from '../base/errors.ts';
import type { ScalarFault } from './scalar.ts';

/** Problems of typed documents, such as KubeletConfiguration. */

/** Where a problem is: its place in the file and the field's path. */
export interface FieldPlace {
  readonly path: string;
  readonly position: Position;
}

/** The document is empty, or `apiVersion` or `kind` is missing. */
export function missingHeader(member: 'apiVersion' | 'kind', expected: string, position: Position): Problem {
  return {
    code: 'CONFIG_MISSING_HEADER',
    message: `there is no ${member}`,
    hint: `Begin the document with ${member}: ${expected}`,
    path: member,
    position,
  };
}

/** The document is of another kind or version. */
export function wrongKind(member: 'apiVersion' | 'kind', found: string, expected: string, position: Position): Problem {
  return { code: 'CONFIG_WRONG_KIND', message: `is ${JSON.stringify(found)}, not ${expected}`, path: member, position };
}

/** A field this kubelet does not know. With `lenient` it is a warning: the kubelet reads on without it. */
export function unknownField(place: FieldPlace, lenient: boolean, hint?: string): Problem {
  return { code: 'CONFIG_UNKNOWN_FIELD', message: 'unknown field', ...withHint(hint), ...severity(lenient), ...place };
}

/** A key that stands twice in one mapping: the last one counts. With `lenient` it is a warning. */
export function duplicateField(place: FieldPlace, lenient: boolean, firstLine: number): Problem {
  const message = `given twice, first in line ${firstLine}`;
  return { code: 'CONFIG_DUPLICATE_FIELD', message, hint: 'Remove one of them: the last one counts', ...severity(lenient), ...place };
}

/** A list, mapping or single value where another of these belongs. */
export function wrongShape(
  place: FieldPlace,
  { expected, found, hint }: { readonly expected: string; readonly found: string; readonly hint: string | undefined },
): Problem {
  return { code: 'CONFIG_WRONG_TYPE', message: `must be ${expected}, not ${found}`, ...withHint(hint), ...place };
}

const CODES = {
  'wrong-type': 'CONFIG_WRONG_TYPE',
  'out-of-range': 'CONFIG_OUT_OF_RANGE',
  'invalid-duration': 'CONFIG_INVALID_DURATION',
  'invalid-quantity': 'CONFIG_INVALID_QUANTITY',
  'invalid-timestamp': 'CONFIG_INVALID_TIMESTAMP',
} as const satisfies { readonly [K in ScalarFault['kind']]: string };

/** A single value its field's type refuses. */
export function wrongScalar(place: Omit<FieldPlace, 'position'> & { readonly position?: Position }, fault: ScalarFault): Problem {
  return { code: CODES[fault.kind], message: fault.message, ...withHint(fault.hint), ...place };
}

/** A file that begins like JSON but is none. */
export function invalidJson(position: Position): Problem {
  const message = 'not valid JSON, as which the kubelet reads a file that begins with {';
  return { code: 'CONFIG_SYNTAX', message, hint: 'Write plain JSON, or YAML that does not begin with {', position };
}

function severity(lenient: boolean): { readonly severity?: 'warning' } {
  return lenient ? { severity: 'warning' } : {};
}

function withHint(hint: string | undefined): { readonly hint?: string } {
  return hint === undefined ? {} : { hint };
}
