import type { Json, JsonObject } from '../../src/base/json.ts';
import type { NameRule } from '../../src/kube/name-rules.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { qualifiedResource } from './served-kinds.ts';

/** A response other than the requested object: thrown where the reason is found, sent as a Status object. */
export class StatusError extends Error {
  readonly status: JsonObject;
  readonly httpStatus: number;

  constructor(httpStatus: number, message: string, more: { readonly reason?: string; readonly details?: JsonObject } = {}) {
    super(message);
    this.name = 'StatusError';
    this.httpStatus = httpStatus;
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(more.reason === undefined ? {} : { reason: more.reason }),
      ...(more.details === undefined ? {} : { details: more.details }),
      code: httpStatus,
    };
  }
}

/** One validation error of a field, in the API server's words: `field: message`. */
export interface Cause {
  readonly field: string;
  readonly reason:
    | 'FieldValueInvalid'
    | 'FieldValueRequired'
    | 'FieldValueForbidden'
    | 'FieldValueDuplicate'
    | 'FieldValueNotSupported'
    | 'FieldValueTooLong';
  readonly message: string;
}

/** An invalid value; `why` is the rule in the server's words. */
export const invalidValue = (field: string, value: Json, why: string): Cause => {
  return {
    field,
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${typeof value === 'string' ? goQuote(value) : String(value)}: ${why}`,
  };
};
/** The errors of a rule for a field. */
export const nameCauses = (rule: NameRule, field: string, text: string): readonly Cause[] =>
  rule(text).map((why) => invalidValue(field, text, why));
/** A missing required member. */
export const requiredValue = (field: string, why = ''): Cause => {
  return { field, reason: 'FieldValueRequired', message: `Required value${why === '' ? '' : `: ${why}`}` };
};
/** A forbidden member or a forbidden change. */
export const forbiddenValue = (field: string, why: string): Cause => ({
  field,
  reason: 'FieldValueForbidden',
  message: `Forbidden: ${why}`,
});
/** An object beyond the size limit. */
export const tooLong = (field: string, maxBytes: number): Cause => {
  return { field, reason: 'FieldValueTooLong', message: `Too long: may not be more than ${maxBytes} bytes` };
};
/** A value outside of an enumeration. */
export const unsupportedValue = (field: string, value: string, supported: readonly string[]): Cause => {
  const message = `Unsupported value: ${goQuote(value)}: supported values: ${supported.map(goQuote).join(', ')}`;
  return { field, reason: 'FieldValueNotSupported', message };
};

/** 400, in the server's words. */
export const badRequest = (message: string) => new StatusError(400, message, { reason: 'BadRequest' });

/** 401: invalid credentials. */
export const unauthorized = () => new StatusError(401, 'Unauthorized', { reason: 'Unauthorized' });

/** 403 of an authorizer or of admission. `name` may be empty. */
export const forbidden = (type: Pick<ResourceType, 'group' | 'plural'>, name: string, why: string) =>
  new StatusError(403, `${qualifiedResource(type)}${name === '' ? '' : ` ${goQuote(name)}`} is forbidden: ${why}`, {
    reason: 'Forbidden',
    details: details(type, name),
  });

/** 403 for a path without a resource. */
export const forbiddenPath = (why: string) => new StatusError(403, `forbidden: ${why}`, { reason: 'Forbidden', details: {} });

/** 404 for an object. */
export const notFound = (type: ResourceType, name: string) =>
  new StatusError(404, `${qualifiedResource(type)} ${goQuote(name)} not found`, { reason: 'NotFound', details: details(type, name) });

/** 404 for a path that matches no resource of the server. */
export const noSuchResource = () =>
  new StatusError(404, 'the server could not find the requested resource', { reason: 'NotFound', details: {} });

/** 405. */
export const methodNotAllowed = () =>
  new StatusError(405, 'the server does not allow this method on the requested resource', { reason: 'MethodNotAllowed', details: {} });

/** 409 for an existing name. */
export const alreadyExists = (type: ResourceType, name: string) =>
  new StatusError(409, `${qualifiedResource(type)} ${goQuote(name)} already exists`, {
    reason: 'AlreadyExists',
    details: details(type, name),
  });

/** 409: the object was changed meanwhile, or a precondition failed. */
export const conflict = (type: ResourceType, name: string, why: string, named = qualifiedResource(type)) =>
  new StatusError(409, `Operation cannot be fulfilled on ${named} ${goQuote(name)}: ${why}`, {
    reason: 'Conflict',
    details: named === qualifiedResource(type) ? details(type, name) : { ...details(type, name), kind: type.kind },
  });

/** 410: the requested resourceVersion has expired. */
export const expired = (message: string) => new StatusError(410, message, { reason: 'Expired' });

/** 415. `details` where a real server sends them empty. */
export const unsupportedMediaType = (message: string, details?: JsonObject) =>
  new StatusError(415, message, { reason: 'UnsupportedMediaType', ...(details ? { details } : {}) });

/** 422 with all causes in one line. */
export const invalid = (kind: { readonly group: string; readonly kind: string }, name: string, causes: readonly Cause[]) => {
  const texts = [...new Set(causes.map(({ field, message }) => `${field}: ${message}`))];
  const reported = texts.length === 1 ? texts[0] : `[${texts.join(', ')}]`;
  const named = kind.kind === '' ? '' : kind.group === '' ? kind.kind : `${kind.kind}.${kind.group}`;
  return new StatusError(422, `${named} ${goQuote(name)} is invalid: ${reported}`, {
    reason: 'Invalid',
    details: {
      ...(name === '' ? {} : { name }),
      ...(kind.group === '' ? {} : { group: kind.group }),
      ...(kind.kind === '' ? {} : { kind: kind.kind }),
      causes: causes.map(({ reason, message, field }) => ({ reason, message, field })),
    },
  });
};

/** 422 for a patch that cannot be applied. */
export const unprocessablePatch = () =>
  new StatusError(422, 'the server rejected our request due to an error in our request', { reason: 'Invalid', details: {} });

/** 504: the requested resourceVersion is in the future. */
export const versionTooLarge = (asked: string, current: number) =>
  new StatusError(504, `Timeout: Too large resource version: ${asked}, current: ${current}`, {
    reason: 'Timeout',
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }], retryAfterSeconds: 1 },
  });

function details(type: Pick<ResourceType, 'group' | 'plural'>, name: string): JsonObject {
  return { ...(name === '' ? {} : { name }), ...(type.group === '' ? {} : { group: type.group }), kind: type.plural };
}

/** Go's %q of a printable string. */
export function goQuote(text: string): string {
  return JSON.stringify(text);
}
