import { AppError, isAppError } from '../../../base/errors.ts';
import { waitUntil } from '../../../base/wait-until.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import { definePhase, type PhaseContext } from '../../../host/phase.ts';
import type { HostChange } from '../../../host/plan/change.ts';
import { previousFile } from '../../../host/plan/diff-file.ts';
import type { HostPlan } from '../../../host/plan/document.ts';
import type { Workflow } from '../../../host/run-workflow.ts';
import { etcdDataDirOf } from '../../control-plane/etcd-manifest.ts';
import { manifestPath, type StaticPodName } from '../../control-plane/paths.ts';
import { BACK_OFF_MS, ETCD_HEALTH_MS, isDirectory, restoreEtcdData } from '../../phases/upgrade/restore-etcd-data.ts';
import { closeRolledBack, recordRolledBack } from '../../phases/upgrade/upgrade-progress.ts';
import { componentHealth, staticPodPause, waitForStaticPod, watchHealth } from '../../phases/upgrade/wait-static-pod.ts';
import { readManifest } from '../../upgrade/static-pod-state.ts';
import {
  backupTimestamp,
  etcdBackupPath,
  etcdDataPaths,
  manifestBackupPath,
  manifestDigest,
  recordedManifest,
  UPGRADE_ORDER,
  type UpgradeRecord,
} from '../../upgrade/upgrade-record.ts';
import type { ApiAccess } from '../control-plane/api-access.ts';

export interface RecoverUpgradeOptions {
  readonly record: UpgradeRecord;
  /** The components to roll back, in the order of the upgrade. */
  readonly components: readonly StaticPodName[];
  /** etcd has answered with its previous manifest: its data is kept. */
  readonly hasEtcdAnswered: boolean;
  /** Shows the restored Pods after the API server answers again. */
  readonly api: ApiAccess;
  readonly timeoutMs: number;
  /** Receives what was restored in addition to manifests, as sentences without a full stop. */
  readonly onRestored: (text: string) => void;
}

const NAME = 'control-plane/recover';

interface RecoverFacts {
  readonly restored: ReadonlyMap<
    StaticPodName,
    {
      readonly content: string;
      /** Null: the manifest on the host is already the previous one. */
      readonly change: HostChange | null;
      /** The kubelet runs a Pod from another manifest, which it has to replace. */
      readonly isRestarting: boolean;
    }
  >;
}

/**
 * Rolls back the components that an interrupted upgrade replaced and that do not run: the interrupted run could not do
 * it. An upgrade cannot continue without the API server.
 */
export const recoverUpgradeWorkflow: Workflow<RecoverUpgradeOptions, RecoverUpgradeOptions> = {
  name: 'upgrade',
  phases: [
    definePhase<RecoverUpgradeOptions, RecoverFacts>({
      name: NAME,
      short: 'Restore the static Pods that the interrupted upgrade replaced and that do not run',
      observe: observeRecovery,
      plan: ({ restored }) => {
        const changes = [...restored.values()].flatMap(({ change }) => (change === null ? [] : [change]));
        return changes.length === 0 ? { changes, noop: 'the previous manifests are in place' } : { changes };
      },
      verify: verifyRecovery,
    }),
  ],
  prepare: async (_, options) => ({ input: options, warnings: [], refusals: [] }),
};

/** Whether a plan rolls an interrupted upgrade back instead of upgrading. */
export function isRecovery({ phases }: Pick<HostPlan, 'phases'>): boolean {
  return phases.some(({ phase }) => phase === NAME);
}

