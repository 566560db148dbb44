import type { Minor } from '../catalogue.ts';

/** The first minor whose kubelet observes the inodes of the image file system by default. */
const IMAGE_INODES_SINCE: Minor = 30;

/**
 * The hard eviction thresholds of a Linux kubelet without configured ones. Up to 1.25 they are the field's
 * default; later kubelets set them after reading the configuration, and only if `evictionHard` is absent
 * (with `mergeDefaultEvictionSettings`: signal by signal).
 * @see kubernetes/kubernetes pkg/kubelet/eviction/defaults_linux.go, cmd/kubelet/app/server.go (1.26 to 1.36)
 */
export function defaultEvictionHard(minor: Minor): Readonly<Record<string, string>> {
  return {
    'imagefs.available': '15%',
    ...(minor >= IMAGE_INODES_SINCE ? { 'imagefs.inodesFree': '5%' } : {}),
    'memory.available': '100Mi',
    'nodefs.available': '10%',
    'nodefs.inodesFree': '5%',
  };
}
