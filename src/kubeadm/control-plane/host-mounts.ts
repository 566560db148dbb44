import type { JsonObject } from '../../base/json.ts';
import { cleanPath } from '../../base/text/clean-path.ts';
import type { ExternalEtcd, HostPathMount } from '../config/model.ts';
import type { ControlPlaneNode } from './model.ts';
import { CA_MOUNT_DIRS } from './paths.ts';

/** A path of the host that a component sees. */
export interface Mount {
  readonly name: string;
  readonly hostPath: string;
  readonly mountPath: string;
  readonly readOnly: boolean;
  /** May be empty: nothing is checked or made. */
  readonly pathType: string;
}

const SSL_CERTS = '/etc/ssl/certs';

/** A directory, at the same path in the component, that is made when it is missing. */
export function directoryMount(name: string, path: string, readOnly = true): Mount {
  return { name, hostPath: path, mountPath: path, readOnly, pathType: 'DirectoryOrCreate' };
}

/** A file at the same path. */
export function fileMount(name: string, path: string): Mount {
  return { name, hostPath: path, mountPath: path, readOnly: true, pathType: 'FileOrCreate' };
}

/** The certificates of the cluster and the authorities of the host. */
export function certificateMounts({ cluster, caDirectories }: ControlPlaneNode): readonly Mount[] {
  const authorities = caDirectories.map((path) => directoryMount(path.slice(1).replaceAll('/', '-'), path));
  return [directoryMount('k8s-certs', cluster.certificatesDir), directoryMount('ca-certs', SSL_CERTS), ...authorities];
}

/**
 * The directories with the API server's credentials at an external etcd, without those it sees anyway and those below others.
 * @see kubeadm 1.36 phases/controlplane/volumes.go, which compares paths as texts: /etc/ssl/certs-of-etcd counts as below /etc/ssl/certs
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

/** What the user mounts besides; the same name replaces ours. */
export function extraMounts(volumes: readonly HostPathMount[] = []): readonly Mount[] {
  return volumes.map(({ name, hostPath, mountPath, readOnly = false, pathType = '' }) => ({
    name,
    hostPath,
    mountPath,
    readOnly,
    pathType,
  }));
}

/** Of several mounts with one name the last; sorted by name. */
export function settleMounts(mounts: readonly Mount[]): readonly Mount[] {
  const byName = new Map(mounts.map((mount) => [mount.name, mount]));
  return [...byName.keys()].sort().map((name) => byName.get(name) as Mount);
}

/** The volume of a Pod for it. */
export function volumeOf({ name, hostPath, pathType }: Mount): JsonObject {
  return { name, hostPath: { path: hostPath, type: pathType } };
}

/** Where the container sees that volume. */
export function volumeMountOf({ name, mountPath, readOnly }: Mount): JsonObject {
  return { name, mountPath, readOnly };
}
