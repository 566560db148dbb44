import { onAbort } from '../base/abort.ts';
import { AppError, isAppError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Cluster } from '../kube/cluster.ts';
import { ownerGone } from '../kube/cluster-problems.ts';
import { applyNodeMarks } from '../kube/mark-node.ts';
import type { KubeObject } from '../kube/object.ts';
import { ownerReference } from '../kube/object-ref.ts';
import { pullImage, removePods } from './cri/runtime-commands.ts';
import type { Host } from './host.ts';
import { downloadFile, extractArchive, installPackages } from './install/operations.ts';
import type { ClusterChange, HostChange } from './plan/change.ts';
import type { Operation } from './plan/operation.ts';
import { revertChanges } from './plan/revert.ts';

/** The one table that writes: what each kind of change does to a host. */
const OPERATIONS: { readonly [K in HostChange['kind']]: (change: Extract<HostChange, { kind: K }>) => Operation } = {
  'write-file': ({ path, mode, owner, content }) => ({ kind: 'write-file', path, mode, owner, content }),
  'put-file': ({ path, mode, owner, content }) => ({ kind: 'put-file', path, mode, owner, content }),
  'make-directory': ({ path, mode, owner }) => ({ kind: 'make-directory', path, mode, owner }),
  'remove-file': ({ path }) => ({ kind: 'remove-file', path }),
  'move-file': ({ path, to }) => ({ kind: 'move-file', path, to }),
  'empty-directory': ({ path }) => ({ kind: 'empty-directory', path }),
  'remove-directory': ({ path }) => ({ kind: 'remove-directory', path }),
  'remove-empty-directory': ({ path }) => ({ kind: 'remove-empty-directory', path }),
  'unmount-below': ({ path, flags }) => ({ kind: 'unmount-below', path, flags }),
  'remove-pods': ({ criSocket, mayStay }) => ({
    kind: 'run',
    argv: removePods(criSocket, mayStay === true),
    what: `removing the pods of ${criSocket}`,
  }),
  'pull-image': ({ image, criSocket }) => ({
    kind: 'run',
    argv: pullImage(criSocket, image),
    what: `pulling ${image}`,
  }),
  'daemon-reload': () => ({ kind: 'run', argv: ['systemctl', 'daemon-reload'] }),
  'enable-unit': ({ unit }) => ({ kind: 'run', argv: ['systemctl', 'enable', '--quiet', unit] }),
  'restart-unit': ({ unit }) => ({ kind: 'run', argv: ['systemctl', 'restart', unit] }),
  'stop-unit': ({ unit }) => ({ kind: 'run', argv: ['systemctl', 'stop', unit] }),
  'start-unit': ({ unit }) => ({ kind: 'run', argv: ['systemctl', 'start', unit] }),
  'install-packages': ({ manager, packages, repositories }) => installPackages(manager, packages, repositories),
  'hold-packages': ({ packages }) => ({ kind: 'run', argv: ['apt-mark', 'hold', ...packages] }),
  'download-file': ({ path, url, sha256, mode }) => downloadFile({ path, url, sha256, mode }),
  'extract-archive': ({ path, to }) => extractArchive(path, to),
  'load-module': ({ module }) => ({ kind: 'run', argv: ['modprobe', module] }),
  'set-sysctl': ({ name, value }) => ({ kind: 'run', argv: ['sysctl', '-q', '-w', `${name}=${value}`] }),
  'turn-off-swap': () => ({ kind: 'run', argv: ['swapoff', '-a'] }),
  'confirm-commit': ({ id }) => ({ kind: 'confirm-commit', id }),
};

/** What a change may take besides the time all of them have: systemd waits 90 s for a unit to stop, and again to start; a node has up to 110 pods. */
const BASE_MS = 120_000;
const EXTRA_MS: Partial<Record<HostChange['kind'], number>> = {
  'restart-unit': 180_000,
  'stop-unit': 90_000,
  'unmount-below': 60_000,
  'remove-pods': 1_200_000,
  'start-unit': 90_000,
  'install-packages': 1_200_000,
  'download-file': 600_000,
  'extract-archive': 120_000,
  'turn-off-swap': 300_000,
  'pull-image': 900_000,
};

