import { isAppError } from '../../../base/errors.ts';
import { revealText } from '../../../base/text/secret.ts';
import { observe } from '../../../host/access/observe.ts';
import { fileFacts } from '../../../host/facts/file-facts.ts';
import type { FileFact } from '../../../host/facts/query.ts';
import { type DefinedPhase, definePhase, type PhaseContext } from '../../../host/phase.ts';
import type { HostChange } from '../../../host/plan/change.ts';
import { type DesiredFile, diffFile } from '../../../host/plan/diff-file.ts';
import { revertChanges } from '../../../host/plan/revert.ts';
import { etcdDataDirOf } from '../../control-plane/etcd-manifest.ts';
import type { StaticPodName } from '../../control-plane/paths.ts';
import { type MirrorPod, mirrorPodRef, readManifest, readMirrorPod } from '../../upgrade/static-pod-state.ts';
import { etcdDataPaths, manifestBackupPath, manifestDigest, recordedManifest } from '../../upgrade/upgrade-record.ts';
import { ETCD_HEALTH_MS, type RestoreComponent } from './restore-etcd-data.ts';
import { closeRolledBack, observeUpgrade, recordRolledBack, recordVerified } from './upgrade-progress.ts';
import { waitForStaticPod, watchHealth } from './wait-static-pod.ts';

export interface ReplaceStaticPodInput {
  readonly nodeName: string;
  /** The new manifest; null: the component is not upgraded, `skipped` gives the reason. */
  readonly manifest: DesiredFile | null;
  readonly skipped: string;
  /** Renewed certificates of the component, written together with its manifest. */
  readonly renewals: readonly DesiredFile[];
  /**
   * A manifest whose change also renews these certificates. etcd reads its certificates for each connection, so it is
   * not restarted for them.
   */
  readonly renewedWith: DesiredFile | null;
  /** Checks before the first change that the component may be restarted. */
  readonly checkBefore: ((context: PhaseContext) => Promise<void>) | null;
  /** The last attempt if the previous manifest alone does not restore the component; null: no attempt. */
  readonly restore: RestoreComponent | null;
  readonly criSocket: string;
  /** `timeouts.upgradeManifests`. */
  readonly timeoutMs: number;
}

interface ReplaceFacts {
  readonly files: ReadonlyMap<string, FileFact | null>;
  readonly pod: MirrorPod | null;
  /** The change to the manifest of before the upgrade; null: no change. */
  readonly previous: PreviousManifest | null;
  /** The Pod's hash before the upgrade started; null: not known, or the component is verified. */
  readonly hashBefore: string | null;
}

interface PreviousManifest {
  readonly path: string;
  readonly content: string;
  /** Hash of the Pod that ran this manifest; null: not known. */
  readonly hash: string | null;
  readonly change: HostChange;
  /** A directory without which the Pod must not start; null: none. */
  readonly data: string | null;
}

/**
 * Replaces the manifest of a static Pod and waits until the kubelet runs the new Pod and the API server answers.
 * Otherwise the manifest of before the upgrade is restored, and the rollback is verified in the same way. An unchanged
 * manifest is only verified: an interrupted run may have ended right after it wrote the manifest.
 * kubeadm 1.36: part of the phase control-plane, which rolls back all components.
 */
