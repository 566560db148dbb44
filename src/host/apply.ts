import { onAbort } from '../base/abort.ts';
import { AppError, isAppError } from '../base/errors.ts';
import { jsonContains } from '../base/json.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Cluster } from '../kube/cluster.ts';
import { ownerNotFound } from '../kube/cluster-problems.ts';
import { applyNodeMarks } from '../kube/mark-node.ts';
import { type KubeObject, ownerReference, refOf } from '../kube/object.ts';
import type { Host } from './access/host.ts';
import { describeDone, timeoutMsOf } from './operation-kinds.ts';
import type { HostChange, ObjectChange } from './plan/change.ts';
import { revertChanges } from './plan/revert.ts';

interface ApplyContext {
  readonly reporter: Reporter;
  readonly phase: string;
  /** Phase of each change, by index, for changes of several phases. */
  readonly phaseOf?: (index: number) => string;
  readonly signal?: AbortSignal | undefined;
  /** The host rolls back unconfirmed changes automatically: a failed change is not undone here. */
  readonly guarded?: boolean;
  /** As in `PerformOptions`, if the changes succeed. */
  readonly isLast?: boolean | undefined;
}

/**
 * Applies changes to a host, in order and in one remote program. If one fails, the files already changed are
 * restored, and a warning reports it. An interruption takes effect before or after all changes, so that no
 * host is left half changed.
 * @throws the signal's reason before the first change; errors of `host.perform`: the host is unchanged,
 * unless the connection broke (HOST_CONNECTION_LOST and similar errors)
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

/** Performs changes. If one fails, nothing is undone. @throws errors of `host.perform` */
export async function performChanges(
  host: Host,
  changes: readonly HostChange[],
  context: ApplyContext,
  onCount: (done: number) => void = () => {},
): Promise<void> {
  await host.perform(changes, {
    timeoutMs: timeoutMsOf(changes),
    isLast: context.isLast,
    onDone: (index) => {
      onCount(index + 1);
      const change = changes[index] as HostChange;
      const message = describeDone(change);
      const phase = context.phaseOf?.(index) ?? context.phase;
      const data = { kind: change.kind, ...('unit' in change ? { unit: change.unit } : {}) };
      context.reporter.report({ level: 'info', code: 'CHANGE_DONE', host: host.name, phase, message, data });
    },
  });
}

/** Errors of single operations: the host still executes requests. */
const OPERATION_FAILED = /^HOST_(NO_SPACE|READ_ONLY|PERMISSION_DENIED|OPERATION_FAILED)$/;

export function isOperationFailure(error: unknown): error is AppError {
  return isAppError(error) && OPERATION_FAILED.test(error.code);
}

async function restore(host: Host, changes: readonly HostChange[], done: number, error: unknown, context: ApplyContext): Promise<void> {
  if (!isOperationFailure(error)) return;
  const applied = changes.slice(0, done);
  const undo = [...revertChanges(applied), ...restartsToRepeat(changes, done + 1)];
  const kept = applied.flatMap((change) => ('keep' in change && change.keep === true ? [change.path] : []));
  if (undo.length === 0) return;
  try {
    await host.perform(undo, { timeoutMs: timeoutMsOf(undo) });
    const message = `the files that had been changed were restored to their previous content${kept.length === 0 ? '' : `, except ${kept.join(', ')}`}`;
    context.reporter.report({ level: 'warning', code: 'CHANGES_REVERTED', host: host.name, phase: context.phase, message });
  } catch (cause) {
    const message = 'a change failed, and the earlier changes of this run could not be rolled back';
    const hint = 'Fix the cause and rerun the command; it resumes where it stopped';
    const problem = { host: host.name, code: 'HOST_REVERT_FAILED', message, hint };
    throw new AppError([...error.problems, problem], { cause, detail: error.detail });
  }
}

/**
 * The reloads and restarts that were attempted, and the restart of a unit that was stopped for it, to repeat
 * with the previous files. Empty if every file was created: no previous working unit exists.
 */
function restartsToRepeat(changes: readonly HostChange[], count: number): readonly HostChange[] {
  const tried = changes.slice(0, count);
  const restarts = changes.filter((change) => change.kind === 'restart-unit');
  const stopped = tried.flatMap((change) => (change.kind === 'stop-unit' ? [change.unit] : []));
  const writes = tried.filter((change) => change.kind === 'write-file');
  if (stopped.length === 0 && writes.every((change) => change.before === null)) return [];
  const attempted = tried.filter(({ kind }) => kind === 'daemon-reload' || kind === 'restart-unit');
  return [...attempted, ...restarts.filter((change) => stopped.includes(change.unit) && !attempted.includes(change))];
}

/**
 * Applies one change of an object: only the reviewed state is overwritten. An object to create that exists by then with the
 * same content is left as it is: hosts that are changed at the same time share objects.
 * @returns whether a request changed the object
 * @throws AppError CLUSTER_CONFLICT, CLUSTER_ALREADY_EXISTS and other errors of `Cluster`
 */
export async function applyClusterChange(cluster: Cluster, change: ObjectChange): Promise<boolean> {
  switch (change.kind) {
    case 'create-object':
      return createUnlessEqual(cluster, await withOwner(cluster, change));
    case 'update-object': {
      const { resourceVersion } = change.before.metadata;
      const metadata = { ...change.object.metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
      await cluster.update(await withOwner(cluster, { ...change, object: { ...change.object, metadata } }));
      return true;
    }
    case 'patch-object':
      await cluster.patch(change.ref, 'strategic', change.patch, { subresource: change.subresource });
      return true;
    case 'mark-node':
      await applyNodeMarks(cluster, change);
      return true;
    case 'delete-object':
      await cluster.delete(change.ref);
      return true;
  }
}

/** @returns false: the object exists, with the planned content */
async function createUnlessEqual(cluster: Cluster, object: KubeObject): Promise<boolean> {
  try {
    await cluster.create(object);
    return true;
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_ALREADY_EXISTS')) throw error;
    const found = await cluster.get(refOf(object)).catch(() => null);
    if (found === null || found.metadata.deletionTimestamp !== undefined || !jsonContains(found, object)) throw error;
    return false;
  }
}

async function withOwner(cluster: Cluster, { object, owner }: Extract<ObjectChange, { object: KubeObject }>): Promise<KubeObject> {
  if (owner === undefined) return object;
  const found = await cluster.get(owner);
  if (found?.metadata.uid === undefined) throw ownerNotFound(owner, object);
  return { ...object, metadata: { ...object.metadata, ownerReferences: [ownerReference(owner, found.metadata.uid)] } };
}
