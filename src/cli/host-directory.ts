import { isAbsolute, resolve } from 'node:path';
import { usageError } from '../base/errors.ts';
import { trimTrailing } from '../base/text/trim-trailing.ts';
import type { CommandOptions } from './command.ts';
import { flagList, flagText } from './read-options.ts';

/**
 * A directory of the hosts that is given on the command line: on this machine it may be relative to where the command is run.
 * @param option as commander names it, e.g. `certDir`
 * @param flag as the user writes it
 */
export function hostDirectory(options: CommandOptions, option: string, flag: string): string | undefined {
  const text = flagText(options, option);
  if (text === undefined || isAbsolute(text)) return text && (trimTrailing(text, '/') || '/');
  if (flagList(options, 'host').length === 0) return resolve(text);
  throw usageError(`${flag} ${text}: on other hosts it must be an absolute path`);
}
