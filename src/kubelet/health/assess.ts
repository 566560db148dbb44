import { printable } from '../../base/text/printable.ts';
import type { PodLoss, TrialBaseline } from './baseline.ts';
import { countExits, describeUnit, type Exits, isCrashing, NO_EXITS } from './exits.ts';
import type { ProbeResult } from './probe-pod.ts';
import { CPU_PERIOD_MS, limitsOf, SIGNALS, type Signal, type SignalLimits } from './signals.ts';

/** A kubelet as observed now; null members are unknown. */
export interface Observation {
  readonly unit: {
    /** `active`, `activating`, `inactive`, `failed`, ... */
    readonly activeState: string;
    readonly subState: string;
    /** Automatic restarts counted by systemd. */
    readonly restarts: number;
  } | null;
  /** Payload on the command line of the process; `local` for another configuration; null: no process, or unknown. */
  readonly runs: string | null;
  /** Process ID of the kubelet; absent or null: no process. */
  readonly pid?: number | null;
  /** Age of the process; null: unknown. */
  readonly ageMs?: number | null;
  /** Average CPUs that the process used since its start. Absent or null: unknown. */
  readonly cpuShare?: number | null;
  /** Null: the kubelet serves no healthz. */
  readonly healthz: { readonly ok: true } | { readonly ok: false; readonly why: string } | null;
  /**
   * The process was started with the payload on its command line, after that was written, and the files are
   * unchanged.
   */
  readonly isProven: boolean;
  /** Fields of configz that differ from the desired configuration; null: configz could not be read. */
  readonly differing: readonly string[] | null;
  /** Condition Ready of the Node, with the reason if it is not True. */
  readonly ready: { readonly is: boolean; readonly why: string } | null;
  /** Pressure conditions of the Node (DiskPressure, ...). */
  readonly pressures: readonly string[];
  /** Cause of the kubelet's exit from its journal; null: not checked. */
  readonly cause: string | null;
  /** Reason why the API server no longer reaches the kubelet, as a clause. Absent or null: it does, or not required. */
  readonly unreached?: string | null;
  /**
   * Reason why the kubelet's API does not accept the credential of the node: the kubelet rejects it, or does
   * not answer. Null: it does, or not known.
   */
  readonly credentialRefusal?: { readonly why: string; readonly isRejection: boolean; readonly needsApproval?: boolean } | null;
  /** Pods that ran before the switch and are lost. Absent or null: not known. */
  readonly losses?: readonly PodLoss[] | null;
  /** Why a changed graceful shutdown is not in force, as a clause. Absent or null: in force, unchanged, or not known. */
  readonly shutdownIssue?: string | null;
  /** Absent or null: no probe pod is used. */
  readonly probe?: ProbeResult | null;
  /** False: the next start of the kubelet would not use the payload of the process. Absent: not known. */
  readonly isPointed?: boolean;
  /** Expected facts that could not be observed, with reasons, as clauses. */
  readonly unknown?: readonly string[];
}

/**
 * Observations carried from one check of a kubelet to the next. Durations are summed up from check to check,
 * so that a jump of the clock has no effect.
 */
export interface HealthHistory {
  readonly exits: Exits;
  readonly lastAt: number | null;
  /** Uninterrupted healthy time. */
  readonly healthyMs: number;
  readonly wasHealthy: boolean;
  readonly signals: SignalTimes;
  /** Duration of a state without a signal in which not everything could be verified. */
  readonly unprovenMs: number;
  /** Facts that have remained unverified for long; null: all verified, or too early to tell. */
  readonly unproven: string | null;
}

export const EMPTY_HEALTH_HISTORY: HealthHistory = {
  exits: NO_EXITS,
  lastAt: null,
  healthyMs: 0,
  wasHealthy: false,
  signals: {},
  unprovenMs: 0,
  unproven: null,
};

/** A kubelet needs this time after its start until all facts can be observed. */
const UNPROVEN_MS = 30_000;

