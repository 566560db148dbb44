import { isJsonObject } from '../../base/json.ts';
import { KUBEADM_TMP_DIR } from '../../kube/well-known.ts';
import type { StaticPodName } from '../control-plane/paths.ts';

/** Directories with the state of a control plane host before an upgrade. */
export interface UpgradeBackup {
  /** Copies of the static Pod manifests that the upgrade replaces. */
  readonly manifests: string;
  /** Parent directory of the copy of the etcd data. */
  readonly etcd: string;
}

/** An upgrade of a control plane host that has started and is not complete. */
export interface UpgradeRecord {
  /** The version that is being installed: `v1.36.2`. */
  readonly version: string;
  readonly backup: UpgradeBackup;
}

/**
 * Exists while the static Pods of a host are replaced. A run that finds it continues an interrupted upgrade: the
 * backups show the state before the upgrade.
 */
export const UPGRADE_RECORD_PATH = `${KUBEADM_TMP_DIR}/kubeletadm-upgrade.json`;

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

/** The copy of a component's manifest. */
export function manifestBackupPath({ manifests }: UpgradeBackup, name: StaticPodName): string {
  return `${manifests}/${name}.yaml`;
}

/** The copy of the etcd data directory. */
export function etcdBackupPath({ etcd }: UpgradeBackup): string {
  return `${etcd}/etcd`;
}

export function encodeUpgradeRecord(record: UpgradeRecord): string {
  return `${JSON.stringify(record, null, 2)}\n`;
}

/** The record in a file; null for another content, which is then replaced. Only directories of kubeadm's backups are used. */
export function decodeUpgradeRecord(text: string): UpgradeRecord | null {
  try {
    const value: unknown = JSON.parse(text);
    if (!isJsonObject(value) || !isJsonObject(value.backup)) return null;
    const { version, backup } = value;
    const { manifests, etcd } = backup;
    if (typeof version !== 'string' || !isBackup(manifests) || !isBackup(etcd)) return null;
    return { version, backup: { manifests, etcd } };
  } catch {
    return null;
  }
}

function isBackup(path: unknown): path is string {
  return typeof path === 'string' && /^\/etc\/kubernetes\/tmp\/kubeadm-backup-(?:manifests|etcd)-[0-9-]{1,30}$/.test(path);
}
