import { revealText } from '../../../base/text/secret.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import { definePhase, type PhaseContext } from '../../../host/phase.ts';
import type { HostChange } from '../../../host/plan/change.ts';
import { type DesiredFile, diffDirectory, diffFile, previousFile } from '../../../host/plan/diff-file.ts';
import { KUBEADM_TMP_DIR } from '../../../kube/well-known.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import { mirrorPodRef, readMirrorPod } from '../../upgrade/static-pod-state.ts';
import {
  type ComponentUpgrade,
  encodeUpgradeRecord,
  etcdBackupPath,
  manifestBackupPath,
  manifestDigest,
  recordedManifest,
  UPGRADE_RECORD_PATH,
  type UpgradeBackup,
  type UpgradeRecord,
} from '../../upgrade/upgrade-record.ts';
import { observeUpgrade } from './upgrade-progress.ts';

export interface BackupControlPlaneInput {
  /** `v1.36.2` */
  readonly version: string;
  readonly nodeName: string;
  readonly criSocket: string;
  /** The new manifests of the components that the run upgrades. */
  readonly manifests: ReadonlyMap<StaticPodName, DesiredFile>;
  /** Directories for the backups of a new upgrade. */
  readonly backup: UpgradeBackup;
  /** Null: the etcd data is not copied. */
  readonly etcdDataDir: string | null;
}

interface BackupFacts {
  readonly record: UpgradeRecord | null;
  readonly files: ReadonlyMap<string, FileFact | null>;
  /** The kubelet's hashes of the Pods. */
  readonly hashes: ReadonlyMap<StaticPodName, string>;
}

/**
 * Copies the manifests that an upgrade replaces and the etcd data, and records what the upgrade will write. Nothing is
 * copied if all manifests are up to date. Of an interrupted upgrade, only the copies of manifests are kept that it has
 * replaced, and the copy of the etcd data if it has replaced etcd; everything else may have changed since then.
 * kubeadm 1.36: part of the phase control-plane.
 */
export const backupControlPlane = definePhase<BackupControlPlaneInput, BackupFacts>({
  name: 'control-plane/backup',
  short: 'Back up the static Pod manifests and the etcd data',
  observe: async (context, { nodeName, manifests, backup: fresh, etcdDataDir }) => {
    const record = await observeUpgrade(context);
    const copies = [...manifests.keys()].map((name) => manifestBackupPath(record?.backup ?? fresh, name));
    const current = [...manifests.values()].map(({ path }) => path);
    const etcd = [fresh, ...(record === null ? [] : [record.backup])].flatMap((backup) => [
      backup.etcd,
      etcdBackupPath(backup),
      unfinished(backup),
    ]);
    const directories = [KUBEADM_TMP_DIR, (record?.backup ?? fresh).manifests, ...(etcdDataDir === null ? [] : [etcdDataDir])];
    const paths = [UPGRADE_RECORD_PATH, ...directories, ...copies, ...current, ...etcd];
    const files = await observe(context.host, fileFacts([...new Set(paths)]), context.signal);
    return { record, files, hashes: await observeHashes(context, nodeName, [...manifests.keys()]) };
  },
  plan: ({ record, files, hashes }, { version, nodeName, criSocket, manifests, backup: fresh, etcdDataDir }) => {
    const found = (path: string): FileFact | null => files.get(path) ?? null;
    const replaced = [...manifests].filter(
      ([, file]) => found(file.path)?.content !== undefined && diffFile(found(file.path), file) !== null,
    );
    if (replaced.length === 0) return { changes: [], noop: 'the static Pod manifests are unchanged' };
    const kept = etcdDataDir === null ? null : keptEtcdCopy(record, found);
    const copied = etcdDataDir !== null && kept === null && found(etcdDataDir) !== null;
    const backup = { manifests: (record?.backup ?? fresh).manifests, etcd: (kept ?? fresh).etcd };
    const components = new Map(
      [...(record?.components ?? [])].filter(
        ([name, entry]) => entry.isVerified || /^(written|removed)$/.test(stateOf(record, found, name)),
      ),
    );
    const copies: (HostChange | null)[] = [];
    for (const [name, file] of replaced) {
      const content = found(file.path)?.content ?? '';
      const entry = record?.components.get(name);
      const isOpen = stateOf(record, found, name) === 'written';
      components.set(name, entryOf({ entry, isOpen, content, file, hash: hashes.get(name) ?? null }));
      const to = manifestBackupPath(backup, name);
      const copy = isOpen ? null : diffFile(found(to), { path: to, content, mode: 0o600, owner: found(file.path)?.owner ?? 'root:root' });
      copies.push(copy === null ? null : { ...copy, reason: `backup of ${file.path}` });
    }
    // The check of etcd's health, before etcd is replaced, records the number of members.
    const etcd = kept !== null ? (record?.etcd ?? null) : copied ? { dataDir: etcdDataDir, members: 0 } : null;
    // Data that an interrupted run replaced was reported, and etcd runs with it.
    const content = encodeUpgradeRecord({ version, backup, nodeName, criSocket, etcd, restoring: null, components });
    const started = diffFile(found(UPGRADE_RECORD_PATH), { path: UPGRADE_RECORD_PATH, content, mode: 0o600, owner: 'root:root' });
    const [to, partial] = [etcdBackupPath(backup), record === null ? null : unfinished(record.backup)];
    const changes = [
      ...[KUBEADM_TMP_DIR, backup.manifests, ...(copied ? [backup.etcd] : [])].map((path) => diffDirectory(found(path), path, 0o700)),
      ...copies,
      partial === null || found(partial) === null
        ? null
        : ({ kind: 'remove-directory', path: partial, reason: 'an unfinished copy of the etcd data' } as const),
      // A copy with this name was made within this second.
      copied && found(to) === null ? ({ kind: 'copy-directory', path: etcdDataDir, to, reason: 'backup of the etcd data' } as const) : null,
      started === null ? null : { ...started, reason: 'the upgrade starts' },
    ].filter((change) => change !== null);
    return changes.length === 0 ? { changes, noop: `the backups of the interrupted upgrade exist in ${backup.manifests}` } : { changes };
  },
});

