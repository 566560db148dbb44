import type { Problem } from '../../base/errors.ts';
import type { SecretSource } from '../../host/operation/install-model.ts';
import { invalidFleetValue } from './fleet-problems.ts';

/** Reads the source of a secret: the file has exactly one of both members. */
export function secretSource(
  what: string,
  { env, file }: { readonly env?: string | undefined; readonly file?: string | undefined },
  report: (problem: Problem) => void,
): SecretSource {
  if ((env === undefined) === (file === undefined))
    report(invalidFleetValue(`${what} must have exactly one source`, 'Set either env or file'));
  return env !== undefined ? { env } : { file: file ?? '' };
}
