import { AppError, isAppError } from '../../../base/errors.ts';
import { waitUntil } from '../../../base/wait-until.ts';
import { observe } from '../../../host/access/observe.ts';
import { swapDirectory } from '../../../host/copy-directory.ts';
import { listLiveContainers } from '../../../host/cri/runtime-commands.ts';
import { defineFact } from '../../../host/facts/fact.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import type { Operation } from '../../../host/operation/operation.ts';
import { timeoutMsOf } from '../../../host/operation-kinds.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { HostChange } from '../../../host/plan/change.ts';
import { isConnectionLost } from '../../../host/run-host.ts';
import { etcdDataDirOf } from '../../control-plane/etcd-manifest.ts';
import { manifestPath } from '../../control-plane/paths.ts';
import { readManifest } from '../../upgrade/static-pod-state.ts';
import { etcdBackupPath, etcdDataPaths, UPGRADE_RECORD_PATH, type UpgradeRecord } from '../../upgrade/upgrade-record.ts';
import { observeUpgrade, recordEtcdAnswered, writeUpgradeRecord } from './upgrade-progress.ts';
import { componentHealth, staticPodPause, waitForStaticPod, watchHealth } from './wait-static-pod.ts';

/**
 * @param failed.manifest writes the manifest of before the upgrade
 * @param failed.content this manifest
 * @param failed.cause why the component does not run with this manifest
 * @param failed.waitedMs milliseconds since this manifest was restored
 * @param failed.hasAnswered the component has answered on its health endpoint since then
 * @returns what was restored in addition to the manifest, as a sentence without a full stop
 */
export type RestoreComponent = (
  context: PhaseContext,
  failed: {
    readonly manifest: HostChange;
    readonly content: string;
    readonly cause: AppError;
    readonly waitedMs: number;
    readonly hasAnswered: boolean;
  },
) => Promise<string>;

interface RestoreEtcdData {
  readonly phase: string;
  /** Part of the names of the directories with replaced and restored data. */
  readonly timestamp: string;
  readonly timeoutMs: number;
  /** Hash of the Pod before the upgrade; null: not known. */
  readonly hash?: string | null | undefined;
  readonly api?: Parameters<typeof waitForStaticPod>[1]['api'];
  /** Milliseconds in which the previous etcd may become healthy. */
  readonly healthMs: number;
}

/** kubeadm 1.36 asks the previous etcd 10 times, every 15 s, before it restores the data. */
export const ETCD_HEALTH_MS = 150_000;
/** A single answer that fails is not enough to replace data. */
const LAST_CHECK_MS = 30_000;
/**
 * The kubelet restarts a container that crashed repeatedly after at most 5 minutes, also if the manifest was removed and
 * written again: a static Pod with an unchanged manifest keeps its back-off.
 */
export const BACK_OFF_MS = 360_000;
const STOP_MS = 120_000;

/**
 * Restores the copy of the etcd data, for an etcd that does not start with its previous manifest: the new version may
 * have changed the data. Only etcd's own health endpoint decides; an API server that does not answer is no reason. An
 * etcd that answered once with its previous manifest, also in an earlier run, can read its data, which is kept. The
 * copy is complete next to the data before etcd is stopped, the data is swapped by renames and kept, and the manifest is
 * written last. Only for an etcd with a single member: a member of a larger cluster must not return to older data,
 * because it would break the agreement with the other members.
 * @throws (restore) AppError ETCD_DATA_NOT_RESTORED, after the problems of the cause
 * @see kubeadm 1.36 phases/upgrade/staticpods.go rollbackEtcdData (which restores the data of each cluster)
 */
export function restoreEtcdData(options: RestoreEtcdData): RestoreComponent {
  const { phase } = options;
  return async (context, failed) => {
    const { host, reporter } = context;
    const report = (code: string, message: string): void => reporter.report({ level: 'warning', code, host: host.name, phase, message });
    const restore = await requireRestorable(context, options, failed);
    report('ETCD_DATA_RESTORING', `etcd does not start with the previous manifest: restoring the etcd data from ${restore.copy}`);
    await prepareCopy(restore);
    await stopEtcd(restore);
    await swapData(restore);
    await waitForRestored(restore, options);
    const result = rolledBackTo(timeOf(restore.copy), restore.kept);
    report('ETCD_DATA_RESTORED', result);
    return result;
  };
}