async function observeRecovery(context: PhaseContext, { record, components }: RecoverUpgradeOptions): Promise<RecoverFacts> {
  const { host, signal } = context;
  const files = await observe(
    host,
    fileFacts(components.flatMap((name) => [manifestPath(name), manifestBackupPath(record.backup, name)])),
    signal,
  );
  const restored = components.map((name) => {
    const [current, copy] = [files.get(manifestPath(name)) ?? null, files.get(manifestBackupPath(record.backup, name)) ?? null];
    const content = copy?.content;
    if (content === undefined || manifestDigest(content) !== record.components.get(name)?.before)
      throw notRecovered(
        host.name,
        record,
        `the backup of its manifest (${manifestBackupPath(record.backup, name)}) is missing or was changed`,
        name,
      );
    const state = recordedManifest(record, name, current?.content ?? null);
    const change = state === 'before' ? null : changeTo(content, { record, name, current });
    return [name, { content, change, isRestarting: state === 'written' }] as const;
  });
  const found = new Map(restored);
  await requireEtcdData(context, record, found.get('etcd')?.content);
  return { restored: found };
}

/**
 * An etcd that starts without its data would create an empty cluster.
 * @param manifest that of etcd before the upgrade; undefined: etcd is not restored
 */
async function requireEtcdData(context: PhaseContext, record: UpgradeRecord, manifest: string | undefined): Promise<void> {
  if (manifest === undefined) return;
  const dataDir = etcdDataDirOf(manifest) ?? record.etcd?.dataDir;
  if (dataDir === undefined) throw notRecovered(context.host.name, record, 'its data directory is unknown', 'etcd');
  const { member, fresh, kept } = etcdDataPaths(dataDir, record.restoring ?? 'TIME');
  if (await isDirectory(context, member)) return;
  const where = record.restoring === null ? '' : `. The interrupted run may have left the data in ${kept} (newest) or ${fresh} (backup)`;
  throw notRecovered(
    context.host.name,
    record,
    `its data directory ${member} does not exist, so etcd would start as a new, empty cluster${where}`,
    'etcd',
  );
}

function notRecovered(host: string, record: UpgradeRecord, why: string, name: StaticPodName): AppError {
  const message = `${NAME}: ${name} was not restored: ${why}`;
  const data = name === 'etcd' && record.etcd !== null ? ` The backup of the etcd data is in ${etcdBackupPath(record.backup)}.` : '';
  const hint = `Restore ${name} by hand, then rerun the command. Its previous manifest is in ${record.backup.manifests}.${data}`;
  return new AppError({ host, code: 'UPGRADE_NOT_RECOVERED', message, hint });
}

function changeTo(
  content: string,
  { record, name, current }: { readonly record: UpgradeRecord; readonly name: StaticPodName; readonly current: FileFact | null },
): HostChange {
  const reason = `the upgrade to ${record.version} was interrupted, and ${name} does not run`;
  const file = { content, mode: current?.mode ?? 0o600, owner: current?.owner ?? 'root:root' };
  const before = current && previousFile(current);
  return { kind: 'write-file', path: manifestPath(name), ...file, action: current === null ? 'create' : 'update', before, reason };
}

async function verifyRecovery(context: PhaseContext, options: RecoverUpgradeOptions, { restored }: RecoverFacts): Promise<void> {
  const { record, api, timeoutMs } = options;
  const { nodeName, criSocket } = record;
  const { host, reporter, clock } = context;
  // A Pod with an unchanged manifest may be waiting for its next start, which succeeds if the cause was fixed meanwhile.
  const healthMs = restored.get('etcd')?.isRestarting === true ? ETCD_HEALTH_MS : BACK_OFF_MS;
  const health = watchHealth(clock, { isRestarting: restored.get('etcd')?.isRestarting ?? false });
  if (options.hasEtcdAnswered) health.observe(true);
  for (const name of restored.keys()) await recordRolledBack(context, name);
  for (const [component, { content, change }] of restored) {
    const hash = record.components.get(component)?.hashBefore ?? null;
    const pod = { phase: NAME, component, nodeName, manifest: content, replacedHashes: [], hash, criSocket, timeoutMs, api };
    const restoredAt = clock.now().getTime();
    let others: string | undefined;
    try {
      const etcd = { restored: { unhealthyMs: healthMs, health }, timeoutMs: Math.max(timeoutMs, healthMs) };
      await waitForStaticPod(context, { ...pod, ...(component === 'etcd' ? etcd : {}) });
    } catch (error) {
      if (component !== 'etcd' || !isAppError(error)) throw error;
      const timestamp = backupTimestamp(clock.now());
      const restore = restoreEtcdData({ phase: NAME, timestamp, timeoutMs, hash, api, healthMs });
      const manifest = change ?? changeTo(content, { record, name: component, current: null });
      const waitedMs = clock.now().getTime() - restoredAt;
      others = await restore(context, { manifest, content, cause: error, waitedMs, hasAnswered: health.hasAnswered() });
    }
    if (others !== undefined) options.onRestored(others);
    await closeRolledBack(context, component);
    const message = `the previous Pod of ${component} runs again`;
    reporter.report({ level: 'info', code: 'COMPONENT_RESTORED', host: host.name, phase: NAME, message });
  }
}

