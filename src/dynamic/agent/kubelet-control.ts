import { AppError } from '../../base/errors.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import { journalCommand, oldestFirst } from '../../host/facts/journal.ts';
import type { HttpFact } from '../../host/facts/query.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import type { Host } from '../../host/host.ts';
import { observe } from '../../host/observe.ts';
import type { Operation } from '../../host/plan/operation.ts';
import { hashInPath, PAYLOAD_FILE } from '../../kubeadm/node-agent/layout.ts';
import { explainKubeletFailure } from '../../kubelet/facts/kubelet-failure.ts';
import { type KubeletCommandLine, kubeletCommandLine } from '../../kubelet/facts/kubelet-process.ts';
import type { Observation } from '../../kubelet/health/assess.ts';
import type { CheckpointStore } from '../checkpoint-store.ts';
import { type ManagerStateSwitches, NO_STATE_SWITCH } from './manager-state-switch.ts';

/** Observation of a kubelet on its host. */
export type HostObservation = Pick<Observation, 'unit' | 'runs' | 'healthz' | 'cause' | 'cpuShare'> & {
  /** Process ID; null: no process. */
  readonly pid: number | null;
  /** Age of the process; null: unknown. */
  readonly ageMs: number | null;
};

export interface InspectOptions {
  /** Null: the kubelet serves no healthz. */
  readonly healthzUrl: string | null;
  /** Restart counter at the last check; if it has grown, the journal is read for the cause. */
  readonly restarts: number | null;
  /** Time of the last switch, in Unix seconds; earlier journal entries are about another configuration. */
  readonly sinceSeconds: number;
  readonly signal?: AbortSignal | undefined;
}

const UNIT = 'kubelet';
const JOURNAL_LINES = 300;
const LONGEST_CAUSE = 500;

/**
 * Observes the kubelet of a host in one round trip; a second one reads the cause of a failure from the
 * journal.
 */
export async function inspectKubelet(host: Host, { healthzUrl, restarts, sinceSeconds, signal }: InspectOptions): Promise<HostObservation> {
  const healthzFact =
    healthzUrl === null
      ? defineFact({}, (): HttpFact | null => null)
      : defineFact({ get: { kind: 'http', url: healthzUrl, timeoutSeconds: 2 } }, ({ get }): HttpFact | null => get);
  const seen = await observe(host, combineFacts({ unit: unitState(UNIT), commandLine: kubeletCommandLine, healthz: healthzFact }), signal);
  const { unit, commandLine } = seen;
  const healthz = readHealthz(seen.healthz);
  // No process has ended since the last check.
  const isRunning = unit !== null && isStarted(unit) && unit.restarts <= (restarts ?? unit.restarts);
  return {
    unit: unit === null ? null : { activeState: unit.activeState, subState: unit.subState, restarts: unit.restarts },
    pid: commandLine?.pid ?? null,
    ageMs: commandLine?.ageMs ?? null,
    cpuShare: cpuShareOf(commandLine),
    runs: runsOf(commandLine),
    healthz,
    cause:
      isRunning && unit.activeState === 'active' && healthz?.ok !== false
        ? null
        : await causeOf(host, unit, { isRunning, sinceSeconds, signal }),
  };
}

/** The payload of the kubelet process; null: the local configuration, or no process. */
export async function runningPayload(host: Host): Promise<string | null> {
  return payloadOn(await observe(host, kubeletCommandLine));
}

/** The unit has a process. A unit with Type=notify is activating until the kubelet has reported that it is ready. */
function isStarted({ activeState, subState }: UnitState): boolean {
  return activeState === 'active' || (activeState === 'activating' && subState === 'start');
}

function cpuShareOf(process: KubeletCommandLine | null): number | null {
  const { cpuMs = null, ageMs = null } = process ?? {};
  return cpuMs === null || ageMs === null || ageMs === 0 ? null : cpuMs / ageMs;
}

function payloadOn(commandLine: KubeletCommandLine | null): string | null {
  return commandLine === null ? null : hashInPath(commandLine.argv.join('\n'));
}

/** The payload on a command line; `local`: another configuration. */
function runsOf(commandLine: KubeletCommandLine | null): string | null {
  return commandLine === null ? null : (payloadOn(commandLine) ?? 'local');
}

function readHealthz(answer: HttpFact | null): Observation['healthz'] {
  if (answer === null) return null;
  if ('error' in answer) return { ok: false, why: answer.error };
  return answer.status === 200 ? { ok: true } : { ok: false, why: `returned ${answer.status}` };
}

