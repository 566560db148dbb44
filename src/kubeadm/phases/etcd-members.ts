import { AppError } from '../../base/errors.ts';
import { waitUntil } from '../../base/wait-until.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import { diffDirectory, diffFile } from '../../host/plan/diff-file.ts';
import { ETCD_PAUSE, type EtcdMemberState, isTransientEtcdError } from '../../kube/etcd-cluster.ts';
import { waitOnKubelet } from '../../kubelet/health/crash-watch.ts';
import type { EtcdMember } from '../control-plane/model.ts';
import type { WriteFilesInput } from './write-files.ts';

/** The member of a control plane that joins. These phases need `etcd` in their context. */
export interface EtcdJoinInput {
  readonly nodeName: string;
  /** `https://ADDRESS:2380` */
  readonly peerURL: string;
  /**
   * Its manifest and directories for the given members. An existing manifest is kept: after its start the
   * member no longer needs this list.
   */
  readonly manifestFor: (members: readonly EtcdMember[], hasStarted: boolean) => WriteFilesInput;
  /** `timeouts.etcdAPICall`. */
  readonly timeoutMs: number;
  /** Why the phase is skipped (external etcd, or staged files), as a clause. */
  readonly skipped: string | null;
}

/**
 * The members; null without a connection to etcd. An error of etcd is final only after `timeouts.etcdAPICall`: each new member
 * triggers a leader election.
 */
async function membersOf(
  context: PhaseContext,
  { timeoutMs }: Pick<EtcdJoinInput, 'timeoutMs'>,
): Promise<readonly EtcdMemberState[] | null> {
  const { etcd = null } = context;
  return etcd === null ? null : retried(context, () => etcd.members(), timeoutMs);
}

function retried<T>(context: PhaseContext, query: () => Promise<T>, timeoutMs: number): Promise<T> {
  return waitUntil<T, AppError>(context, {
    probe: async () => {
      try {
        return { done: await query() };
      } catch (error) {
        if (!isTransientEtcdError(error)) throw error;
        return { pending: error };
      }
    },
    timeoutMs,
    pauseMs: ETCD_PAUSE,
    describe: ({ message }, waitedMs) => `waiting for etcd, ${Math.round(waitedMs / 1000)} s: ${message}`,
    timedOut: (error) => {
      throw error;
    },
  });
}

function ownMember(members: readonly EtcdMemberState[] | null, { peerURL }: Pick<EtcdJoinInput, 'peerURL'>): EtcdMemberState | null {
  return members?.find(({ peerURLs }) => peerURLs.includes(peerURL)) ?? null;
}

/**
 * All members followed by the joining one, as required by `--initial-cluster`. A member that has not started has its ID as its
 * name.
 * @see kubeadm 1.36 util/etcd addMember
 */
function initialCluster(members: readonly EtcdMemberState[], { nodeName, peerURL }: EtcdJoinInput): readonly EtcdMember[] {
  const others = members.filter(({ peerURLs }) => !peerURLs.includes(peerURL));
  const nameOf = ({ name, id }: EtcdMemberState): string => name || BigInt(id).toString(16);
  return [
    ...others.flatMap((member) => member.peerURLs.map((each) => ({ name: nameOf(member), peerURL: each }))),
    { name: nodeName, peerURL },
  ];
}

const NO_ETCD = 'needs the etcd cluster';

/**
 * Checks that the etcd cluster is healthy: it has a leader, and all members with a vote have started. Plans no changes.
 * kubeadm 1.36: join phase check-etcd
 */
export const checkEtcd = definePhase<EtcdJoinInput, null>({
  name: 'check-etcd',
  short: 'Check that the etcd cluster is healthy',
  observe: async () => null,
  plan: (_, { skipped }) => (skipped === null ? { changes: [] } : { changes: [], noop: skipped }),
  verify: async (context, input) => {
    const { etcd = null } = context;
    if (input.skipped !== null || etcd === null) return;
    const health = async (): Promise<void> => {
      const { healthy, reason } = await etcd.health();
      if (!healthy) throw unhealthy(context.host.name, `the etcd cluster is not healthy${reason === '' ? '' : `: ${reason}`}`);
    };
    await retried(context, health, input.timeoutMs);
    const missing = (await membersOf(context, input))?.find(({ name, isLearner }) => name === '' && !isLearner);
    if (missing !== undefined) throw unhealthy(context.host.name, `voting etcd member ${missing.peerURLs[0]} has not started`);
  },
});

function unhealthy(host: string, why: string): AppError {
  const hint = 'Fix the etcd member or remove it (etcdctl member list, etcdctl member remove), then rerun the command';
  return new AppError({ host, code: 'ETCD_UNHEALTHY', message: `check-etcd: ${why}`, hint });
}

/**
 * Adds the member as a learner, which does not count for the quorum.
 * kubeadm 1.36: join phase etcd-join
 */
export const etcdJoin = definePhase<EtcdJoinInput, readonly EtcdMemberState[] | null>({
  name: 'etcd-join',
  short: 'Add the local etcd member to the cluster',
  observe: async (context, input) => (input.skipped === null ? membersOf(context, input) : null),
  plan: (members, input) => {
    const { nodeName, peerURL, skipped } = input;
    if (skipped !== null) return { changes: [], noop: skipped };
    if (members === null) return { changes: [], deferred: NO_ETCD };
    if (ownMember(members, input) !== null) return { changes: [], noop: 'already a member' };
    return { changes: [{ kind: 'add-etcd-learner', member: nodeName, peerURL, reason: 'does not exist' }] };
  },
});

