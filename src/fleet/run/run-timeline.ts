import type { Clock } from '../../base/clock.ts';
import type { HostPlan } from '../../host/plan/document.ts';
import type { GateRecord } from '../../maintenance/gates/batch-gates.ts';
import type { FleetPorts, FleetProgress, HostOutcome, HostStatus } from './fleet.ts';
import { type HostPhase, type HostSteps, medianOf, type RunSteps, runSteps } from './run-steps.ts';

/** A phase of a host in milliseconds since the start of the run; `endMs` is not smaller than `startMs`. */
export interface TimedPhase {
  readonly phase: HostPhase;
  readonly startMs: number;
  readonly endMs: number;
}

/** The phases of a host in order of time, without gaps. */
export interface HostTimeline {
  readonly host: string;
  readonly phases: readonly TimedPhase[];
  /** Start of the first change; null: the host was not changed. */
  readonly beganMs: number | null;
  /** When the change was confirmed over a new connection; null: it needed no confirmation, or was not confirmed. */
  readonly confirmedMs: number | null;
  /** Null: not ended yet. */
  readonly endedMs: number | null;
  readonly status: HostStatus | null;
  /** Changed before the required number of hosts had succeeded. */
  readonly isCanary: boolean;
  /** Hosts that were changed together have the same number, from 1; null: not changed. */
  readonly batch: number | null;
}

/**
 * The timelines of the hosts of a run.
 * @param options.canary number of hosts that are changed first
 * @param options.now end of the phases in progress, in milliseconds since the epoch
 * @returns in order of the first event of each host
 */
export function timelinesOf(
  { startedAt, hosts: recorded }: Pick<RunSteps, 'startedAt' | 'hosts'>,
  { canary, now }: { readonly canary: number; readonly now: number },
): readonly HostTimeline[] {
  const hosts = recorded();
  const batches = batchesOf(hosts, now);
  const canaries = canariesOf(hosts, canary);
  const since = (at: number | null): number | null => (at === null ? null : at - startedAt);
  return hosts.map(({ host, phases, beganAt, confirmedAt, endedAt, status }) => ({
    host,
    phases: phases.flatMap(({ name, startedAt: start, endedAt: end }) => {
      const period = { phase: name, startMs: start - startedAt, endMs: (end ?? now) - startedAt };
      return period.endMs > period.startMs ? [period] : [];
    }),
    beganMs: since(beganAt),
    confirmedMs: since(beganAt === null ? null : confirmedAt),
    endedMs: since(endedAt),
    status,
    isCanary: canaries.has(host),
    batch: batches.get(host) ?? null,
  }));
}

/** The hosts that were changed before `canary` hosts had succeeded. */
function canariesOf(hosts: readonly HostSteps[], canary: number): ReadonlySet<string> {
  const isPassed = ({ beganAt, status }: HostSteps): boolean => beganAt !== null && (status === 'changed' || status === 'unchanged');
  const passedAt = hosts.flatMap((host) => (isPassed(host) ? [host.endedAt ?? 0] : [])).toSorted((a, b) => a - b);
  const last = canary === 0 ? Number.NEGATIVE_INFINITY : (passedAt[canary - 1] ?? Number.POSITIVE_INFINITY);
  return new Set(hosts.flatMap(({ host, beganAt }) => (beganAt !== null && beganAt < last ? [host] : [])));
}

/** A batch has the hosts that began before any host of the batch had ended. */
function batchesOf(hosts: readonly HostSteps[], now: number): ReadonlyMap<string, number> {
  const batches = new Map<string, number>();
  let batch = 0;
  let firstEnd = Number.NEGATIVE_INFINITY;
  const changed = hosts.flatMap(({ host, beganAt, endedAt }) => (beganAt === null ? [] : [{ host, beganAt, endedAt: endedAt ?? now }]));
  for (const { host, beganAt, endedAt } of changed.toSorted((a, b) => a.beganAt - b.beganAt)) {
    if (beganAt >= firstEnd) {
      batch++;
      firstEnd = Number.POSITIVE_INFINITY;
    }
    firstEnd = Math.min(firstEnd, endedAt);
    batches.set(host, batch);
  }
  return batches;
}

/** Milliseconds from the first change of a host until it finishes; null: not changed. */
export function changeMsOf({ beganMs, endedMs }: HostTimeline): number | null {
  return beganMs === null || endedMs === null ? null : endedMs - beganMs;
}

/** Whether the change of a host has failed, and its rollback has not ended. */
export function isRollingBack({ status, phases }: HostTimeline): boolean {
  return status === null && phases.at(-1)?.phase === 'rolling-back';
}

const SLOW_FACTOR = 2;
const SLOW_MARGIN_MS = 5_000;
const FEWEST_TO_COMPARE = 3;

/**
 * The duration of a change beyond which a host is slow: twice the median of the changed hosts, and at least five seconds more.
 * @returns milliseconds; Infinity: too few hosts were changed to compare them
 */
export function slowLimitMs(timelines: readonly HostTimeline[]): number {
  const durations = timelines.flatMap((each) => (each.status === 'changed' ? (changeMsOf(each) ?? []) : []));
  if (durations.length < FEWEST_TO_COMPARE) return Number.POSITIVE_INFINITY;
  const median = medianOf(durations);
  return Math.max(median * SLOW_FACTOR, median + SLOW_MARGIN_MS);
}

/** What is known of a run while it is in progress and afterwards. */
export interface RunRecord {
  /** The start of the run. */
  readonly startedAt: Date;
  readonly steps: RunSteps;
  /** The results so far, in the order of the ends. */
  readonly outcomes: readonly HostOutcome[];
  /** The hosts that were planned, with their last plans. */
  readonly plans: ReadonlyMap<string, HostPlan>;
  /** The gates that have ended. */
  readonly gates: readonly GateRecord[];
  /** Milliseconds since the epoch. */
  now(): number;
  /** Null: the run has not started. */
  progress(): FleetProgress | null;
  /** @param canary number of hosts that are changed first */
  timelines(canary: number): readonly HostTimeline[];
}

/** Records the events of a run, for its live displays and its report. */
interface RunRecorder extends RunRecord {
  /** The given ports, whose events are recorded. */
  record(ports: FleetPorts): FleetPorts;
}

export function runRecorder(clock: Pick<Clock, 'now'>): RunRecorder {
  const steps = runSteps(clock);
  const outcomes: HostOutcome[] = [];
  const plans = new Map<string, HostPlan>();
  const gates: GateRecord[] = [];
  let last: FleetProgress | null = null;
  return {
    startedAt: new Date(steps.startedAt),
    steps,
    outcomes,
    plans,
    gates,
    now: () => clock.now().getTime(),
    progress: () => last,
    record: (ports) => ({
      ...ports,
      reporterOf: (host) => steps.of(host, ports.reporterOf(host)),
      planned: (host, plan) => {
        plans.set(host, plan);
        ports.planned?.(host, plan);
      },
      gateEnded: async (gate) => {
        gates.push(gate);
        await ports.gateEnded?.(gate);
      },
      begins: async (host) => {
        await ports.begins?.(host);
        steps.begins(host);
      },
      ended: async (outcome) => {
        steps.ended(outcome);
        outcomes.push(outcome);
        await ports.ended?.(outcome);
      },
      progress: (progress) => {
        last = progress;
        steps.progress(progress);
        ports.progress?.(progress);
      },
    }),
    timelines: (canary) => timelinesOf(steps, { canary, now: clock.now().getTime() }),
  };
}
