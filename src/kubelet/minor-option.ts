import { usageError } from '../base/errors.ts';
import { formatMinor, type Minor, NEWEST_MINOR, OLDEST_KNOWN_MINOR, parseMinor } from './catalogue/catalogue.ts';

/**
 * The minor of `--kubernetes-version` or another flag with a version.
 * @throws AppError USAGE
 */
export function readMinor(text: string, flag: string, oldest: Minor): Minor {
  const minor = parseMinor(text);
  if (minor === null) throw usageError(`--${flag} ${text} is not a version`, `Use a version such as ${formatMinor(NEWEST_MINOR)}`);
  if (minor < oldest || minor > NEWEST_MINOR) {
    const range = `${formatMinor(oldest)} to ${formatMinor(NEWEST_MINOR)}`;
    throw usageError(`--${flag} ${text} is not a supported kubelet version`, `Use a version from ${range}`);
  }
  return minor;
}

/**
 * The minor of `--kubernetes-version` for validation only: unknown newer minors are accepted, with warnings.
 * @throws AppError USAGE
 */
export function readValidatedMinor(text: string): Minor {
  const minor = parseMinor(text);
  if (minor !== null && minor > NEWEST_MINOR) return minor;
  return readMinor(text, 'kubernetes-version', OLDEST_KNOWN_MINOR);
}
