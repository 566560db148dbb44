import { AppError } from '../../base/errors.ts';
import { combineFacts, defineFact } from '../../host/facts/fact.ts';
import type { HttpFact } from '../../host/facts/query.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import type { Host } from '../../host/host.ts';
import { observe } from '../../host/observe.ts';
import type { Operation } from '../../host/plan/operation.ts';
import { hashInPath, PAYLOAD_FILE } from '../../kubeadm/node-agent/layout.ts';
import { type KubeletCommandLine, kubeletCommandLine } from '../../kubelet/facts/kubelet-command-line.ts';
import { explainKubeletFailure } from '../../kubelet/facts/kubelet-failure.ts';
import type { CheckpointStore } from '../checkpoint-store.ts';
import type { Observation } from './health.ts';

/** What can be seen of a kubelet on its host. */
export type HostObservation = Pick<Observation, 'unit' | 'runs' | 'healthz' | 'cause'> & {
  /** Of the process; null: none. */
  readonly pid: number | null;
  /** How long ago it was started; null: not known. */
  readonly ageMs: number | null;
};

export interface InspectOptions {
  /** Null: the kubelet serves no healthz. */
  readonly healthzUrl: string | null;
  /** The count of restarts at the last look: one more, and the journal is asked why. */
  readonly restarts: number | null;
  /** When the kubelet was given what it runs, in Unix seconds: what the journal said before is about something else. */
  readonly sinceSeconds: number;
  readonly signal?: AbortSignal;
}

const UNIT = 'kubelet';
const JOURNAL_LINES = 300;
const LONGEST_CAUSE = 500;

/** Looks at the kubelet of a host, in one round trip; when it is not well, in two, the second for the cause in its journal. */
export async function inspectKubelet(host: Host, { healthzUrl, restarts, sinceSeconds, signal }: InspectOptions): Promise<HostObservation> {
  const healthzFact =
    healthzUrl === null
      ? defineFact({}, (): HttpFact | null => null)
      : defineFact({ get: { kind: 'http', url: healthzUrl, timeoutSeconds: 2 } }, ({ get }): HttpFact | null => get);
  const seen = await observe(host, combineFacts({ unit: unitState(UNIT), commandLine: kubeletCommandLine, healthz: healthzFact }), signal);
  const { unit, commandLine } = seen;
  const healthz = readHealthz(seen.healthz);
  const isWell = unit !== null && unit.activeState === 'active' && unit.restarts <= (restarts ?? unit.restarts) && healthz?.ok !== false;
  return {
    unit: unit === null ? null : { activeState: unit.activeState, subState: unit.subState, restarts: unit.restarts },
    pid: commandLine?.pid ?? null,
    ageMs: commandLine?.ageMs ?? null,
    runs: runsOf(commandLine),
    healthz,
    cause: isWell ? null : await causeOf(host, unit, sinceSeconds, signal),
  };
}

/** The payload on a command line; `local`: another configuration. */
function runsOf(commandLine: KubeletCommandLine | null): string | null {
  return commandLine === null ? null : (hashInPath(commandLine.argv.join('\n')) ?? 'local');
}

function readHealthz(answer: HttpFact | null): Observation['healthz'] {
  if (answer === null) return null;
  if ('error' in answer) return { ok: false, why: answer.error };
  return answer.status === 200 ? { ok: true } : { ok: false, why: `answers ${answer.status}` };
}

async function causeOf(host: Host, unit: UnitState | null, sinceSeconds: number, signal?: AbortSignal): Promise<string | null> {
  const since = `--since=@${Math.floor(sinceSeconds)}`;
  const argv = ['journalctl', `--unit=${UNIT}`, since, `--lines=${JOURNAL_LINES}`, '--output=cat', '--no-pager'];
  const { journal } = await host.query({ journal: { kind: 'command', argv } }, signal === undefined ? {} : { signal });
  if (journal.exitCode !== 0 || journal.stdout === '') return null;
  const { cause } = explainKubeletFailure(unit, journal.stdout, { lastRunOnly: false });
  return cause.length <= LONGEST_CAUSE ? cause : `${cause.slice(0, LONGEST_CAUSE)}...`;
}

/** A switch of the kubelet that was made. */
export interface Switched {
  /** The count of restarts right after it. */
  readonly restarts: number | null;
  readonly wasRestarted: boolean;
  /** What the process is seen to run right after it: the hash of a payload, or `local`; null: not known yet. */
  readonly runs: string | null;
}

/** The checkpoint to be run is not what its name says: there is nothing that can be run. */
export class CheckpointDamagedError extends AppError {}

/**
 * Has the kubelet run a checkpoint, or the local configuration: first the pointer, then the restart, and neither where it is so already. May be done again
 * after it broke off anywhere, because the command line of the kubelet says what it runs.
 * @throws CheckpointDamagedError, or what `host.perform` throws
 */
export async function switchKubelet(host: Host, store: CheckpointStore, to: string | null): Promise<Switched> {
  if (to !== null && (await store.readCheckpoint(to)) === null) {
    const message = `${to.slice(0, 12)}/${PAYLOAD_FILE} is gone, torn or was changed`;
    throw new CheckpointDamagedError({ host: host.name, code: 'CHECKPOINT_DAMAGED', message });
  }
  const [pointer, prepared] = [await store.readPointer(), await store.readRollbackPointer()];
  const commandLine = await observe(host, kubeletCommandLine);
  const runs = commandLine === null ? null : hashInPath(commandLine.argv.join('\n'));
  const isPointed = pointer === to;
  const point = isPointed ? [] : store.pointTo(to, prepared);
  const needsRestart = commandLine === null ? !isPointed : runs !== to;
  const restart: readonly Operation[] = [
    // Starts that failed before are about another configuration.
    { kind: 'run', argv: ['systemctl', 'reset-failed', UNIT], okExit: [0, 1, 5] },
    { kind: 'run', argv: ['systemctl', 'restart', UNIT], what: `restart of ${UNIT}` },
  ];
  await host.perform([...point, ...(needsRestart ? restart : [])]);
  const after = await observe(host, combineFacts({ unit: unitState(UNIT), commandLine: kubeletCommandLine }));
  // The payload was checked before this restart; a process that is older has to be looked at.
  const isKnown = needsRestart || to === null;
  return { restarts: after.unit?.restarts ?? null, wasRestarted: needsRestart, runs: isKnown ? runsOf(after.commandLine) : null };
}