type Restore = Awaited<ReturnType<typeof requireRestorable>>;

/**
 * The paths of a restore whose data may be replaced. Only reads, except for the record that etcd has answered.
 * @throws AppError ETCD_DATA_NOT_RESTORED
 */
async function requireRestorable(
  context: PhaseContext,
  { phase, timestamp, timeoutMs, healthMs }: RestoreEtcdData,
  { manifest, content, cause, waitedMs, hasAnswered }: Parameters<RestoreComponent>[1],
) {
  const record = await observeUpgrade(context);
  const copy = record === null || record.etcd === null ? null : etcdBackupPath(record.backup);
  const refuse = (why: string, fix: string = BY_HAND): AppError => {
    const hint = `${fix}. ${copy === null ? 'No backup of the etcd data exists' : `The backup of the etcd data is in ${copy} on the host`}`;
    const problem = { host: context.host.name, code: 'ETCD_DATA_NOT_RESTORED', message: `${phase}: ${why}`, hint };
    return new AppError([...cause.problems, problem], { cause });
  };
  const url = readManifest(content, 'etcd').healthUrl;
  if (url === null)
    throw refuse('the etcd data was kept, because the manifest of etcd has no health endpoint that shows whether etcd runs');
  const lastCheckMs = Math.max(LAST_CHECK_MS, healthMs - waitedMs);
  const answered = hasAnswered || record?.components.get('etcd')?.hasAnswered === true;
  if (answered || (await becomesHealthy(context, { phase, url, timeoutMs: lastCheckMs }))) {
    await recordEtcdAnswered(context);
    throw refuse(
      'the etcd data was kept, because etcd can read it: etcd has answered on its health endpoint with the previous manifest',
      'Find out why etcd or the API server does not run, then rerun the command',
    );
  }
  if (record === null || record.etcd === null || copy === null)
    throw refuse('the etcd data was not restored, because no backup was made before the upgrade');
  const { members } = record.etcd;
  if (members === 0) throw refuse('the etcd data was not restored, because the number of etcd members is unknown');
  if (members !== 1)
    throw refuse('the etcd data was not restored: in an etcd cluster with several members, no member may return to older data');
  const dataDir = etcdDataDirOf(content);
  if (dataDir !== null && dataDir !== record.etcd.dataDir)
    throw refuse(`the etcd data in ${dataDir} was not restored: the backup contains the data of ${record.etcd.dataDir}`);
  const paths = etcdDataPaths(record.etcd.dataDir, timestamp);
  if (!(await isDirectory(context, `${copy}/member`))) throw refuse('the etcd data was not restored: the backup is incomplete');
  return { context, phase, timestamp, timeoutMs, manifest, content, record, copy, ...paths, refuse };
}

const BY_HAND = 'Restore the etcd member by hand (https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/)';
const ETCD_MANIFEST = manifestPath('etcd');

async function prepareCopy(restore: Restore): Promise<void> {
  const { context, record, timestamp, copy, member, fresh } = restore;
  const unchanged = `the etcd data in ${member} is unchanged`;
  await step(restore, () => perform(restore, { kind: 'copy-directory', path: `${copy}/member`, to: fresh }), {
    failed: 'the etcd data was not restored, because its backup could not be copied',
    unknown: `the backup was copied to ${fresh}. In any case, ${unchanged}`,
  });
  await step(restore, () => writeUpgradeRecord(context, { ...record, restoring: timestamp }), {
    failed: `the etcd data was not restored, because ${UPGRADE_RECORD_PATH} could not be written`,
    unknown: `${UPGRADE_RECORD_PATH} was written. In any case, ${unchanged}, and ${fresh} is a copy of the backup`,
    leavesCopy: true,
  });
}