/** The operation a change stands for. */
export function toOperation(change: HostChange): Operation {
  return (OPERATIONS[change.kind] as (change: HostChange) => Operation)(change);
}

export interface ApplyContext {
  readonly reporter: Reporter;
  readonly phase: string;
  /** Of each change by its index, where the changes are those of several phases. */
  readonly phaseOf?: (index: number) => string;
  readonly signal?: AbortSignal;
  /** The host itself takes back what is not confirmed: a change that fails is not undone here. */
  readonly guarded?: boolean;
}

/**
 * Applies changes to a host, in order and in one remote program. When one fails, the files already changed are put back and the error says so.
 * An interruption is obeyed before and after, never in between: the host is not left with half of them.
 * @throws the signal's reason when nothing was begun; what `host.perform` throws; the host is then as it was, unless the connection broke (HOST_CONNECTION_LOST and the like)
 */
export async function applyHostChanges(host: Host, changes: readonly HostChange[], context: ApplyContext): Promise<void> {
  context.signal?.throwIfAborted();
  const forget = onAbort(context.signal, () => {
    const message = 'finishing the changes in progress; interrupt again to exit immediately';
    context.reporter.report({ level: 'warning', code: 'INTERRUPTED', host: host.name, phase: context.phase, message });
  });
  let done = 0;
  try {
    await performChanges(host, changes, context, (count) => {
      done = count;
    });
  } catch (error) {
    if (context.guarded !== true) await restore(host, changes, done, error, context);
    throw error;
  } finally {
    forget();
  }
}

/**
 * Performs changes that are themselves a way back: when one fails, nothing more is undone.
 * @throws what `host.perform` throws
 */
export async function applyRevert(host: Host, changes: readonly HostChange[], context: ApplyContext): Promise<void> {
  await performChanges(host, changes, context);
}

async function performChanges(
  host: Host,
  changes: readonly HostChange[],
  context: ApplyContext,
  onCount: (done: number) => void = () => {},
): Promise<void> {
  await host.perform(changes.map(toOperation), {
    timeoutMs: timeoutMsOf(changes),
    onDone: (index) => {
      onCount(index + 1);
      const message = describeChange(changes[index] as HostChange);
      const phase = context.phaseOf?.(index) ?? context.phase;
      context.reporter.report({ level: 'info', code: 'CHANGE_DONE', host: host.name, phase, message });
    },
  });
}

function timeoutMsOf(changes: readonly HostChange[]): number {
  return changes.reduce((sum, { kind }) => sum + (EXTRA_MS[kind] ?? 0), BASE_MS);
}

/** Errors after which the host still does what it is told. */
const ANSWERING = /^HOST_(NO_SPACE|READ_ONLY|PERMISSION_DENIED|OPERATION_FAILED)$/;

async function restore(host: Host, changes: readonly HostChange[], done: number, error: unknown, context: ApplyContext): Promise<void> {
  if (!isAppError(error) || !ANSWERING.test(error.code)) return;
  const undo = [...revertChanges(changes.slice(0, done)), ...restartsToRepeat(changes.slice(0, done + 1))];
  if (undo.length === 0) return;
  try {
    await host.perform(undo.map(toOperation), { timeoutMs: timeoutMsOf(undo) });
    context.reporter.report({
      level: 'warning',
      code: 'CHANGES_REVERTED',
      host: host.name,
      phase: context.phase,
      message: 'the files already changed were put back',
    });
  } catch (cause) {
    const hint = 'Fix the cause and rerun the command; it resumes where it stopped';
    const problem = {
      host: host.name,
      code: 'HOST_REVERT_FAILED',
      message: 'a change failed, and what was changed before it could not be put back',
      hint,
    };
    throw new AppError([...error.problems, problem], { cause, ...(error.detail === undefined ? {} : { detail: error.detail }) });
  }
}

