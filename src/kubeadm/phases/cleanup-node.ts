import { observe } from '../../host/access/observe.ts';
import { type CommitRecord, commitRecord } from '../../host/commit/record.ts';
import { COMMIT_DIRECTORY } from '../../host/commit/revert-script.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import type { FactQuery, FileFact } from '../../host/facts/query.ts';
import { mustBeStopped, type UnitState, unitState } from '../../host/facts/unit.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { Change, HostChange, PhasePlan, Warning } from '../../host/plan/change.ts';
import { previousFile } from '../../host/plan/diff-file.ts';
import type { KubeObject } from '../../kube/object.ts';
import { KUBEADM_TMP_DIR, KUBELET_DIR, KUBERNETES_DIR, MANIFESTS_DIR } from '../../kube/well-known.ts';
import { podList } from '../../kubelet/facts/cri-socket.ts';
import { type Leftover, leftoversExcept } from '../../kubelet/facts/leftovers.ts';
import { CONFIG_DROP_IN_NAMES, ownConfigDropInPaths } from '../../kubelet/facts/own-config-drop-ins.ts';
import { POINTER_DROP_IN } from '../../kubelet/node-agent/agent-units.ts';
import { NATIVE_DROP_IN } from '../../kubelet/node-agent/native-flags.ts';
import { UPGRADE_RECORD_PATH } from '../upgrade/upgrade-record.ts';

export interface CleanupNodeInput {
  readonly certificatesDir: string;
  readonly criSocket: string;
  readonly cleanupTmpDir: boolean;
  /** Data directory of the etcd member on the host; null: no member. */
  readonly etcdDataDir: string | null;
  /** From ResetConfiguration: `MNT_FORCE` and similar. */
  readonly unmountFlags: readonly string[];
  /** Pods that cannot be removed do not fail the reset. */
  readonly podsMayStay: boolean;
}

interface CleanupFacts {
  readonly unit: UnitState | null;
  readonly init: 'systemd' | 'openrc' | null;
  readonly files: ReadonlyMap<string, FileFact | null>;
  /** The configuration drop-in files that kubeletadm wrote. */
  readonly configDropIns: ReadonlyMap<string, FileFact | null>;
  readonly directories: ReadonlyMap<string, readonly string[] | null>;
  /** Null: the container runtime cannot be queried. */
  readonly pods: readonly string[] | null;
  /** A change that was not confirmed, or was rolled back. */
  readonly commit: CommitRecord | null;
}

const KUBECONFIGS = ['admin', 'super-admin', 'kubelet', 'bootstrap-kubelet', 'controller-manager', 'scheduler'].map(
  (name) => `${KUBERNETES_DIR}/${name}.conf`,
);

/** umount(8) options for the flags of umount(2) that ResetConfiguration names. */
const UMOUNT_OPTIONS: Readonly<Record<string, string>> = { MNT_FORCE: '-f', MNT_DETACH: '-l', UMOUNT_NOFOLLOW: '--no-canonicalize' };

/**
 * Stops the kubelet and removes the files that init and join wrote.
 * @see kubeadm 1.36 reset phase cleanup-node
 */
export const cleanupNode = definePhase<CleanupNodeInput, CleanupFacts>({
  name: 'cleanup-node',
  short: 'Stop the kubelet and remove the files written by init or join',
  observe: async ({ host, signal }, input) => {
    const { names, ...found } = await observe(host, cleanupFacts(input), signal);
    const own = ownConfigDropInPaths(names);
    return { ...found, configDropIns: own.length === 0 ? new Map() : await observe(host, fileFacts(own), signal) };
  },
  plan: planCleanup,
});

/** The facts that `cleanupNode` observes. */
export function cleanupFacts(input: Pick<CleanupNodeInput, 'certificatesDir' | 'criSocket' | 'etcdDataDir'>) {
  return combineFacts({
    unit: unitState('kubelet'),
    init: initSystem,
    files: fileFacts([...KUBECONFIGS, UPGRADE_RECORD_PATH]),
    names: CONFIG_DROP_IN_NAMES,
    directories: directoryLists([MANIFESTS_DIR, KUBELET_DIR, input.certificatesDir, KUBEADM_TMP_DIR, ...etcdData(input)]),
    commit: commitRecord,
    pods: podList(input.criSocket),
  });
}

function planCleanup(facts: CleanupFacts, input: CleanupNodeInput): PhasePlan {
  const reason = 'written by init or join';
  const pods = facts.pods ?? [];
  const isFull = (path: string): boolean => (facts.directories.get(path) ?? []).length > 0;
  const emptied = [
    MANIFESTS_DIR,
    KUBELET_DIR,
    input.certificatesDir,
    ...(input.cleanupTmpDir ? [KUBEADM_TMP_DIR] : []),
    ...etcdData(input),
  ].filter(isFull);
  const changes: readonly HostChange[] = [
    ...removeCommit(facts.commit),
    ...(mustBeStopped(facts.unit) ? [{ kind: 'stop-unit', unit: 'kubelet', reason: 'its files are removed' } as const] : []),
    ...(pods.length > 0 ? [removePods(input)] : []),
    // Also without an observed mount: until it is stopped, a kubelet may mount volumes of new Pods, as in kubeadm's reset.
    ...(isFull(KUBELET_DIR)
      ? [
          {
            kind: 'unmount-below',
            path: KUBELET_DIR,
            flags: umountOptions(input.unmountFlags),
            reason: 'mounts in this directory prevent its removal',
          } as const,
        ]
      : []),
    ...emptied.map((path) => ({ kind: 'empty-directory', path, reason }) as const),
    ...[...facts.files, ...facts.configDropIns].flatMap(([path, found]): readonly HostChange[] =>
      found === null ? [] : [{ kind: 'remove-file', path, before: previousFile(found), reason }],
    ),
  ];
  if (changes.length === 0) return { changes, noop: 'no files of init or join are on the host' };
  const isControlPlane = isFull(MANIFESTS_DIR) && facts.pods === null && facts.init !== null;
  return isControlPlane ? { changes, warnings: [PODS_STAY] } : { changes };
}