interface ManifestFacts {
  readonly members: readonly EtcdMemberState[] | null;
  readonly files: ReadonlyMap<string, FileFact | null>;
}

/**
 * Writes the manifest that starts the new member. It names the members that exist after the member was added: others may
 * have joined while it waited, and etcd exits when a member is missing. kubeadm 1.36 does this in etcd-join.
 */
export const etcdManifest = definePhase<EtcdJoinInput, ManifestFacts>({
  name: 'etcd-join/manifest',
  short: 'Write the static Pod manifest of the new etcd member',
  observe: async (context, input) => {
    const { directories, files: written } = input.manifestFor([], false);
    const paths = [...directories, ...written].map(({ path }) => path);
    const [members, files] = await Promise.all([
      input.skipped === null ? membersOf(context, input) : null,
      observe(context.host, fileFacts(paths), context.signal),
    ]);
    return { members, files };
  },
  plan: ({ members, files }, input) => {
    if (input.skipped !== null) return { changes: [], noop: input.skipped };
    if (members === null) return { changes: [], deferred: NO_ETCD };
    const own = ownMember(members, input);
    const manifest = input.manifestFor(initialCluster(members, input), own !== null && own.name !== '');
    const writes = manifest.files.map((file) => diffFile(files.get(file.path) ?? null, file, { mayChown: manifest.mayChown }));
    const changes = [
      ...manifest.directories.map(({ path, mode }) => diffDirectory(files.get(path) ?? null, path, mode)),
      ...writes,
      ...(writes.some((change) => change?.kind === 'write-file' && change.before !== null) ? [TAKE_OVER] : []),
    ].filter((change) => change !== null);
    return changes.length === 0 ? { changes, noop: 'the manifest is unchanged' } : { changes };
  },
});

/**
 * Without a restart the kubelet keeps the previous etcd Pod until it reaches the API server, which itself
 * needs the new Pod.
 */
const TAKE_OVER = {
  kind: 'restart-unit',
  unit: 'kubelet',
  reason: 'otherwise the kubelet would keep the etcd Pod of the previous manifest',
} as const;

/** Promotes a learner to a voting member after it is in sync. kubeadm 1.36 does this in etcd-join. */
export const etcdPromote = definePhase<EtcdJoinInput, readonly EtcdMemberState[] | null>({
  name: 'etcd-join/promote',
  short: 'Promote the new etcd learner to a voting member',
  ready: waitForStart,
  observe: async (context, input) => (input.skipped === null ? membersOf(context, input) : null),
  plan: (members, input) => {
    if (input.skipped !== null) return { changes: [], noop: input.skipped };
    const own = ownMember(members, input);
    if (own === null || own.name === '') return { changes: [], deferred: 'promotes the member to a voting member after it has started' };
    if (!own.isLearner) return { changes: [], noop: `member ${own.name} is a voting member` };
    return { changes: [{ kind: 'promote-etcd-member', member: own.name, id: own.id, reason: 'the member is a learner' }] };
  },
});

async function waitForStart(context: PhaseContext, input: EtcdJoinInput): Promise<void> {
  const { etcd = null } = context;
  if (input.skipped !== null || etcd === null) return;
  await waitOnKubelet<void, AppError | null>(context, 'etcd-join/promote', {
    probe: async () => {
      try {
        const own = ownMember(await etcd.members(), input);
        return own !== null && own.name !== '' ? { done: undefined } : { pending: null };
      } catch (error) {
        if (!isTransientEtcdError(error)) throw error;
        return { pending: error };
      }
    },
    timeoutMs: input.timeoutMs,
    pauseMs: ETCD_PAUSE,
    describe: (_, waitedMs) => `waiting for the new etcd member to start, ${Math.round(waitedMs / 1000)} s`,
    timedOut: (unanswered, waitedMs) => {
      if (unanswered !== null) throw unanswered;
      const message = `etcd-join: the new member has not started after ${Math.round(waitedMs / 1000)}s`;
      const hint = 'See crictl ps -a, crictl logs of etcd and journalctl -u kubelet on the host, then rerun the command';
      throw new AppError({ host: context.host.name, code: 'ETCD_MEMBER_NOT_STARTED', message, hint });
    },
  });
}

/** The etcd member of a host that leaves the cluster. */
export interface RemoveEtcdMemberInput {
  /** Null: no member on the host; `noop` gives the reason. */
  readonly peerURL: string | null;
  readonly noop: string;
}

/**
 * Removes the member of a host from the etcd cluster: a lost member still counts for the quorum. The last
 * member is kept. The members are queried once: only the change itself waits for an etcd that does not answer.
 * kubeadm 1.36: reset phase remove-etcd-member
 */
export const removeEtcdMember = definePhase<RemoveEtcdMemberInput, readonly EtcdMemberState[] | null>({
  name: 'remove-etcd-member',
  short: 'Remove the local etcd member from the etcd cluster',
  observe: async ({ etcd }, { peerURL }) => (peerURL === null ? null : ((await etcd?.members()) ?? null)),
  plan: (members, { peerURL, noop }) => {
    if (peerURL === null) return { changes: [], noop };
    if (members === null) return { changes: [], noop: 'the etcd cluster is unreachable: its members are unchanged' };
    const own = ownMember(members, { peerURL });
    if (own === null) return { changes: [], noop: 'the etcd cluster no longer contains the member' };
    if (members.length === 1) return { changes: [], noop: 'the etcd cluster has only this member, which is not removed' };
    const member = own.name === '' ? peerURL : own.name;
    return { changes: [{ kind: 'remove-etcd-member', member, id: own.id, reason: 'the host leaves the cluster' }] };
  },
});