/**
 * The reloads and restarts that were tried, to be made once more with the files from before. None where everything was created: then there was no working
 * unit to go back to.
 */
function restartsToRepeat(tried: readonly HostChange[]): readonly HostChange[] {
  const writes = tried.filter((change) => change.kind === 'write-file');
  if (writes.every((change) => change.before === null)) return [];
  return tried.filter(({ kind }) => kind === 'daemon-reload' || kind === 'restart-unit');
}

/** One change, said in a line. */
export function describeChange(change: HostChange): string {
  switch (change.kind) {
    case 'write-file':
      return `${change.action === 'create' ? 'created' : 'updated'} ${change.path}`;
    case 'put-file':
      return `put ${change.path} (${(change.content.size / 1e6).toFixed(1)} MB)`;
    case 'make-directory':
      return `made directory ${change.path}`;
    case 'remove-file':
      return `removed ${change.path}`;
    case 'move-file':
      return `moved ${change.path} to ${change.to}`;
    case 'empty-directory':
      return `emptied ${change.path}`;
    case 'remove-directory':
      return `removed ${change.path} with all that was in it`;
    case 'remove-empty-directory':
      return `removed ${change.path}, if it was empty`;
    case 'unmount-below':
      return `unmounted what was mounted below ${change.path}`;
    case 'remove-pods':
      return `removed the pods of ${change.criSocket}`;
    case 'pull-image':
      return `pulled ${change.image}`;
    case 'daemon-reload':
      return 'ran systemctl daemon-reload';
    case 'enable-unit':
      return `enabled ${change.unit}`;
    case 'restart-unit':
      return `restarted ${change.unit}`;
    case 'stop-unit':
      return `stopped ${change.unit}`;
    case 'start-unit':
      return `started ${change.unit}`;
    case 'install-packages':
      return `installed ${change.packages.join(', ')}`;
    case 'hold-packages':
      return `keeps ${change.packages.join(', ')} at ${change.packages.length === 1 ? 'its version' : 'their versions'}`;
    case 'download-file':
      return `fetched ${change.path}`;
    case 'extract-archive':
      return `unpacked ${change.path} in ${change.to}`;
    case 'load-module':
      return `loaded the kernel module ${change.module}`;
    case 'set-sysctl':
      return `set ${change.name} = ${change.value}`;
    case 'turn-off-swap':
      return 'turned swap off';
    case 'confirm-commit':
      return 'confirmed the change of an earlier run';
  }
}

/**
 * Applies one change to the cluster. An object that appeared or changed in between is an error: nothing unseen is overwritten.
 * @throws AppError CLUSTER_CONFLICT, CLUSTER_ALREADY_EXISTS and what else `Cluster` throws
 */
export async function applyClusterChange(cluster: Cluster, change: ClusterChange): Promise<void> {
  switch (change.kind) {
    case 'create-object':
      await cluster.create(await withOwner(cluster, change));
      return;
    case 'update-object': {
      const { resourceVersion } = change.before.metadata;
      const metadata = { ...change.object.metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
      await cluster.update(await withOwner(cluster, { ...change, object: { ...change.object, metadata } }));
      return;
    }
    case 'patch-object':
      await cluster.patch(
        change.ref,
        'strategic',
        change.patch,
        change.subresource === undefined ? {} : { subresource: change.subresource },
      );
      return;
    case 'mark-node':
      await applyNodeMarks(cluster, change);
      return;
    case 'delete-object':
      await cluster.delete(change.ref);
      return;
  }
}

/** The object as it belongs to its owner. */
async function withOwner(cluster: Cluster, { object, owner }: Extract<ClusterChange, { object: KubeObject }>): Promise<KubeObject> {
  if (owner === undefined) return object;
  const found = await cluster.get(owner);
  if (found?.metadata.uid === undefined) throw ownerGone(owner, object);
  return { ...object, metadata: { ...object.metadata, ownerReferences: [ownerReference(owner, found.metadata.uid)] } };
}
