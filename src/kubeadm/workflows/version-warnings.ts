import type { Warning } from '../../host/plan/change.ts';
import { formatMinor, type Minor, NEWEST_MINOR, OLDEST_MINOR } from '../../kubelet/catalogue.ts';
import { otherMinorWarning } from '../../kubelet/validate/other-minor.ts';

/** The nearest minor in the catalogue; a newer kubelet gets the fields of the newest known minor. */
export function catalogueMinor(minor: Minor): Minor {
  return Math.min(Math.max(minor, OLDEST_MINOR), NEWEST_MINOR);
}

/**
 * Warnings about the version that a node's files are generated for.
 * @param kubeletMinor of the kubelet on the host; null: no kubelet is installed
 */
export function versionWarnings(kubeletMinor: Minor | null, controlPlaneMinor: Minor): readonly Warning[] {
  const minor = kubeletMinor ?? controlPlaneMinor;
  const used = catalogueMinor(minor);
  const other = otherMinorWarning(minor);
  const rules: readonly Warning[] = other === null ? [] : [other];
  if (kubeletMinor !== null) return rules;
  const whose =
    used === controlPlaneMinor
      ? 'the version of the control plane'
      : `the known version nearest to cluster version ${formatMinor(controlPlaneMinor)}`;
  return [
    { code: 'KUBELET_MISSING', message: `no kubelet is installed: files are generated for ${formatMinor(used)}, ${whose}` },
    ...(used < minor ? rules : []),
  ];
}