/** Writes the manifest back if etcd does not stop. */
async function stopEtcd(restore: Restore): Promise<void> {
  const { context, phase, record, manifest, member, refuse } = restore;
  const unchanged = `the etcd data in ${member} is unchanged`;
  await step(restore, () => perform(restore, { kind: 'remove-file', path: ETCD_MANIFEST }), {
    failed: 'the etcd data was not restored, because etcd could not be stopped',
    unknown: `${ETCD_MANIFEST} was removed, which stops etcd. In any case, ${unchanged}`,
    leavesCopy: true,
  });
  const removed = `${ETCD_MANIFEST} was removed, and ${unchanged}. Rerun the command`;
  const isStopped = await step(restore, () => stops(context, { phase, criSocket: record.criSocket, pod: `etcd-${record.nodeName}` }), {
    failed: `the etcd data was not restored, because the container runtime could not be queried. ${removed}`,
    unknown: `etcd has stopped. ${removed}`,
  });
  if (isStopped) return;
  await step(restore, () => perform(restore, manifest), {
    failed: 'the etcd data was not restored, and the manifest of etcd could not be written back',
    unknown: `the manifest of etcd was written back to ${ETCD_MANIFEST}. In any case, ${unchanged}`,
  });
  const left = await removeCopy(restore);
  await step(restore, () => writeUpgradeRecord(context, { ...record, restoring: null }), {
    failed: `the etcd data was not restored, the manifest of etcd was written back, and ${UPGRADE_RECORD_PATH} could not be written`,
    unknown: `${UPGRADE_RECORD_PATH} was written. In any case, the manifest of etcd was written back, and ${unchanged}`,
  });
  throw refuse(`the etcd data was not restored, because the container runtime did not show in time that etcd had stopped${left}`);
}

/** Replaces the data by its copy, and starts etcd. */
async function swapData(restore: Restore): Promise<void> {
  const { context, manifest, member, fresh, kept, refuse } = restore;
  const left = `etcd is stopped; look for its data in ${member}, ${kept} or ${fresh}`;
  const swap = { kind: 'run', argv: swapDirectory({ path: member, by: fresh, kept }), what: 'replacing the etcd data' } as const;
  const isSwapped = await step(restore, () => perform(restore, swap).then(() => isDirectory(context, member)), {
    failed: `the etcd data was not restored, because it could not be renamed. ${left}`,
    unknown: `the etcd data was replaced. ${left}`,
  });
  if (!isSwapped) throw refuse(`the etcd data was not restored. ${left}`);
  await step(restore, () => perform(restore, manifest), {
    failed: 'the etcd data was restored, but the manifest of etcd could not be written',
    unknown: `the manifest of etcd was written to ${ETCD_MANIFEST}. The etcd data in ${member} was restored; the replaced data is in ${kept}`,
  });
}

async function waitForRestored(restore: Restore, { hash = null, api }: RestoreEtcdData): Promise<void> {
  const { context, phase, timeoutMs, content, record, copy, kept, refuse } = restore;
  const { nodeName, criSocket } = record;
  const health = watchHealth(context.clock, { isRestarting: false });
  try {
    const restored = { unhealthyMs: Number.POSITIVE_INFINITY, health };
    const pod = { phase, component: 'etcd', nodeName, manifest: content, replacedHashes: [], hash, criSocket, api, restored } as const;
    await waitForStaticPod(context, { ...pod, timeoutMs: Math.max(timeoutMs, BACK_OFF_MS) });
  } catch (error) {
    if (!isAppError(error)) throw error;
    const why = `(backup of ${timeOf(copy)} UTC): ${error.problems[0]?.message ?? ''}. The replaced data is in ${kept}`;
    if (health.hasAnswered()) await recordEtcdAnswered(context);
    if (isConnectionLost(error)) throw refuse(`it is unknown whether etcd runs with the restored data ${why}`);
    throw refuse(`etcd does not run with the restored data either ${why}`);
  }
}

function perform({ context: { host } }: Restore, operation: Operation): Promise<void> {
  return host.perform([operation], { timeoutMs: timeoutMsOf([operation]) + COPY_MS });
}

/** @returns a clause for the message if the copy that is not used any more could not be removed; otherwise empty */
async function removeCopy(restore: Restore): Promise<string> {
  try {
    await perform(restore, { kind: 'remove-directory', path: restore.fresh });
    return '';
  } catch (error) {
    if (!isAppError(error)) throw error;
    return `; remove the unused copy ${restore.fresh}`;
  }
}