export interface Timing {
  /** Healthy time after which a payload becomes the last known good. */
  readonly trialMs: number;
  /** Maximum duration of each signal in a trial. */
  readonly maxSignalMs: SignalLimits;
  /** Interval between checks, in a trial and after it. */
  readonly pollMs: number;
  readonly goodPollMs: number;
  /** Number of failures within a period that form a crash loop of a good payload. */
  readonly crashLoop: { readonly times: number; readonly withinMs: number };
  /** Delay before a failed switch is retried; doubled each time up to `switchRetryMaxMs`. */
  readonly switchRetryMs: number;
  readonly switchRetryMaxMs: number;
}

/** The kubelet's own trial was ten minutes. */
export const DEFAULT_TIMING: Timing = {
  trialMs: 600_000,
  maxSignalMs: limitsOf('agent'),
  pollMs: 1_000,
  goodPollMs: 30_000,
  crashLoop: { times: 3, withinMs: 600_000 },
  switchRetryMs: 1_000,
  switchRetryMaxMs: 60_000,
};

/** A signal in one observation. */
export interface FoundSignal {
  readonly signal: Signal;
  /** What was observed, as a clause. */
  readonly seen: string;
  /** The lost pod, `NAMESPACE/NAME`. */
  readonly pod?: string;
}

/** Uninterrupted duration in milliseconds of each signal, by `keyOf`. */
export type SignalTimes = Readonly<Record<string, number>>;

/** A signal that lasted too long, with its cause as a clause. */
export interface Failure {
  readonly signal: Signal;
  readonly cause: string;
  /** The first lost pod. */
  readonly pod?: string;
}

/** The signal, and its pod: each lost pod has a time of its own. */
function keyOf({ signal, pod }: FoundSignal): string {
  return pod === undefined ? signal : `${signal} ${pod}`;
}

/** Whether a signal is in a history. */
export function hasSignal(times: SignalTimes, signal: Signal): boolean {
  return Object.keys(times).some((key) => key.split(' ')[0] === signal);
}

/**
 * Adds the signals of an observation to their history.
 * @param found the worst first
 * @param stepMs time since the last observation
 * @returns the failure of the worst signal that has lasted for its limit; null: none
 */
export function assessSignals(
  times: SignalTimes,
  found: readonly FoundSignal[],
  stepMs: number,
  limits: SignalLimits,
): { readonly times: SignalTimes; readonly failure: Failure | null } {
  const next = new Map(
    found.map((one) => {
      const before = times[keyOf(one)];
      return [keyOf(one), before === undefined ? 0 : before + stepMs];
    }),
  );
  const lasting = found.filter((one) => (next.get(keyOf(one)) ?? 0) >= limits[one.signal]);
  return { times: Object.fromEntries(next), failure: worstOf(lasting) };
}

const MOST_PODS = 5;