/** Null: the cause is not known, or the unit runs again and the journal cannot be read. */
async function causeOf(
  host: Host,
  unit: UnitState | null,
  { isRunning, sinceSeconds, signal }: Pick<InspectOptions, 'sinceSeconds' | 'signal'> & { readonly isRunning: boolean },
): Promise<string | null> {
  const since = `@${Math.floor(sinceSeconds)}`;
  const argv = journalCommand({ unit: UNIT, since, lines: JOURNAL_LINES, bootOnly: false });
  const { journal } = await host.query({ journal: { kind: 'command', argv } }, { signal });
  const text = journal.exitCode === 0 ? oldestFirst(journal.stdout) : '';
  // Systemd itself knows how the process of a unit ended until it starts the next one.
  if (text === '' && (unit === null || unit.activeState === 'active')) return null;
  const { cause } = explainKubeletFailure(unit, text, { lastRunOnly: isRunning });
  return cause.length <= LONGEST_CAUSE ? cause : `${cause.slice(0, LONGEST_CAUSE)}...`;
}

/** Result of a kubelet switch. */
export interface SwitchResult {
  /** Restart counter right after the switch. */
  readonly restarts: number | null;
  readonly wasRestarted: boolean;
  /**
   * Configuration of the process right after the switch: the hash of a payload, or `local`; null: unknown
   * yet.
   */
  readonly runs: string | null;
}

/** Ports of a switch. */
export interface SwitchPorts {
  readonly host: Host;
  readonly store: CheckpointStore;
  /** Null: the agent changes no state files of managers. */
  readonly states: ManagerStateSwitches | null;
}

/** The content of the checkpoint does not match its name. */
export class CheckpointDamagedError extends AppError {}

/**
 * Switches the kubelet to a checkpoint or to the local configuration: sets the pointer, then restarts the
 * kubelet; each only if needed. An interrupted call can be repeated, because the command line of the kubelet
 * shows its configuration. State files of managers that contradict the configuration are replaced while the
 * kubelet is stopped.
 * @throws CheckpointDamagedError, or the errors of `host.perform`
 */
export async function switchKubelet({ host, store, states }: SwitchPorts, to: string | null): Promise<SwitchResult> {
  if (to !== null && (await store.readCheckpoint(to)) === null) {
    const message = `the checkpoint file ${to.slice(0, 12)}/${PAYLOAD_FILE} is missing, truncated or modified`;
    throw new CheckpointDamagedError({ host: host.name, code: 'CHECKPOINT_DAMAGED', message });
  }
  const [pointer, prepared] = [await store.readPointer(), await store.readRollbackPointer()];
  const commandLine = await observe(host, kubeletCommandLine);
  const runs = payloadOn(commandLine);
  const isPointed = pointer === to;
  const point = isPointed ? [] : store.pointTo(to, prepared);
  const isStopped = commandLine === null && isPointed && states !== null && (await states.isStopped());
  const needsRestart = commandLine === null ? !isPointed || isStopped : runs !== to;
  const restart: readonly Operation[] = [
    // Earlier failed starts belong to another configuration.
    { kind: 'run', argv: ['systemctl', 'reset-failed', UNIT], okExit: [0, 1, 5] },
    { kind: 'run', argv: ['systemctl', 'restart', UNIT], what: `restart of ${UNIT}` },
  ];
  const { save, replace, finish } = needsRestart && states !== null ? await states.plan(pointer, to) : NO_STATE_SWITCH;
  // The managers of a running kubelet write their state whenever a container starts or ends.
  const stop: readonly Operation[] = replace.length === 0 ? [] : [{ kind: 'stop-unit', unit: UNIT }];
  try {
    await host.perform([...save, ...stop, ...replace, ...point, ...(needsRestart ? restart : []), ...finish]);
  } catch (error) {
    // A failed switch must not leave the kubelet stopped. The error of the switch is the one to report.
    if (stop.length > 0) await host.perform([{ kind: 'start-unit', unit: UNIT }]).catch(() => undefined);
    throw error;
  }
  if (!needsRestart && commandLine !== null) await states?.forget(to);
  const after = await observe(host, combineFacts({ unit: unitState(UNIT), commandLine: kubeletCommandLine }));
  // The payload was checked before this restart; an older process must be inspected.
  const isKnown = needsRestart || to === null;
  return { restarts: after.unit?.restarts ?? null, wasRestarted: needsRestart, runs: isKnown ? runsOf(after.commandLine) : null };
}
