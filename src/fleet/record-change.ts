import type { Clock } from '../base/clock.ts';
import { type AppError, isAppError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import type { Host } from '../host/host.ts';
import type { HostPlan } from '../host/plan/document.ts';
import { isConnectionLost, runHost, type WriterOptions } from '../host/run-host.ts';
import type { Cluster } from '../kube/cluster.ts';
import { nodeEvent } from '../kube/node-event.ts';
import {
  appendHistory,
  HISTORY_DIRECTORY,
  HISTORY_PATH,
  type HistoryEntry,
  type HistoryNote,
  type HistoryResult,
  historyEntry,
} from './host-history.ts';

/** The end of a change of a host. */
export interface ChangeEnd {
  /** The applied changes, or the planned ones of a failed run. */
  readonly plan: HostPlan;
  /** Null: the change succeeded. */
  readonly error: AppError | null;
}

/** Ports and settings for recording the changes of one host. */
export interface ChangeRecorder {
  readonly host: Host;
  /** Opens a new connection if that of `host` was lost. */
  readonly connect: () => Promise<Host>;
  readonly writing: WriterOptions;
  readonly note: HistoryNote;
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
export async function recordChange(recorder: ChangeRecorder, { plan, error }: ChangeEnd): Promise<void> {
  if (!plan.phases.some(({ plan: { changes } }) => changes.length > 0)) return;
  const result: HistoryResult = error === null ? 'changed' : error.exitCode === 5 ? 'rolled-back' : 'failed';
  const { host, clock, writing, note, reporter } = recorder;
  const problems = error === null ? [] : [...new Set(error.problems.map(({ code }) => code))];
  const change = { time: clock.now(), operator: writing.owner.name, note, result, problems, plan };
  try {
    await writeEntry(recorder, (login) => historyEntry({ ...change, login }));
  } catch (failure) {
    if (!isAppError(failure)) throw failure;
    const message = `the change is not recorded in ${HISTORY_PATH}: ${failure.message}`;
    reporter.report({ level: 'warning', code: 'HISTORY_NOT_WRITTEN', host: host.name, message });
  }
  await announce(recorder, historyEntry({ ...change, login: null }));
}

const LOGIN = { kind: 'command', argv: ['sh', '-c', 'printf %s "${SUDO_USER:-$(id -un)}"'] } as const;

/** Over a new connection if the first one was lost, as after a failure of the network. */
async function writeEntry(recorder: ChangeRecorder, entryFor: (login: string | null) => HistoryEntry): Promise<void> {
  try {
    await writeOver(recorder.host, recorder, entryFor);
  } catch (error) {
    if (!isConnectionLost(error)) throw error;
    const host = await recorder.connect();
    try {
      await writeOver(host, recorder, entryFor);
    } finally {
      await host.close();
    }
  }
}

/** Reads and writes under the lock of the host: two runs never overwrite each other's entries. */
async function writeOver(
  connection: Host,
  { clock, writing }: ChangeRecorder,
  entryFor: (login: string | null) => HistoryEntry,
): Promise<void> {
  const host = runHost(connection, { clock, writing: { ...writing, confirm: null } });
  try {
    await host.perform([{ kind: 'make-directory', path: HISTORY_DIRECTORY, mode: 0o700, owner: 'root:root' }]);
    const { file, login } = await host.query({ file: { kind: 'file', path: HISTORY_PATH, content: true }, login: LOGIN });
    const name = login.exitCode === 0 && login.stdout !== '' ? login.stdout : null;
    const content = appendHistory(file?.content ?? '', entryFor(name));
    await host.perform([{ kind: 'write-file', path: HISTORY_PATH, mode: 0o600, owner: 'root:root', content }, ...host.releasing()]);
    host.wasReleased();
  } finally {
    await host.end();
  }
}

const REASONS = {
  changed: ['Normal', 'KubeletadmApplied'],
  failed: ['Warning', 'KubeletadmFailed'],
  'rolled-back': ['Warning', 'KubeletadmRolledBack'],
} as const satisfies Record<HistoryResult, readonly [string, string]>;

/** Most credentials of nodes may not write Events: a failure is only logged. */
async function announce({ cluster, node, clock, reporter, host }: ChangeRecorder, entry: HistoryEntry): Promise<void> {
  if (cluster === null || node === null) return;
  const [type, reason] = REASONS[entry.result];
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
function eventMessage({ operator, command, reason, fields, changes }: HistoryEntry): string {
  const value = (json: unknown): string => (json === null ? 'unset' : JSON.stringify(json));
  const what =
    fields.length === 0 ? changes.join(', ') : fields.map((one) => `${one.field} ${value(one.before)} → ${value(one.after)}`).join(', ');
  return `${operator}: ${command}${reason === undefined ? '' : ` (${reason})`}: ${what}`;
}