/**
 * @param unknown the unknown effect after the connection was lost, as a clause that follows "whether"
 * @param leavesCopy the copy is not used after a failure
 */
async function step<T>(
  restore: Restore,
  work: () => Promise<T>,
  { failed, unknown, leavesCopy = false }: { readonly failed: string; readonly unknown: string; readonly leavesCopy?: boolean },
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isAppError(error)) throw error;
    const message = error.problems[0]?.message ?? 'an operation failed';
    if (isConnectionLost(error)) throw restore.refuse(`the connection was lost (${message}), so it is unknown whether ${unknown}`);
    throw restore.refuse(`${failed}: ${message}${leavesCopy ? await removeCopy(restore) : ''}`);
  }
}

/** The time of a backup in its path. */
function timeOf(copy: string): string {
  return copy.replace(/^.*kubeadm-backup-etcd-|\/etcd$/g, '');
}

function rolledBackTo(since: string, kept: string): string {
  return `The etcd data was restored from the backup of ${since} (UTC). Later changes of the cluster are lost. The replaced data is in ${kept}`;
}

/**
 * The etcd data that an interrupted run replaced by its copy: the run may not have reported it.
 * @returns a sentence without a full stop, as `RestoreComponent` returns it; null: the data was not replaced
 */
export async function observeReplacedData(context: PhaseContext, record: UpgradeRecord): Promise<string | null> {
  if (record.restoring === null || record.etcd === null) return null;
  const { fresh, kept } = etcdDataPaths(record.etcd.dataDir, record.restoring);
  const isReplaced = (await isDirectory(context, kept)) && !(await isDirectory(context, fresh));
  return isReplaced ? rolledBackTo(timeOf(etcdBackupPath(record.backup)), kept) : null;
}

/** Data of some gigabytes on a slow disk. */
const COPY_MS = 1_800_000;

/** Whether etcd answers on its own health endpoint in time. */
async function becomesHealthy(
  context: PhaseContext,
  { phase, url, timeoutMs }: { readonly phase: string; readonly url: string; readonly timeoutMs: number },
): Promise<boolean> {
  return waitUntil<boolean, string>(
    { ...context, phase },
    {
      probe: async () => {
        const [issue] = await componentHealth(context, url);
        return issue === undefined ? { done: true } : { pending: issue };
      },
      timeoutMs,
      pauseMs: staticPodPause(context.host),
      describe: (issue, waitedMs) => `waiting for the previous etcd, ${Math.round(waitedMs / 1000)} s: ${issue}`,
      timedOut: () => false,
    },
  );
}

/** Whether the runtime shows that the Pod has no live container and sandbox; false if it does not show it in time. */
async function stops(
  context: PhaseContext,
  { phase, criSocket, pod }: { readonly phase: string; readonly criSocket: string; readonly pod: string },
): Promise<boolean> {
  const live = defineFact({ list: { kind: 'command', argv: listLiveContainers(criSocket, pod) } }, ({ list: { exitCode, stdout } }) =>
    exitCode === 0 ? stdout.trim() !== '' : null,
  );
  return waitUntil<boolean, string>(
    { ...context, phase },
    {
      probe: async () => {
        const isLive = await observe(context.host, live, context.signal);
        if (isLive === false) return { done: true };
        return { pending: isLive === null ? 'the container runtime does not answer' : 'its container is running' };
      },
      timeoutMs: STOP_MS,
      pauseMs: staticPodPause(context.host),
      describe: (why, waitedMs) => `waiting for etcd to stop, ${Math.round(waitedMs / 1000)} s: ${why}`,
      timedOut: () => false,
    },
  );
}

/** Whether a path is a directory on the host. */
export async function isDirectory({ host, signal }: Pick<PhaseContext, 'host' | 'signal'>, path: string): Promise<boolean> {
  const fact = defineFact({ found: { kind: 'file', path, content: false } }, ({ found }): FileFact | null => found);
  return (await observe(host, fact, signal))?.type === 'directory';
}
