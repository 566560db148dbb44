import { isAppError } from '../../../base/errors.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import {
  decodeUpgradeRecord,
  encodeUpgradeRecord,
  recordedManifest,
  UPGRADE_ORDER,
  UPGRADE_RECORD_PATH,
  type UpgradeRecord,
  withComponent,
} from '../../upgrade/upgrade-record.ts';

/** A record is no configuration: phases write it between their changes, so that an interruption leaves what was reached. */
type RecordContext = Pick<PhaseContext, 'host' | 'signal'>;

/** The upgrade that has started on a host and is not complete; null: none. */
export async function observeUpgrade({ host, signal }: RecordContext): Promise<UpgradeRecord | null> {
  const files = await observe(host, fileFacts([UPGRADE_RECORD_PATH]), signal);
  return decodeUpgradeRecord(files.get(UPGRADE_RECORD_PATH)?.content ?? '');
}

export async function writeUpgradeRecord({ host }: RecordContext, record: UpgradeRecord): Promise<void> {
  const file = { path: UPGRADE_RECORD_PATH, content: encodeUpgradeRecord(record), mode: 0o600, owner: 'root:root' };
  await host.perform([{ kind: 'write-file', ...file }]);
}

/**
 * Records the number of members that the etcd cluster reported. A smaller number does not replace a larger one, because
 * the copy of the data may be that of the larger cluster.
 */
export async function recordEtcdMembers(context: RecordContext, members: number): Promise<void> {
  const record = await observeUpgrade(context);
  if (record === null || record.etcd === null || record.etcd.members >= members) return;
  await writeUpgradeRecord(context, { ...record, etcd: { ...record.etcd, members } });
}

/** Records that the new Pod of a component ran: it is not rolled back any more. */
export async function recordVerified(context: RecordContext, name: StaticPodName): Promise<void> {
  const record = await observeUpgrade(context);
  const entry = record?.components.get(name);
  if (record === null || entry === undefined || entry.isVerified) return;
  await writeUpgradeRecord(context, withComponent(record, name, { isVerified: true, isRolledBack: false }));
}

/** Records that the manifest of before was restored, before its Pod is verified. */
export async function recordRolledBack(context: RecordContext, name: StaticPodName): Promise<void> {
  const record = await observeUpgrade(context);
  if (record === null || !record.components.has(name)) return;
  await writeUpgradeRecord(context, withComponent(record, name, { isRolledBack: true }));
}

/**
 * Records that etcd has answered with its previous manifest: no later run replaces its data. The record of a host that is
 * unreachable by now stays as it is, because the caller already reports a failure.
 */
export async function recordEtcdAnswered(context: RecordContext): Promise<void> {
  try {
    const record = await observeUpgrade(context);
    const entry = record?.components.get('etcd');
    if (record === null || entry === undefined || entry.hasAnswered) return;
    await writeUpgradeRecord(context, withComponent(record, 'etcd', { hasAnswered: true }));
  } catch (error) {
    if (!isAppError(error)) throw error;
  }
}

/**
 * Closes the record after a verified rollback: a later attempt makes its own backups. It stays open only for a component
 * that the upgrade wrote and that was not verified yet.
 */
export async function closeRolledBack(context: RecordContext, name: StaticPodName): Promise<void> {
  const found = await observeUpgrade(context);
  if (found === null) return;
  const record = { ...withComponent(found, name, null), restoring: null };
  const files = await observe(context.host, fileFacts(UPGRADE_ORDER.map(manifestPath)), context.signal);
  const isOpen = UPGRADE_ORDER.some(
    (other) => recordedManifest(record, other, files.get(manifestPath(other))?.content ?? null) === 'written',
  );
  if (isOpen) await writeUpgradeRecord(context, record);
  else await context.host.perform([{ kind: 'remove-file', path: UPGRADE_RECORD_PATH }]);
}
