import { MANIFESTS_DIR } from '../../kube/well-known.ts';

/** Where kubeadm 1.36 puts the files of a control plane. Certificates are below `certificatesDir`, which is configured. */

/** Directories of a host's authorities, besides /etc/ssl/certs, that the pods of the API server and the controller manager see where they exist. */
export const CA_MOUNT_DIRS = [
  '/etc/pki/ca-trust',
  '/etc/pki/tls/certs',
  '/etc/ca-certificates',
  '/usr/share/ca-certificates',
  '/usr/local/share/ca-certificates',
] as const;
export type HostCaDirectory = (typeof CA_MOUNT_DIRS)[number];

/** The static pods, by the names of their files. */
export type StaticPodName = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler';

/** The manifest of a static pod. */
export function manifestPath(name: StaticPodName): string {
  return `${MANIFESTS_DIR}/${name}.yaml`;
}
