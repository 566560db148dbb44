import type { Warning } from '../../host/plan/change.ts';
import { formatMinor, type Minor, NEWEST_MINOR, OLDEST_MINOR } from '../../kubelet/catalogue.ts';
import { otherMinorWarning } from '../../kubelet/validate/other-minor.ts';

/** Beyond the newest minor we know, that one's fields are taken. */
export function catalogueMinor(minor: Minor): Minor {
  return Math.min(Math.max(minor, OLDEST_MINOR), NEWEST_MINOR);
}

/**
 * Warnings about the version the files of a node are made for.
 * @param kubeletMinor of the kubelet on the host; null: the host has none
 */
export function versionWarnings(kubeletMinor: Minor | null, controlPlaneMinor: Minor): readonly Warning[] {
  const minor = kubeletMinor ?? controlPlaneMinor;
  const used = catalogueMinor(minor);
  const other = otherMinorWarning(minor);
  const rules: readonly Warning[] = other === null ? [] : [other];
  if (kubeletMinor !== null) return rules;
  const whose =
    used === controlPlaneMinor
      ? 'the version of the cluster'
      : `the nearest known version to that of the cluster, ${formatMinor(controlPlaneMinor)}`;
  return [
    { code: 'KUBELET_MISSING', message: `there is no kubelet: files are made for ${formatMinor(used)}, ${whose}` },
    ...(used < minor ? rules : []),
  ];
}
