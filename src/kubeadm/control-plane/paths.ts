import { MANIFESTS_DIR } from '../../kube/well-known.ts';

/**
 * File locations of a control plane in kubeadm 1.36. Certificates are below `certificatesDir`, which is configurable.
 */

/**
 * CA directories of the host, in addition to /etc/ssl/certs, that the API server and controller manager Pods
 * mount if they exist.
 */
export const CA_MOUNT_DIRS = [
  '/etc/pki/ca-trust',
  '/etc/pki/tls/certs',
  '/etc/ca-certificates',
  '/usr/share/ca-certificates',
  '/usr/local/share/ca-certificates',
] as const;

export type StaticPodName = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';

export function manifestPath(name: StaticPodName): string {
  return `${MANIFESTS_DIR}/${name}.yaml`;
}