function stateOf(record: UpgradeRecord | null, found: (path: string) => FileFact | null, name: StaticPodName) {
  return recordedManifest(record, name, found(manifestPath(name))?.content ?? null);
}

/** The directories whose copy of the etcd data is older than the upgrade of etcd; null: a fresh copy is necessary. */
function keptEtcdCopy(record: UpgradeRecord | null, found: (path: string) => FileFact | null): UpgradeBackup | null {
  const entry = record?.components.get('etcd');
  const content = found(manifestPath('etcd'))?.content;
  if (record === null || record.etcd === null || entry === undefined || content === undefined) return null;
  return entry.written.includes(manifestDigest(content)) && found(etcdBackupPath(record.backup)) !== null ? record.backup : null;
}

function entryOf(options: {
  readonly entry: ComponentUpgrade | undefined;
  readonly isOpen: boolean;
  readonly content: string;
  readonly file: DesiredFile;
  readonly hash: string | null;
}): ComponentUpgrade {
  const { entry, isOpen, content, file, hash } = options;
  const desired = manifestDigest(revealText(file.content));
  if (isOpen && entry !== undefined) return { ...entry, written: [...new Set([...entry.written, desired])] };
  const before = manifestDigest(content);
  // The kubelet may still show the Pod of the interrupted run.
  const hashBefore = entry !== undefined && !entry.isVerified && entry.before === before ? entry.hashBefore : hash;
  return { hashBefore, before, written: [desired], isVerified: false, isRolledBack: false, hasAnswered: false };
}

/** A copy of the etcd data that was interrupted. */
function unfinished(backup: UpgradeBackup): string {
  return `${etcdBackupPath(backup)}.partial`;
}

async function observeHashes({ cluster }: PhaseContext, nodeName: string, names: readonly StaticPodName[]): Promise<BackupFacts['hashes']> {
  if (cluster === null) return new Map();
  const pods = await Promise.all(
    names.map(async (name) => [name, readMirrorPod(await cluster.get(mirrorPodRef(name, nodeName)), name)?.hash] as const),
  );
  return new Map(pods.flatMap(([name, hash]) => (typeof hash === 'string' ? [[name, hash] as const] : [])));
}

/**
 * Removes the record of the upgrade after all static Pods run; the backups are kept, as with kubeadm. Without the
 * record, no later run rolls a component back to these backups.
 */
export const completeControlPlane = definePhase<BackupControlPlaneInput, ReadonlyMap<string, FileFact | null>>({
  name: 'control-plane/complete',
  short: 'Record on the host that the upgrade of its static Pods is complete',
  observe: ({ host, signal }, { manifests }) =>
    observe(host, fileFacts([UPGRADE_RECORD_PATH, ...[...manifests.values()].map(({ path }) => path)]), signal),
  plan: (files, { manifests }) => {
    if ([...manifests.values()].some((file) => diffFile(files.get(file.path) ?? null, file) !== null))
      return { changes: [], deferred: 'removes the record of the upgrade after all static Pods run' };
    const found = files.get(UPGRADE_RECORD_PATH) ?? null;
    if (found === null) return { changes: [], noop: 'no upgrade is in progress' };
    const reason = 'the static Pods are upgraded';
    // The phases before this one record their progress in the file.
    return { changes: [{ kind: 'remove-file', path: UPGRADE_RECORD_PATH, before: previousFile(found), volatile: true, reason }] };
  },
});
