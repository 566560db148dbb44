import { usageError } from '../base/errors.ts';
import {
  formatMinor,
  type Minor,
  NEWEST_MINOR,
  nearestKnownMinor,
  OLDEST_KNOWN_MINOR,
  OLDEST_MINOR,
  parseMinor,
} from './catalogue/catalogue.ts';

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

/** Code of the warning that a configuration is validated by the rules of another minor than its kubelet's. */
export const OTHER_MINOR_CODE = 'KUBELET_RULES_OF_OTHER_MINOR';

/**
 * Returns a warning about the rules that are used for a minor whose rules the catalogue does not contain
 * completely.
 * @returns null for the minors from 1.20 to the newest known
 */
export function otherMinorWarning(minor: Minor) {
  if (minor >= OLDEST_MINOR && minor <= NEWEST_MINOR) return null;
  return { code: OTHER_MINOR_CODE, message: usedRules(minor) };
}

function usedRules(minor: Minor): string {
  const used = nearestKnownMinor(minor);
  if (used === minor)
    return `Kubernetes ${formatMinor(minor)} is older than the oldest supported version: fields, flags and gates are validated by its own rules, but startup checks by the rules of ${formatMinor(OLDEST_MINOR)}`;
  const which = used < minor ? 'newest' : 'oldest';
  return `kubeletadm does not know Kubernetes ${formatMinor(minor)}: fields, flags, gates and values are checked by the rules of ${formatMinor(used)}, the ${which} known version`;
}
