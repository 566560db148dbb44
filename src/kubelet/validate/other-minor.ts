import { formatMinor, type Minor, NEWEST_MINOR, nearestKnownMinor, OLDEST_MINOR } from '../catalogue/catalogue.ts';

/** Code of the warning that a configuration is validated by the rules of another minor than its kubelet's. */
export const OTHER_MINOR_CODE = 'KUBELET_RULES_OF_OTHER_MINOR';

export interface OtherMinorWarning {
  readonly code: typeof OTHER_MINOR_CODE;
  readonly message: string;
}

/**
 * Returns a warning about the rules that are used for a minor whose rules the catalogue does not contain
 * completely.
 * @returns null for the minors from 1.20 to the newest known
 */
export function otherMinorWarning(minor: Minor): OtherMinorWarning | null {
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