function removePods({ criSocket, podsMayStay }: CleanupNodeInput): HostChange {
  const change = { kind: 'remove-pods', criSocket, reason: 'the node has Pods' } as const;
  return podsMayStay ? { ...change, mayStay: true } : change;
}

const PODS_STAY: Warning = {
  code: 'PODS_STAY',
  message:
    'the Pods of the control plane keep running, because neither crictl nor ctr can query the container runtime. To stop the Pods, restart the container runtime or the host',
};

function etcdData({ etcdDataDir }: Pick<CleanupNodeInput, 'etcdDataDir'>): readonly string[] {
  return etcdDataDir === null ? [] : [etcdDataDir];
}

/** The timer of an unconfirmed change would restore the files that the reset removes. */
function removeCommit(commit: CommitRecord | null): readonly HostChange[] {
  if (commit?.state === 'armed')
    return [{ kind: 'confirm-commit', id: commit.id, reason: 'otherwise the host would roll back an unconfirmed change' }];
  return commit?.state === 'reverted'
    ? [{ kind: 'empty-directory', path: COMMIT_DIRECTORY, reason: 'contains the record of an earlier change that was rolled back' }]
    : [];
}

function umountOptions(flags: readonly string[]): readonly string[] {
  return flags.flatMap((flag) => UMOUNT_OPTIONS[flag] ?? []);
}

function directoryLists(paths: readonly string[]) {
  const queries: Record<string, FactQuery> = {};
  for (const path of paths) queries[path] = { kind: 'list', path };
  return defineFact(
    queries,
    (answers) => new Map(paths.map((path) => [path, (answers as Readonly<Record<string, readonly string[] | null>>)[path] ?? null])),
  );
}

const LEFTOVERS_PHASE = 'leftovers';

interface LeftoversInput {
  /** Whether the plan lists them. Otherwise they are only queried after the other phases, which change them. */
  readonly isPlanned: boolean;
  /** Paths of files that an earlier phase removes, and of directories that it empties. */
  readonly removed: readonly string[];
}

/** Drop-ins that an earlier phase removes. */
const OWN_DROP_INS = [POINTER_DROP_IN, NATIVE_DROP_IN];

/** Lists the items that reset leaves on the host, each with a command to remove it. */
export const listLeftovers = definePhase<LeftoversInput, readonly Leftover[] | null>({
  name: LEFTOVERS_PHASE,
  short: 'List the files and settings that reset does not remove, and the commands that remove them',
  observe: async (context, input) => (input.isPlanned ? observeLeftovers(context, input) : null),
  plan: (found) => {
    if (found === null) return { changes: [], noop: 'listed after the other phases', isReportedByVerify: true };
    return { changes: [], noop: found.length === 0 ? 'no leftovers' : `not removed: ${found.map(({ what }) => what).join('; ')}` };
  },
  verify: async (context, input) => {
    const { host, reporter } = context;
    const found = await observeLeftovers(context, input);
    const lines = found.map(({ what, hint }) => ['LEFT_BEHIND', `left on the host: ${what}; to remove: ${hint}`] as const);
    for (const [code, message] of lines.length === 0 ? [['PHASE_NOOP', 'no leftovers'] as const] : lines)
      reporter.report({ level: 'info', code, host: host.name, phase: LEFTOVERS_PHASE, message });
  },
});

function observeLeftovers({ host, signal }: PhaseContext, { removed }: LeftoversInput): Promise<readonly Leftover[]> {
  return observe(host, leftoversExcept([...removed, ...OWN_DROP_INS]), signal);
}

/**
 * Deletes the Node. Runs before the files are removed, while the host still has its name; the kubelet is
 * stopped first, so that it does not register the Node again.
 * kubeadm leaves the Node to the administrator.
 */
export const deleteNode = definePhase<
  {
    /** Null: no Node is deleted. */
    readonly nodeName: string | null;
    /** Why no Node is deleted; default: not requested. */
    readonly noop?: string;
  },
  {
    readonly node: KubeObject | null;
    readonly unit: UnitState | null;
  }
>({
  name: 'delete-node',
  short: 'Stop the kubelet and delete the Node (with --delete-node)',
  observe: async ({ host, cluster, signal }, { nodeName }) => {
    if (nodeName === null || cluster === null) return { node: null, unit: null };
    const unit = await observe(host, unitState('kubelet'), signal);
    return { node: await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName }), unit };
  },
  plan: ({ node, unit }, { nodeName, noop }) => {
    if (nodeName === null) return { changes: [], noop: noop ?? 'the Node is kept (--delete-node deletes it)' };
    if (node === null) return { changes: [], noop: `Node ${nodeName} does not exist` };
    const stop: readonly Change[] = mustBeStopped(unit) ? [{ kind: 'stop-unit', unit: 'kubelet', reason: 'the Node is deleted' }] : [];
    const ref = { apiVersion: 'v1', kind: 'Node', name: nodeName };
    return { changes: [...stop, { kind: 'delete-object', ref, reason: '--delete-node was given' }] };
  },
});
