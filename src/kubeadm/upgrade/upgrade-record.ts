import * as z from 'zod';
import { parseJsonObject } from '../../base/json.ts';
import { digestOf } from '../../codec/json-text.ts';
import { KUBEADM_TMP_DIR } from '../../kube/well-known.ts';
import type { Decoded } from '../config/schema-parts.ts';
import type { StaticPodName } from '../control-plane/paths.ts';

const backup = z.string().regex(/^\/etc\/kubernetes\/tmp\/kubeadm-backup-(?:manifests|etcd)-[0-9-]{1,30}$/);
const component = z.object({
  /** The kubelet's hash of the Pod before the upgrade; null: not known. */
  hashBefore: z.string().nullable().catch(null),
  /** Digest of the manifest before the upgrade, which is copied. */
  before: z.string(),
  /** Digests of the manifests that the upgrade writes. Several: it was continued with another version. */
  written: z.array(z.string()),
  /** The new Pod ran. A verified component is never rolled back. */
  isVerified: z.boolean().catch(false),
  /** The manifest of before was restored after the new Pod did not run. */
  isRolledBack: z.boolean().catch(false),
  /** The component has answered on its health endpoint after this rollback, so it can read its data. */
  hasAnswered: z.boolean().catch(false),
});
const SCHEMA = z.object({
  /** The version that is being installed: `v1.36.2`. */
  version: z.string(),
  /** Copies of the static Pod manifests that the upgrade replaces, and the parent directory of the copy of the etcd data. */
  backup: z.object({ manifests: backup, etcd: backup }),
  nodeName: z.string(),
  criSocket: z.string(),
  /**
   * The etcd data directory that was copied, and the number of members that the etcd cluster reported before its local
   * member was replaced (0: not known); null: no copy.
   */
  etcd: z
    .object({ dataDir: z.string().startsWith('/'), members: z.number() })
    .nullable()
    .catch(null),
  /** Part of the names of directories while etcd data is replaced by the copy; null: it is not being replaced. */
  restoring: z
    .string()
    .regex(/^[0-9-]{1,30}$/)
    .nullable()
    .catch(null),
  components: z.record(z.string(), z.unknown()),
});

/** A component that an upgrade replaces. Digests are those of `manifestDigest`. */
export type ComponentUpgrade = Decoded<z.output<typeof component>>;

/** An upgrade of a control plane host that has started and is not complete. */
export type UpgradeRecord = Omit<Decoded<z.output<typeof SCHEMA>>, 'components'> & {
  readonly components: ReadonlyMap<StaticPodName, ComponentUpgrade>;
};

/** Directories with the state of a control plane host before an upgrade. */
export type UpgradeBackup = UpgradeRecord['backup'];

/**
 * Exists while the static Pods of a host are replaced. A run that finds it continues an interrupted upgrade: the
 * backups show the state before the upgrade.
 */
export const UPGRADE_RECORD_PATH = `${KUBEADM_TMP_DIR}/kubeletadm-upgrade.json`;

/** The static Pods in the order in which they are upgraded. */
export const UPGRADE_ORDER = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
] as const satisfies readonly StaticPodName[];

/**
 * The backup directories of a new upgrade, named like those of kubeadm.
 * @see kubeadm 1.36 phases/upgrade/staticpods.go
 */
export function upgradeBackup(now: Date): UpgradeBackup {
  const time = backupTimestamp(now);
  return { manifests: `${KUBEADM_TMP_DIR}/kubeadm-backup-manifests-${time}`, etcd: `${KUBEADM_TMP_DIR}/kubeadm-backup-etcd-${time}` };
}

/** The timestamp in the names of kubeadm's backups, in UTC. */
export function backupTimestamp(now: Date): string {
  return now.toISOString().slice(0, 19).replace(/[T:]/g, '-');
}

export function manifestBackupPath({ manifests }: UpgradeBackup, name: StaticPodName): string {
  return `${manifests}/${name}.yaml`;
}

export function etcdBackupPath({ etcd }: UpgradeBackup): string {
  return `${etcd}/etcd`;
}

/** Directories of the etcd data, while it is replaced by its copy. */
export function etcdDataPaths(dataDir: string, timestamp: string) {
  const member = `${dataDir}/member`;
  return { member, fresh: `${member}.restored-${timestamp}`, kept: `${member}.replaced-${timestamp}` };
}

/** The digest by which a record recognises a manifest. */
export function manifestDigest(text: string): string {
  return digestOf(text);
}

/**
 * The manifest of a component on the host, as the record knows it:
 * - `written`: by the upgrade, and its Pod was not verified;
 * - `before`: the upgrade has not replaced it, or has restored it;
 * - `removed`: while the etcd data was replaced;
 * - `other`: verified, changed by someone else, or not part of the upgrade. It is not rolled back.
 * @param text the manifest on the host; null: it does not exist
 */
export function recordedManifest(record: UpgradeRecord | null, name: StaticPodName, text: string | null) {
  const entry = record?.components.get(name);
  if (record === null || entry === undefined || entry.isVerified) return 'other';
  if (text === null) return name === 'etcd' && record.restoring !== null ? 'removed' : 'other';
  const digest = manifestDigest(text);
  if (digest === entry.before) return 'before';
  return entry.written.includes(digest) ? 'written' : 'other';
}

export function withComponent(record: UpgradeRecord, name: StaticPodName, change: Partial<ComponentUpgrade> | null): UpgradeRecord {
  const components = new Map(record.components);
  const found = components.get(name);
  if (found === undefined) return record;
  if (change === null) components.delete(name);
  else components.set(name, { ...found, ...change });
  return { ...record, components };
}

export function encodeUpgradeRecord({ components, ...record }: UpgradeRecord): string {
  const ordered = UPGRADE_ORDER.flatMap((name) => (components.has(name) ? [[name, components.get(name)] as const] : []));
  return `${JSON.stringify({ ...record, components: Object.fromEntries(ordered) }, null, 2)}\n`;
}

/** The record in a file; null for another content, which is then replaced. Only directories of kubeadm's backups are used. */
export function decodeUpgradeRecord(text: string): UpgradeRecord | null {
  const record = SCHEMA.safeParse(parseJsonObject(text));
  if (!record.success) return null;
  const components = UPGRADE_ORDER.flatMap((name) => {
    const entry = component.safeParse(record.data.components[name]);
    return entry.success ? [[name, entry.data] as const] : [];
  });
  return { ...record.data, components: new Map(components) };
}
