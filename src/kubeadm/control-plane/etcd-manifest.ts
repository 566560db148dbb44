import type { JsonObject } from '../../base/json.ts';
import { readYaml } from '../../kube/same-yaml.ts';
import { ETCD_DATA_DIR } from '../../kube/well-known.ts';
import { objectOf, objectsAt, textAt } from '../../kubelet/documents/values.ts';
import { commandOf, flagValue } from './component-endpoints.ts';

/** An etcd member according to its manifest on the host. */
export type EtcdOnHost = ReturnType<typeof readEtcdManifest>;

/** Reads an etcd manifest; unreadable parts get kubeadm's defaults. */
export function readEtcdManifest(text: string) {
  const object = objectOf(readYaml(text));
  const words = commandOf(object, 'etcd');
  const first = (flag: string): string | null => flagValue(words, flag)?.split(',')[0] ?? null;
  return {
    /** `https://ADDRESS:2380` */
    peerURL: first('initial-advertise-peer-urls'),
    /** `https://ADDRESS:2379` */
    clientURL: first('advertise-client-urls'),
    /** Host path. */
    dataDir: hostPathOf(object, 'etcd-data') ?? ETCD_DATA_DIR,
    /** The member created its own cluster: other members may not know it yet. */
    isFirst: flagValue(words, 'initial-cluster-state') !== 'existing',
  };
}

/**
 * The host path of the data directory in an etcd manifest: `--data-dir`, through the mounted host path.
 * @returns without a slash at its end; null: the manifest has no such flag, or the directory is not on the host
 */
export function etcdDataDirOf(text: string): string | null {
  const object = objectOf(readYaml(text));
  const inside = flagValue(commandOf(object, 'etcd'), 'data-dir')?.replace(/\/$/, '');
  if (inside === undefined) return null;
  const mounts = mountsOf(object).filter(({ mountPath }) => inside === mountPath || inside.startsWith(`${mountPath}/`));
  const mount = mounts.sort((a, b) => b.mountPath.length - a.mountPath.length)[0];
  const path = mount === undefined ? null : hostPathOf(object, mount.name);
  return mount === undefined || path === null ? null : `${path.replace(/\/$/, '')}${inside.slice(mount.mountPath.length)}`;
}

function mountsOf(pod: JsonObject): { readonly name: string; readonly mountPath: string }[] {
  const container = objectsAt(pod, 'spec.containers').find(({ name }) => name === 'etcd') ?? {};
  return objectsAt(container, 'volumeMounts').flatMap(({ name, mountPath }) =>
    typeof name === 'string' && typeof mountPath === 'string' ? [{ name, mountPath: mountPath.replace(/\/$/, '') }] : [],
  );
}

function hostPathOf(pod: JsonObject, volume: string): string | null {
  return textAt(objectsAt(pod, 'spec.volumes').find(({ name }) => name === volume) ?? {}, 'hostPath.path') || null;
}
