import type { Host } from '../../host/access/host.ts';
import { readJournal } from '../../host/access/journal.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import type { HttpFact } from '../../host/facts/query.ts';
import { type UnitState, unitState } from '../../host/facts/unit.ts';
import { answerOf } from '../../host/unit-ready.ts';
import { explainKubeletFailure, shortened } from '../facts/kubelet-failure.ts';
import { type KubeletCommandLine, kubeletCommandLine } from '../facts/kubelet-process.ts';
import type { Observation } from './assess.ts';
import { describeUnit } from './exits.ts';

/** The state of the unit and the answer of healthz; null: not observed or absent. */
export interface HealthState {
  readonly unit: UnitState | null;
  readonly healthz: HttpFact | null;
}

/** The kubelet's current unit state and healthz response. @param url null when healthzPort is 0 */
export function kubeletHealth(url: string | null, limits?: Parameters<typeof answerOf>[1]) {
  return combineFacts({ healthz: answerOf(url, limits), unit: unitState('kubelet') });
}

/** As `kubeletHealth`, with the process. */
export function kubeletHealthNow(url: string | null, limits?: Parameters<typeof answerOf>[1]) {
  return combineFacts({ state: kubeletHealth(url, limits), process: kubeletCommandLine });
}

/** Whether both indicate a healthy kubelet. */
export function isHealthy({ unit, healthz }: HealthState): boolean {
  return unit?.activeState === 'active' && (healthz === null || ('status' in healthz && healthz.status === 200));
}

/** `unit active (running), 0 restarts, healthz returns 500`. */
export function describeHealth({ unit, healthz }: HealthState): string {
  const reported = healthz === null ? '' : 'status' in healthz ? `, healthz returns ${healthz.status}` : `, healthz: ${healthz.error}`;
  return `${describeUnit(unit)}${reported}`;
}

/**
 * A kubelet that systemd has restarted after a failure counts as healthy again after this time: in a crash loop, one
 * observation may be of a process that answers healthz and exits a moment later.
 */
const RECOVERED_MS = 60_000;

/** The health of a kubelet by one observation, in a few words; `ok`: healthy, and not just restarted after a failure. */
export function healthText({ state, process }: ReturnType<ReturnType<typeof kubeletHealthNow>['parse']>): string {
  const { unit, healthz } = state;
  if (unit === null || unit.loadState === 'not-found') return 'not installed';
  const { restarts, activeState, subState } = unit;
  const counted = `${restarts} ${restarts === 1 ? 'restart' : 'restarts'}`;
  if (subState === 'auto-restart') return `crashed, ${counted}`;
  if (activeState !== 'active') return activeState;
  const ageMs = process?.ageMs ?? null;
  if (restarts > 0 && ageMs !== null && ageMs < RECOVERED_MS) return `restarted ${Math.round(ageMs / 1000)} s ago, ${counted}`;
  if (isHealthy(state)) return 'ok';
  return healthz === null ? 'unknown' : 'status' in healthz ? `healthz ${healthz.status}` : 'no answer';
}

const JOURNAL_LINES = 300;
const LONGEST_CAUSE = 500;

/**
 * Observes the kubelet of a host in one round trip; a second one reads the cause of a failure from the journal.
 * @param options `healthzUrl` null: the kubelet serves no healthz; `restarts`: the counter at the last check, if it has grown, the
 *   journal is read for the cause; `sinceSeconds`: Unix time of the last switch, earlier entries are about another configuration
 * @returns `pid`, `ageMs` null: no process, or unknown
 */
export async function observeHealth(
  host: Host,
  {
    healthzUrl,
    restarts,
    sinceSeconds,
    signal,
  }: {
    readonly healthzUrl: string | null;
    readonly restarts: number | null;
    readonly sinceSeconds: number;
    readonly signal?: AbortSignal | undefined;
  },
) {
  const { state, process: commandLine } = await observe(host, kubeletHealthNow(healthzUrl, { timeoutSeconds: 2 }), signal);
  const { unit } = state;
  const healthz = readHealthz(state.healthz);
  // No process has ended since the last check.
  const isRunning = unit !== null && isStarted(unit) && unit.restarts <= (restarts ?? unit.restarts);
  return {
    unit: unit === null ? null : { activeState: unit.activeState, subState: unit.subState, restarts: unit.restarts },
    commandLine,
    pid: commandLine?.pid ?? null,
    ageMs: commandLine?.ageMs ?? null,
    cpuShare: cpuShareOf(commandLine),
    healthz,
    cause:
      isRunning && unit.activeState === 'active' && healthz?.ok !== false
        ? null
        : await causeOf(host, unit, isRunning, { sinceSeconds, signal }),
  };
}

/** The unit has a process. A unit with Type=notify is activating until the kubelet has reported that it is ready. */
function isStarted({ activeState, subState }: UnitState): boolean {
  return activeState === 'active' || (activeState === 'activating' && subState === 'start');
}

function cpuShareOf(process: KubeletCommandLine | null): number | null {
  const { cpuMs = null, ageMs = null } = process ?? {};
  return cpuMs === null || ageMs === null || ageMs === 0 ? null : cpuMs / ageMs;
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
  isRunning: boolean,
  { sinceSeconds, signal }: Pick<Parameters<typeof observeHealth>[1], 'sinceSeconds' | 'signal'>,
): Promise<string | null> {
  const since = `@${Math.floor(sinceSeconds)}`;
  const text = (await readJournal(host, { unit: 'kubelet', since, lines: JOURNAL_LINES, bootOnly: false }, signal)) ?? '';
  // Systemd itself knows how the process of a unit ended until it starts the next one.
  if (text === '' && (unit === null || unit.activeState === 'active')) return null;
  const { cause } = explainKubeletFailure(unit, text, { lastRunOnly: isRunning });
  return shortened(cause, LONGEST_CAUSE);
}