/**
 * The components that an interrupted upgrade replaced and that do not run, according to their own health endpoints on
 * the host: credentials and load balancers have no influence. Components that start within the time limit are omitted.
 * @throws AppError UPGRADE_NOT_RECOVERED if etcd does not run and the interrupted upgrade did not replace its manifest
 */
export async function componentsToRecover(
  context: PhaseContext,
  record: UpgradeRecord,
  timeoutMs: number,
): Promise<Pick<RecoverUpgradeOptions, 'components' | 'hasEtcdAnswered'>> {
  const files = await observe(context.host, fileFacts(UPGRADE_ORDER.map(manifestPath)), context.signal);
  const textOf = (name: StaticPodName): string | null => files.get(manifestPath(name))?.content ?? null;
  const removed = UPGRADE_ORDER.filter((name) => recordedManifest(record, name, textOf(name)) === 'removed');
  const asked = UPGRADE_ORDER.filter((name) => {
    const state = recordedManifest(record, name, textOf(name));
    return state === 'written' || (name === 'etcd' && state === 'before');
  });
  if (asked.length === 0) return { components: removed, hasEtcdAnswered: false };
  const isBefore = recordedManifest(record, 'etcd', textOf('etcd')) === 'before';
  let hasEtcdAnswered = false;
  const urls = new Map(asked.map((name) => [name, readManifest(textOf(name) ?? '', name).healthUrl]));
  const broken = await waitUntil<readonly StaticPodName[], ReadonlyMap<StaticPodName, string>>(
    { ...context, phase: NAME },
    {
      probe: async () => {
        const answers = await Promise.all([...urls].map(async ([name, url]) => [name, await componentHealth(context, url)] as const));
        const issues = answers.flatMap(([name, [issue]]) => (issue === undefined ? [] : [[name, issue] as const]));
        hasEtcdAnswered ||= isBefore && !issues.some(([name]) => name === 'etcd');
        return issues.length === 0 || removed.length > 0 ? { done: issues.map(([name]) => name) } : { pending: new Map(issues) };
      },
      timeoutMs,
      pauseMs: staticPodPause(context.host),
      describe: (issues, waitedMs) =>
        `waiting for ${[...issues.keys()].join(', ')}, ${Math.round(waitedMs / 1000)} s: ${[...issues.values()].join('; ')}`,
      timedOut: (issues) => [...issues.keys()],
    },
  );
  const etcd = record.components.get('etcd');
  // The data of an etcd whose manifest was never replaced is not changed by the upgrade.
  if (broken.includes('etcd') && isBefore && etcd?.isRolledBack !== true)
    throw notRecovered(context.host.name, record, 'it is not healthy with its previous manifest', 'etcd');
  return { components: UPGRADE_ORDER.filter((name) => removed.includes(name) || broken.includes(name)), hasEtcdAnswered };
}
