import { usageError } from '../../base/errors.ts';

/**
 * Splits the value of `--set` at the first `=`. Reads no catalogue, so that a command line can be checked before any host.
 * @throws AppError USAGE (exit code 2) without a field or without `=`
 */
export function splitSetting(text: string): { readonly field: string; readonly given: string } {
  const equals = text.indexOf('=');
  if (equals > 0) return { field: text.slice(0, equals), given: text.slice(equals + 1) };
  const missing = equals === 0 ? 'has no field' : 'has no value';
  throw usageError(`--set ${text} ${missing}`, 'Write --set FIELD=VALUE, for example --set maxPods=50');
}
