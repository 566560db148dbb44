import type { Clock } from '../../base/clock.ts';
import { type AppError, isAppError } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import type { Operation } from '../../host/operation/operation.ts';
import type { Change } from '../../host/plan/change.ts';
import type { HostPlan } from '../../host/plan/document.ts';
import { isConnectionLost, runHost, type WriterOptions } from '../../host/run-host.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { nodeEvent } from '../../kube/node-event.ts';
import { HISTORY_PATH, type HistoryEnd, type HistoryEntry, historyEntry, journalOperation, type RunAttribution } from './host-history.ts';

/** The end of a change of a host. */
export interface ChangeEnd {
  /** The applied changes, or the planned ones of a failed run. */
  readonly plan: HostPlan;
  /** Null: the change succeeded. */
  readonly error: AppError | null;
}

/** The start of a change of a host. */
export interface ChangeStart {
  readonly id: string;
  readonly note: RunAttribution;
  readonly operator: string;
  readonly time: Date;
  readonly planned: HostPlan;
}

/**
 * The operation that records the start of a change, for the program of the first change: a run that is killed leaves
 * this entry. It never fails a run.
 */
export function recordStart({ id, note, operator, time, planned }: ChangeStart): Operation {
  const entry = historyEntry({ id, time, operator, note, result: 'started', problems: [], plan: planned });
  return journalOperation(entry, { isOptional: true });
}

/** Ports and settings for recording the changes of one host. */
interface ChangeRecorder {
  /** As in the record of the start. */
  readonly id: string;
  readonly host: Host;
  /** Opens a new connection if that of `host` was lost. */
  readonly connect: () => Promise<Host>;
  readonly writing: WriterOptions;
  readonly note: RunAttribution;
  readonly cluster: Cluster | null;
  /** The Node of the host; null: unknown. */
  readonly node: string | null;
  readonly clock: Clock;
  readonly reporter: Reporter;
}

/**
 * Records a change after it was verified or has failed: in the journal on the host, and as an Event on the Node. A
 * record that cannot be written is a warning and never fails the run. Nothing is recorded for a host without changes.
 */
export async function recordChange(recorder: ChangeRecorder, { plan: whole, error }: ChangeEnd): Promise<void> {
  if (!whole.phases.some(({ plan: { changes } }) => changes.length > 0)) return;
  const result = resultOf(error);
  const plan = result === 'refused' ? hookBefore(whole) : whole;
  const { host, clock, writing, note, reporter } = recorder;
  const problems = error === null ? [] : [...new Set(error.problems.map(({ code }) => code))];
  const entry = historyEntry({ id: recorder.id, time: clock.now(), operator: writing.owner.name, note, result, problems, plan });
  const written = writeEntry(recorder, entry).catch((failure: unknown) => {
    if (!isAppError(failure)) throw failure;
    const message = `the change is not recorded in ${HISTORY_PATH}: ${failure.message}`;
    reporter.report({ level: 'warning', code: 'HISTORY_NOT_WRITTEN', host: host.name, message });
  });
  await Promise.all([written, announce(recorder, result, entry)]);
}

function resultOf(error: AppError | null): HistoryEnd {
  if (error === null) return 'changed';
  if (error.exitCode === 5) return 'rolled-back';
  return error.exitCode === 3 && error.code === 'HOOK_FAILED' ? 'refused' : 'failed';
}

/** The hook before the change, which is all that a refused run has run. */
function hookBefore(plan: HostPlan): HostPlan {
  const isHook = (change: Change): boolean => change.kind === 'run-hook' && change.hook === 'beforeChange';
  return { ...plan, phases: plan.phases.filter(({ plan: { changes } }) => changes.some(isHook)) };
}

/** Over a new connection if the first one was lost, as after a failure of the network. */
async function writeEntry(recorder: ChangeRecorder, entry: HistoryEntry & { readonly id: string }): Promise<void> {
  try {
    await writeOver(recorder.host, recorder, entry);
  } catch (error) {
    if (!isConnectionLost(error)) throw error;
    const host = await recorder.connect();
    try {
      await writeOver(host, recorder, entry);
    } finally {
      await host.close();
    }
  }
}

/** One program, under the lock of the host: two runs never overwrite each other's entries. */
async function writeOver(
  connection: Host,
  { clock, writing }: ChangeRecorder,
  entry: HistoryEntry & { readonly id: string },
): Promise<void> {
  const { opening: _, ...lock } = writing;
  const host = runHost(connection, { clock, writing: { ...lock, confirm: null } });
  try {
    await host.perform([journalOperation(entry, { isOptional: false })], { isLast: true });
  } finally {
    await host.end();
  }
}

const REASONS = {
  changed: ['Normal', 'KubeletadmApplied'],
  failed: ['Warning', 'KubeletadmFailed'],
  refused: ['Warning', 'KubeletadmRefused'],
  'rolled-back': ['Warning', 'KubeletadmRolledBack'],
} as const satisfies Record<HistoryEnd, readonly [string, string]>;

/** Most credentials of nodes may not write Events: a failure is only logged. */
async function announce({ cluster, node, clock, reporter, host }: ChangeRecorder, result: HistoryEnd, entry: HistoryEntry): Promise<void> {
  if (cluster === null || node === null) return;
  const [type, reason] = REASONS[result];
  const event = nodeEvent(node, { type, reason, message: eventMessage(entry), component: 'kubeletadm' }, clock.now(), 0);
  try {
    await cluster.create(event);
  } catch (error) {
    if (!isAppError(error)) throw error;
    const message = `no Event was created for Node ${node}: ${error.message}`;
    reporter.report({ level: 'warning', code: 'EVENT_NOT_CREATED', host: host.name, message, verbosity: 1 });
  }
}

/** `alice@laptop: apply (ticket 7): maxPods 110 → 60`. */
function eventMessage({ operator, command, reason, result, fields, changes }: HistoryEntry): string {
  const value = (json: unknown): string => (json === null ? 'unset' : JSON.stringify(json));
  const what =
    fields.length === 0 ? changes.join(', ') : fields.map((one) => `${one.field} ${value(one.before)} → ${value(one.after)}`).join(', ');
  const shown = {
    started: `started; planned: ${what}`,
    changed: what,
    failed: `failed; planned: ${what}`,
    refused: 'nothing was changed, because the hook beforeChange failed',
    'rolled-back': `rolled back; planned: ${what}`,
  }[result];
  return `${operator}: ${command}${reason === undefined ? '' : ` (${reason})`}: ${shown}`;
}
