import { cleanPath } from '../../base/text/clean-path.ts';
import type { ExternalEtcd, HostPathMount } from '../config/model.ts';
import type { ControlPlaneNode } from './model.ts';
import { CA_MOUNT_DIRS } from './paths.ts';

export interface Mount {
  readonly name: string;
  readonly hostPath: string;
  readonly mountPath: string;
  readonly readOnly: boolean;
  /** May be empty: no check and no creation. */
  readonly pathType: string;
}

const SSL_CERTS = '/etc/ssl/certs';

/** A directory mounted at the same path, created if it does not exist. */
export function directoryMount(name: string, path: string, readOnly = true): Mount {
  return { name, hostPath: path, mountPath: path, readOnly, pathType: 'DirectoryOrCreate' };
}

export function kubeconfigMount(path: string): Mount {
  return { name: 'kubeconfig', hostPath: path, mountPath: path, readOnly: true, pathType: 'FileOrCreate' };
}

/** The certificates of the cluster and the CA directories of the host. */
export function certificateMounts({ cluster, caDirectories }: ControlPlaneNode): readonly Mount[] {
  const cas = caDirectories.map((path) => directoryMount(path.slice(1).replaceAll('/', '-'), path));
  return [directoryMount('k8s-certs', cluster.certificatesDir), directoryMount('ca-certs', SSL_CERTS), ...cas];
}

/**
 * The directories of the API server's credentials for external etcd, without directories that are already
 * mounted or nested.
 * @see kubeadm 1.36 phases/controlplane/volumes.go, which compares paths as strings: /etc/ssl/certs-of-etcd
 *   counts as below /etc/ssl/certs
 */
export function externalEtcdMounts({ caFile, certFile, keyFile }: ExternalEtcd, certificatesDir: string): readonly Mount[] {
  const seen = [...CA_MOUNT_DIRS, SSL_CERTS, certificatesDir];
  let directories: readonly string[] = [];
  for (const file of [caFile, certFile, keyFile]) {
    const directory = file ? cleanPath(`${file}/..`) : null;
    if (directory === null || seen.some((path) => directory.startsWith(path))) continue;
    const others = directories.filter((other) => !other.startsWith(directory));
    directories = others.some((other) => directory.startsWith(other)) ? others : [...others, directory].sort();
  }
  return directories.map((path, i) => directoryMount(`etcd-certs-${i}`, path));
}

/** The mounts of the user; one with the same name replaces a default mount. */
export function extraMounts(volumes: readonly HostPathMount[] = []): readonly Mount[] {
  return volumes.map((volume) => ({ readOnly: false, pathType: '', ...volume }));
}

/** The last mount of each name, sorted by name. */
export function uniqueMounts(mounts: readonly Mount[]): readonly Mount[] {
  const byName = new Map(mounts.map((mount) => [mount.name, mount]));
  return [...byName.keys()].sort().map((name) => byName.get(name) as Mount);
}
