import { combineFacts } from '../../../host/facts/fact.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import { observe } from '../../../host/observe.ts';
import { definePhase, type PhaseContext } from '../../../host/phase.ts';
import type { HostChange } from '../../../host/plan/change.ts';
import { type DesiredFile, diffDirectory, diffFile } from '../../../host/plan/diff-file.ts';
import { KUBEADM_TMP_DIR } from '../../../kube/well-known.ts';
import type { StaticPodName } from '../../control-plane/paths.ts';
import {
  decodeUpgradeRecord,
  encodeUpgradeRecord,
  etcdBackupPath,
  manifestBackupPath,
  UPGRADE_RECORD_PATH,
  type UpgradeBackup,
  type UpgradeRecord,
} from '../../upgrade/upgrade-record.ts';

export interface BackupControlPlaneInput {
  /** `v1.36.2` */
  readonly version: string;
  /** The new manifests of the components that the run upgrades. */
  readonly manifests: ReadonlyMap<StaticPodName, DesiredFile>;
  /** Directories for the backups of a new upgrade; a continued upgrade uses its own. */
  readonly backup: UpgradeBackup;
  /** Null: the etcd data is not copied. */
  readonly etcdDataDir: string | null;
}

interface BackupFacts {
  readonly record: UpgradeRecord | null;
  readonly files: ReadonlyMap<string, FileFact | null>;
}

/** The upgrade to this version that has started on a host; null: none. */
export async function observeUpgrade(
  { host, signal }: Pick<PhaseContext, 'host' | 'signal'>,
  version: string,
): Promise<UpgradeRecord | null> {
  const files = await observe(host, fileFacts([UPGRADE_RECORD_PATH]), signal);
  const record = decodeUpgradeRecord(files.get(UPGRADE_RECORD_PATH)?.content ?? '');
  return record?.version === version ? record : null;
}

/**
 * Copies the manifests that an upgrade replaces and the etcd data, and records that the upgrade has started. Nothing is
 * copied if all manifests are up to date. The copies of an interrupted upgrade are kept: they are older than its changes.
 * kubeadm 1.36: part of the phase control-plane.
 */
export const backupControlPlane = definePhase<BackupControlPlaneInput, BackupFacts>({
  name: 'control-plane/backup',
  short: 'Back up the static Pod manifests and the etcd data',
  observe: async (context, { version, manifests, backup: fresh, etcdDataDir }) => {
    const record = await observeUpgrade(context, version);
    const backup = record?.backup ?? fresh;
    const copies = [...manifests.keys()].map((name) => manifestBackupPath(backup, name));
    const current = [...manifests.values()].map(({ path }) => path);
    const etcd = etcdDataDir === null ? [] : [etcdDataDir, etcdBackupPath(backup)];
    const paths = [KUBEADM_TMP_DIR, UPGRADE_RECORD_PATH, backup.manifests, backup.etcd, ...copies, ...current, ...etcd];
    return { record, ...(await observe(context.host, combineFacts({ files: fileFacts(paths) }), context.signal)) };
  },
  plan: ({ record, files }, { version, manifests, backup: fresh, etcdDataDir }) => {
    const found = (path: string): FileFact | null => files.get(path) ?? null;
    const replaced = [...manifests].filter(
      ([, file]) => found(file.path)?.content !== undefined && diffFile(found(file.path), file) !== null,
    );
    if (replaced.length === 0) return { changes: [], noop: 'the static Pod manifests are unchanged' };
    const backup = record?.backup ?? fresh;
    const directories = [KUBEADM_TMP_DIR, backup.manifests, ...(etcdDataDir === null ? [] : [backup.etcd])];
    const copies = replaced.flatMap(([name, { path }]): readonly HostChange[] => {
      const to = manifestBackupPath(backup, name);
      const { content = '', owner = 'root:root' } = found(path) ?? {};
      const copy = diffFile(found(to), { path: to, content, mode: 0o600, owner, onlyIfAbsent: true });
      return copy === null ? [] : [{ ...copy, reason: `backup of ${path}` }];
    });
    const started = diffFile(found(UPGRADE_RECORD_PATH), {
      ...{ path: UPGRADE_RECORD_PATH, content: encodeUpgradeRecord({ version, backup }), mode: 0o600, owner: 'root:root' },
    });
    const changes = [
      ...directories.map((path) => diffDirectory(found(path), path, 0o700)),
      ...copies,
      etcdDataDir === null || found(etcdDataDir) === null || found(etcdBackupPath(backup)) !== null
        ? null
        : ({ kind: 'copy-directory', path: etcdDataDir, to: etcdBackupPath(backup), reason: 'backup of the etcd data' } as const),
      started === null ? null : { ...started, reason: 'the upgrade starts' },
    ].filter((change) => change !== null);
    return changes.length === 0 ? { changes, noop: `the backups of the interrupted upgrade exist in ${backup.manifests}` } : { changes };
  },
});

/**
 * Removes the record of the upgrade after all static Pods run; the backups are kept, as with kubeadm. Without the
 * record, no later run rolls a component back to these backups.
 */
export const completeControlPlane = definePhase<BackupControlPlaneInput, ReadonlyMap<string, FileFact | null>>({
  name: 'control-plane/complete',
  short: 'Record that the static Pods are upgraded',
  observe: ({ host, signal }, { manifests }) =>
    observe(host, fileFacts([UPGRADE_RECORD_PATH, ...[...manifests.values()].map(({ path }) => path)]), signal),
  plan: (files, { manifests }) => {
    if ([...manifests.values()].some((file) => diffFile(files.get(file.path) ?? null, file) !== null))
      return { changes: [], deferred: 'removes the record of the upgrade after all static Pods run' };
    const found = files.get(UPGRADE_RECORD_PATH) ?? null;
    if (found === null) return { changes: [], noop: 'no upgrade is in progress' };
    const before = { content: found.content ?? '', mode: found.mode, owner: found.owner };
    return { changes: [{ kind: 'remove-file', path: UPGRADE_RECORD_PATH, before, reason: 'all static Pods of the host are upgraded' }] };
  },
});