/** The first signal with its cause, which names all pods that it is about; null: none. */
export function worstOf(found: readonly FoundSignal[]): Failure | null {
  const [first] = found;
  if (first === undefined) return null;
  const { signal, seen, pod } = first;
  if (pod === undefined) return { signal, cause: SIGNALS[signal].message(seen) };
  const pods = found.filter((one) => one.signal === signal);
  const named = pods.slice(0, MOST_PODS).map((one) => `${one.pod} (${printable(one.seen)})`);
  const rest = pods.length - named.length;
  const counted = `${pods.length} ${signal === 'static-pod-gone' ? 'static ' : ''}${pods.length === 1 ? 'pod' : 'pods'}`;
  const cause = `${counted} that ran before: ${named.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
  return { signal, cause: SIGNALS[signal].message(cause), pod };
}

/** The first exit ends a trial, also before systemd has counted it. */
const ANY_EXIT = { times: 1, waiting: 0 };

/**
 * Assesses a kubelet in a trial. A kubelet is healthy if its unit is active and has not failed, its process
 * was started with the payload, healthz succeeds, configz (if readable) matches, the Node is Ready, no pod was
 * lost, and a probe pod (if used) started. Unknown facts, for example while the API server is unreachable, are neither healthy nor a signal.
 * @param trial a payload, and the node before it; null: not known, so that every problem counts
 */
export function assessTrial(
  watch: HealthHistory,
  trial: { readonly hash: string; readonly baseline: TrialBaseline | null },
  seen: Observation,
  now: number,
  timing: Timing,
): ReturnType<typeof assessGood> {
  const stepMs = stepOf(watch, now, timing.pollMs);
  const isStarting = (seen.ageMs ?? timing.maxSignalMs.start) < timing.maxSignalMs.start;
  const { baseline } = trial;
  const exits = countExits(watch.exits, seen.unit, now);
  const isCrashed = isCrashing(exits, seen.unit, ANY_EXIT, now);
  // The worst first.
  const found = [
    ...processSignals(watch, trial, seen, { isStarting, isCrashed }),
    ...nodeSignals(baseline, seen),
    ...podSignals(baseline, seen),
  ];
  const { times, failure } = assessSignals(watch.signals, found, stepMs, timing.maxSignalMs);
  const isHealthy = found.length === 0 && isUp(seen);
  const isProven = isHealthy && seen.isProven && seen.ready !== null && seen.probe?.state !== 'starting';
  const unprovenMs = isHealthy && !isProven ? watch.unprovenMs + stepMs : 0;
  return {
    history: {
      ...watch,
      exits,
      lastAt: now,
      healthyMs: found.length > 0 ? 0 : watch.healthyMs + (isProven && watch.wasHealthy ? stepMs : 0),
      wasHealthy: watch.wasHealthy || (isHealthy && seen.runs === trial.hash),
      signals: times,
      unprovenMs,
      unproven:
        worstOf(found.filter(({ signal }) => signal === 'not-signed'))?.cause ??
        (unprovenMs < UNPROVEN_MS ? null : (seen.unknown ?? []).join('; ') || 'the state of the kubelet cannot be observed completely'),
    },
    failure,
  };
}

/**
 * Assesses a kubelet with a good payload: only a crash loop causes a rollback, because a node can become
 * NotReady for many other reasons.
 */
export function assessGood(
  watch: HealthHistory,
  seen: Observation,
  now: number,
  timing: Timing,
): { readonly history: HealthHistory; readonly failure: Failure | null } {
  const { crashLoop } = timing;
  const { unit } = seen;
  const exits = countExits(watch.exits, unit, now);
  const minutes = Math.round(crashLoop.withinMs / 60_000);
  const count = unit?.activeState === 'failed' ? 'the unit has failed' : `${crashLoop.times} failures within ${minutes} minutes`;
  return {
    history: { ...watch, exits, lastAt: now },
    failure: isCrashing(exits, unit, crashLoop, now)
      ? { signal: 'crash', cause: ['the kubelet crash-loops', seen.cause ?? count].join(': ') }
      : null,
  };
}

/** Time since the last check, at most five intervals, because the time in between was not observed. */
function stepOf({ lastAt }: HealthHistory, now: number, pollMs: number): number {
  return lastAt === null ? 0 : Math.min(Math.max(0, now - lastAt), 5 * pollMs);
}

function isUp({ unit, healthz }: Observation): boolean {
  return unit?.activeState === 'active' && (healthz === null || healthz.ok);
}

/** Stopped by an administrator or a package upgrade: a kubelet that fails is restarted, or its unit is failed. */
function isStopped({ unit }: Observation): boolean {
  return unit?.activeState === 'inactive' || unit?.activeState === 'deactivating';
}

/**
 * The signals from the host: its unit, its process and the API of the kubelet.
 * @param state `isStarting`: the process started recently and need not be healthy yet, even if its predecessor was
 */
function processSignals(
  { wasHealthy }: HealthHistory,
  { hash, baseline }: Parameters<typeof assessTrial>[1],
  seen: Observation,
  { isStarting, isCrashed }: { readonly isStarting: boolean; readonly isCrashed: boolean },
): readonly FoundSignal[] {
  const { unit, healthz, runs, differing } = seen;
  const signals: FoundSignal[] = [];
  if (isCrashed) signals.push({ signal: 'crash', seen: seen.cause ?? describeUnit(unit) });
  if (differing !== null && runs === hash) signals.push(...configzSignals(differing));
  if (runs !== null && runs !== hash) signals.push({ signal: 'wrong-payload', seen: 'another configuration than the assigned one' });
  if (isStopped(seen)) signals.push({ signal: 'start', seen: `the kubelet was stopped: ${describeUnit(unit)}` });
  else if (healthz !== null && !healthz.ok) {
    const failed = SIGNALS.healthz.message(healthz.why);
    if (wasHealthy && !isStarting) signals.push({ signal: 'healthz', seen: healthz.why });
    else signals.push({ signal: 'start', seen: seen.cause === null ? failed : `${seen.cause} (${failed})` });
  } else if (!isUp(seen) && !isCrashed) signals.push({ signal: 'start', seen: `the kubelet does not start: ${describeUnit(unit)}` });
  if (seen.credentialRefusal != null && isUp(seen) && baseline?.isCredentialAccepted !== false) {
    const { why, isRejection, needsApproval = false } = seen.credentialRefusal;
    // The API server authenticates to kubelets with a certificate of the same CA.
    signals.push({ signal: isRejection ? 'locked-out' : needsApproval ? 'not-signed' : 'not-serving', seen: why });
  }
  if (seen.shutdownIssue != null) signals.push({ signal: 'shutdown', seen: seen.shutdownIssue });
  return [...signals, ...cpuSignals(seen, baseline)];
}

const MOST_FIELDS = 5;

/** @param differing fields of configz that do not have the desired value */
export function configzSignals(differing: readonly string[]): readonly FoundSignal[] {
  return differing.length === 0 ? [] : [{ signal: 'configz', seen: differing.slice(0, MOST_FIELDS).join(', ') }];
}

/** The signals from the conditions of the Node. @param before null: not known, so that every problem counts */
export function nodeSignals(
  before: Pick<TrialBaseline, 'isReady' | 'pressures'> | null,
  { ready, pressures }: Pick<Observation, 'ready' | 'pressures'>,
): readonly FoundSignal[] {
  const added = pressures.filter((name) => before?.pressures.includes(name) !== true);
  return [
    ...(ready !== null && !ready.is && before?.isReady !== false ? [{ signal: 'not-ready', seen: ready.why } as const] : []),
    ...(added.length > 0 ? [{ signal: 'pressure', seen: added.join(', ') } as const] : []),
  ];
}

/** Average CPUs, and the factor to the average before the switch. A kubelet with many pods uses 0.1 to 0.3. */
const CPU_LIMIT = { cpus: 0.4, times: 3 };

/** A value such as `fileCheckFrequency: 1µs` keeps a kubelet busy, but healthy. */
function cpuSignals({ cpuShare, ageMs }: Observation, baseline: TrialBaseline | null): readonly FoundSignal[] {
  const before = baseline?.cpuShare ?? null;
  if (cpuShare == null || before === null || (ageMs ?? 0) < CPU_PERIOD_MS) return [];
  if (cpuShare <= CPU_LIMIT.cpus || cpuShare <= CPU_LIMIT.times * before) return [];
  const percent = (share: number): string => `${Math.round(share * 100)}%`;
  const minutes = Math.floor((ageMs ?? 0) / 60_000);
  return [{ signal: 'cpu', seen: `${percent(cpuShare)} of a CPU, as average of ${minutes} minutes, and used ${percent(before)} before` }];
}

/** The signals from the pods of the node. A node that was under pressure before evicts pods with any configuration. */
export function podSignals(
  before: Parameters<typeof nodeSignals>[0],
  { losses, probe }: Pick<Observation, 'losses' | 'probe'>,
): readonly FoundSignal[] {
  const hadPressure = before !== null && before.pressures.length > 0;
  const lost = (losses ?? []).filter(({ kind }) => kind !== 'pod-evicted' || !hadPressure);
  const found = lost.map(({ kind, pod, seen }): FoundSignal => ({ signal: kind, seen, pod }));
  return probe?.state === 'failed' ? [...found, { signal: 'probe-pod', seen: probe.why }] : found;
}