export function replaceStaticPod(name: string, component: StaticPodName): DefinedPhase<ReplaceStaticPodInput> {
  return definePhase<ReplaceStaticPodInput, ReplaceFacts>({
    name,
    short: `Upgrade ${component}`,
    verifiedState: `the previous Pod of ${component} runs again and the API server answers`,
    ready: async (context, { manifest, checkBefore }) => {
      if (manifest !== null) await checkBefore?.(context);
    },
    observe: (context, input) => observeComponent(context, component, input),
    plan: ({ files }, { manifest, skipped, renewals, renewedWith }) => {
      if (manifest === null) return { changes: [], noop: skipped };
      const differs = (file: DesiredFile | null): boolean => file !== null && diffFile(files.get(file.path) ?? null, file) !== null;
      const changes = [
        ...(differs(manifest) || differs(renewedWith) ? renewals.map((file) => diffFile(files.get(file.path) ?? null, file)) : []),
        diffFile(files.get(manifest.path) ?? null, manifest),
      ].filter((change) => change !== null);
      return changes.length === 0 ? { changes, noop: 'the manifest is unchanged' } : { changes };
    },
    verify: async (context, input, facts, applied) => {
      const { manifest } = input;
      if (manifest === null) return;
      const isReplaced = applied.some((change) => change.kind === 'write-file' && change.path === manifest.path);
      const text = revealText(manifest.content);
      const replacedHashes = [facts.hashBefore, isReplaced ? facts.pod?.hash : null].filter((hash) => typeof hash === 'string');
      const waitedMs = await waitForStaticPod(context, { ...input, phase: name, component, manifest: text, replacedHashes, hash: null });
      await recordVerified(context, component);
      const { image } = readManifest(text, component);
      const message = isReplaced
        ? `${component} runs ${image}, Ready after ${Math.round(waitedMs / 1000)} s`
        : `${component} runs ${image} and is Ready`;
      context.reporter.report({ level: 'info', code: 'COMPONENT_UPGRADED', host: context.host.name, phase: name, message });
    },
    undo: ({ previous }, applied) => {
      if (previous === null) return null;
      const others = applied.filter((change) => !('path' in change) || change.path !== previous.path);
      const { data } = previous;
      const required =
        data === null ? [] : [{ kind: 'require-directory', path: data, reason: 'etcd would start as a new, empty cluster' } as const];
      return [...revertChanges(others), ...required, previous.change];
    },
    verifyUndone: async (context, input, { previous }) => {
      if (previous === null) return undefined;
      const health = watchHealth(context.clock, { isRestarting: true });
      await recordRolledBack(context, component);
      const { content, hash } = previous;
      const expected = { ...input, phase: name, component, manifest: content, replacedHashes: [], hash };
      const restoredAt = context.clock.now().getTime();
      let others: string | undefined;
      try {
        await waitForStaticPod(context, {
          ...expected,
          restored: input.restore === null ? undefined : { unhealthyMs: ETCD_HEALTH_MS, health },
        });
      } catch (error) {
        if (input.restore === null || !isAppError(error)) throw error;
        const waitedMs = context.clock.now().getTime() - restoredAt;
        others = await input.restore(context, {
          manifest: previous.change,
          content,
          cause: error,
          waitedMs,
          hasAnswered: health.hasAnswered(),
        });
      }
      await closeRolledBack(context, component);
      return others;
    },
  });
}

async function observeComponent(
  context: PhaseContext,
  component: StaticPodName,
  { nodeName, manifest, renewals, renewedWith }: ReplaceStaticPodInput,
): Promise<ReplaceFacts> {
  if (manifest === null) return { files: new Map(), pod: null, previous: null, hashBefore: null };
  const { host, signal, cluster } = context;
  const record = await observeUpgrade(context);
  const backup = record === null ? null : manifestBackupPath(record.backup, component);
  const others = renewedWith === null ? [] : [renewedWith];
  const paths = [manifest, ...renewals, ...others].map(({ path }) => path);
  const files = await observe(host, fileFacts([...paths, ...(backup === null ? [] : [backup])]), signal);
  const pod = readMirrorPod((await cluster?.get(mirrorPodRef(component, nodeName))) ?? null, component);
  const current = files.get(manifest.path) ?? null;
  const state = recordedManifest(record, component, current?.content ?? null);
  const entry = state === 'other' ? undefined : record?.components.get(component);
  const copy = backup === null ? undefined : files.get(backup)?.content;
  const before =
    state === 'written'
      ? { content: copy !== undefined && manifestDigest(copy) === entry?.before ? copy : undefined, hash: entry?.hashBefore ?? null }
      : { content: current?.content, hash: entry?.hashBefore ?? pod?.hash ?? null };
  const dataDir = component === 'etcd' ? (etcdDataDirOf(before.content ?? '') ?? record?.etcd?.dataDir ?? null) : null;
  const data = dataDir === null ? null : etcdDataPaths(dataDir, '').member;
  return { files, pod, previous: previousManifest(manifest, current, { ...before, data }), hashBefore: entry?.hashBefore ?? null };
}

function previousManifest(
  { path, content: desired, mode, owner }: DesiredFile,
  current: FileFact | null,
  { content, hash, data }: { readonly content: string | undefined; readonly hash: string | null; readonly data: string | null },
): PreviousManifest | null {
  if (content === undefined || content === revealText(desired)) return null;
  const reason = 'rolling back to the previous manifest';
  const file = { mode: current?.mode ?? mode, owner: current?.owner ?? owner };
  const change = { kind: 'write-file', path, content, ...file, action: 'update', before: null, reason } as const;
  return { path, content, hash, change, data };
}
