import type { TrialBaseline } from './baseline.ts';
import type { PodLoss } from './losses.ts';
import type { ProbeResult } from './probe-pod.ts';

/** A sign that a kubelet fails with its configuration. */
export type FailureSign =
  | 'crash'
  | 'wrong-payload'
  | 'start'
  | 'healthz'
  | 'configz'
  | 'locked-out'
  | 'not-serving'
  | 'not-signed'
  | 'not-ready'
  | 'pressure'
  | 'cpu'
  | 'shutdown'
  | PodLoss['kind']
  | 'probe-pod';

/** A kubelet as observed now; null members are unknown. */
export interface Observation {
  readonly unit: {
    /** `active`, `activating`, `inactive`, `failed`, ... */
    readonly activeState: string;
    readonly subState: string;
    /** Automatic restarts counted by systemd. */
    readonly restarts: number;
  } | null;
  /**
   * Payload on the command line of the process; `local` for another configuration; null: no process, or
   * unknown.
   */
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
  /** systemd's counter at the last check. */
  readonly restarts: number | null;
  readonly lastAt: number | null;
  /** Uninterrupted healthy time. */
  readonly healthyMs: number;
  readonly wasHealthy: boolean;
  /** Uninterrupted duration of each sign. */
  readonly signs: Readonly<Partial<Record<FailureSign, number>>>;
  /** Times of kubelet failures, newest last. */
  readonly crashes: readonly number[];
  /** Duration of a state without a failure sign in which not everything could be verified. */
  readonly unprovenMs: number;
  /** Facts that have remained unverified for long; null: all verified, or too early to tell. */
  readonly unproven: string | null;
}

export const EMPTY_HEALTH_HISTORY: HealthHistory = {
  restarts: null,
  lastAt: null,
  healthyMs: 0,
  wasHealthy: false,
  signs: {},
  crashes: [],
  unprovenMs: 0,
  unproven: null,
};

/** A kubelet needs this time after its start until all facts can be observed. */
const UNPROVEN_MS = 30_000;

export interface Timing {
  /** Healthy time after which a payload becomes the last known good. */
  readonly trialMs: number;
  /** Maximum duration of each sign in a trial. */
  readonly maxSignMs: Readonly<Record<FailureSign, number>>;
  /** Interval between checks, in a trial and after it. */
  readonly pollMs: number;
  readonly goodPollMs: number;
  /** Number of failures within a period that form a crash loop of a good payload. */
  readonly crashLoop: { readonly times: number; readonly withinMs: number };
  /** Delay before a failed switch is retried; doubled each time up to `switchRetryMaxMs`. */
  readonly switchRetryMs: number;
  readonly switchRetryMaxMs: number;
}

/** The kubelet's own trial was ten minutes. A sign that waits for no person may not last longer than a minute. */
export const DEFAULT_TIMING: Timing = {
  trialMs: 600_000,
  maxSignMs: {
    crash: 0,
    'wrong-payload': 10_000,
    start: 45_000,
    healthz: 5_000,
    configz: 0,
    // Two answers of the kubelet: a client certificate is checked without the API server.
    'locked-out': 5_000,
    'not-serving': 45_000,
    // A person approves the CSR for the serving certificate. The trial begins after that.
    'not-signed': 300_000,
    'not-ready': 30_000,
    pressure: 20_000,
    // The average since the start of the process is compared.
    cpu: 0,
    // The kubelet takes its lock when it starts its managers, seconds after healthz returns 200.
    shutdown: 30_000,
    'pod-rejected': 0,
    'pod-evicted': 0,
    'static-pod-gone': 10_000,
    'pod-not-started': 10_000,
    // A kubelet tries a failed sandbox again after about ten seconds.
    'probe-pod': 15_000,
  },
  pollMs: 1_000,
  goodPollMs: 30_000,
  crashLoop: { times: 3, withinMs: 600_000 },
  switchRetryMs: 1_000,
  switchRetryMaxMs: 60_000,
};

/** A sign that lasted too long, with its observation as a clause. */
export interface Failure {
  readonly sign: FailureSign;
  readonly cause: string;
}

/** A payload in a trial, and the node before it. */
export interface Trial {
  readonly hash: string;
  /** Null: not known, so that every problem counts. */
  readonly baseline: TrialBaseline | null;
}

export interface Assessment {
  readonly history: HealthHistory;
  readonly failure: Failure | null;
}

/**
 * Assesses a kubelet in a trial. A kubelet is healthy if its unit is active and has not failed, its process
 * was started with the payload, healthz succeeds, configz (if readable) matches, the Node is Ready, no pod was
 * lost, and a probe pod (if used) started. Unknown facts, for example while the API server is unreachable, are neither healthy nor a sign of failure.
 */
export function assessTrial(watch: HealthHistory, trial: Trial, seen: Observation, now: number, timing: Timing): Assessment {
  const stepMs = stepOf(watch, now, timing.pollMs);
  const isStarting = (seen.ageMs ?? timing.maxSignMs.start) < timing.maxSignMs.start;
  const found = signsOf(watch, trial, seen, isStarting);
  const signs: Partial<Record<FailureSign, number>> = {};
  for (const { sign } of found) signs[sign] = watch.signs[sign] === undefined ? 0 : watch.signs[sign] + stepMs;
  const failure = found.find(({ sign }) => (signs[sign] ?? 0) >= timing.maxSignMs[sign]) ?? null;
  const isHealthy = found.length === 0 && isUp(seen);
  const isProven = isHealthy && seen.isProven && seen.ready !== null && seen.probe?.state !== 'starting';
  const unprovenMs = isHealthy && !isProven ? watch.unprovenMs + stepMs : 0;
  return {
    history: {
      ...watch,
      restarts: seen.unit?.restarts ?? watch.restarts,
      lastAt: now,
      healthyMs: found.length > 0 ? 0 : watch.healthyMs + (isProven && watch.wasHealthy ? stepMs : 0),
      wasHealthy: watch.wasHealthy || (isHealthy && seen.runs === trial.hash),
      signs,
      unprovenMs,
      unproven:
        found.find(({ sign }) => sign === 'not-signed')?.cause ??
        (unprovenMs < UNPROVEN_MS ? null : (seen.unknown ?? []).join('; ') || 'the state of the kubelet cannot be observed completely'),
    },
    failure,
  };
}

/**
 * Assesses a kubelet with a good payload: only a crash loop causes a rollback, because a node can become
 * NotReady for many other reasons.
 */
export function assessGood(watch: HealthHistory, seen: Observation, now: number, timing: Timing): Assessment {
  const { times, withinMs } = timing.crashLoop;
  const { unit } = seen;
  if (unit === null) return { history: { ...watch, lastAt: now }, failure: null };
  const ended = watch.restarts === null ? 0 : Math.max(0, unit.restarts - watch.restarts);
  const recent = watch.crashes.filter((at) => at <= now && now - at < withinMs);
  const crashes = [...recent, ...Array.from({ length: Math.min(ended, times) }, () => now)].slice(-times);
  const isLoop = crashes.length >= times || unit.activeState === 'failed';
  const count = unit.activeState === 'failed' ? 'the unit has failed' : `${times} failures within ${Math.round(withinMs / 60_000)} minutes`;
  return {
    history: { ...watch, restarts: unit.restarts, lastAt: now, crashes },
    failure: isLoop ? { sign: 'crash', cause: ['the kubelet crash-loops', seen.cause ?? count].join(': ') } : null,
  };
}

/** Time since the last check, at most five intervals, because the time in between was not observed. */
function stepOf({ lastAt }: HealthHistory, now: number, pollMs: number): number {
  return lastAt === null ? 0 : Math.min(Math.max(0, now - lastAt), 5 * pollMs);
}

function isUp({ unit, healthz }: Observation): boolean {
  return unit?.activeState === 'active' && (healthz === null || healthz.ok);
}

/**
 * Stopped by an administrator or a package upgrade: a kubelet that fails is restarted, or its unit is failed.
 */
function isStopped({ unit }: Observation): boolean {
  return unit?.activeState === 'inactive' || unit?.activeState === 'deactivating';
}

/**
 * Returns the signs of failure, the worst first.
 * @param isStarting the process started recently and need not be healthy yet, even if its predecessor was
 */
function signsOf(watch: HealthHistory, { hash, baseline }: Trial, seen: Observation, isStarting: boolean): readonly Failure[] {
  const { unit, healthz, runs, differing, ready, pressures } = seen;
  const signs: Failure[] = [];
  if (hasCrashed(watch, unit)) signs.push({ sign: 'crash', cause: `the kubelet exited: ${seen.cause ?? describeUnit(unit)}` });
  if (differing !== null && differing.length > 0 && runs === hash)
    signs.push({ sign: 'configz', cause: `configz differs from the desired configuration in ${differing.slice(0, 5).join(', ')}` });
  if (runs !== null && runs !== hash)
    signs.push({ sign: 'wrong-payload', cause: 'the kubelet runs with another configuration than the assigned one' });
  if (isStopped(seen)) signs.push({ sign: 'start', cause: `the kubelet was stopped: ${describeUnit(unit)}` });
  else if (healthz !== null && !healthz.ok) {
    const cause = `healthz: ${healthz.why}`;
    signs.push(
      watch.wasHealthy && !isStarting
        ? { sign: 'healthz', cause }
        : { sign: 'start', cause: seen.cause === null ? cause : `${seen.cause} (${cause})` },
    );
  } else if (!isUp(seen) && !hasCrashed(watch, unit))
    signs.push({ sign: 'start', cause: `the kubelet does not start: ${describeUnit(unit)}` });
  if (seen.credentialRefusal != null && isUp(seen) && baseline?.isCredentialAccepted !== false) {
    const { why, isRejection, needsApproval = false } = seen.credentialRefusal;
    // The API server authenticates to kubelets with a certificate of the same CA.
    if (isRejection) signs.push({ sign: 'locked-out', cause: `the kubelet API no longer accepts the credential of this node: ${why}` });
    else if (needsApproval) signs.push({ sign: 'not-signed', cause: `the kubelet has no serving certificate: ${why}` });
    else signs.push({ sign: 'not-serving', cause: `the kubelet API no longer answers: ${why}` });
  }
  if (ready !== null && !ready.is && baseline?.isReady !== false)
    signs.push({ sign: 'not-ready', cause: `the Node is not Ready: ${ready.why}` });
  const added = pressures.filter((name) => baseline?.pressures.includes(name) !== true);
  if (added.length > 0) signs.push({ sign: 'pressure', cause: `the Node has ${added.join(', ')}` });
  if (seen.shutdownIssue != null) signs.push({ sign: 'shutdown', cause: seen.shutdownIssue });
  signs.push(...cpuSigns(seen, baseline), ...podSigns(seen));
  return signs;
}

/** The CPU time of a start, and of pods that start with it, is small against the CPU time of this period. */
const CPU_PERIOD_MS = 180_000;
/** Average CPUs, and the factor to the average before the switch. A kubelet with many pods uses 0.1 to 0.3. */
const CPU_LIMIT = { cpus: 0.4, times: 3 };

/** A value such as `fileCheckFrequency: 1µs` keeps a kubelet busy, but healthy. */
function cpuSigns({ cpuShare, ageMs }: Observation, baseline: TrialBaseline | null): readonly Failure[] {
  const before = baseline?.cpuShare ?? null;
  if (cpuShare == null || before === null || (ageMs ?? 0) < CPU_PERIOD_MS) return [];
  if (cpuShare <= CPU_LIMIT.cpus || cpuShare <= CPU_LIMIT.times * before) return [];
  const percent = (share: number): string => `${Math.round(share * 100)}%`;
  const minutes = Math.floor((ageMs ?? 0) / 60_000);
  return [
    {
      sign: 'cpu',
      cause: `the kubelet uses ${percent(cpuShare)} of a CPU, as average of ${minutes} minutes, and used ${percent(before)} before`,
    },
  ];
}

const MOST_PODS = 5;

/** The signs from the pods of the node: one for each kind of loss, with the pods' names. */
function podSigns({ losses, probe }: Observation): readonly Failure[] {
  const kinds = [...new Set((losses ?? []).map(({ kind }) => kind))];
  const lost = kinds.map((sign): Failure => {
    const found = (losses ?? []).filter(({ kind }) => kind === sign);
    const named = found.slice(0, MOST_PODS).map(({ pod, seen }) => `${pod} (${seen})`);
    const rest = found.length - named.length;
    return { sign, cause: `${describeLoss(sign, found.length)}: ${named.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}` };
  });
  return probe?.state === 'failed' ? [...lost, { sign: 'probe-pod', cause: `a probe pod cannot be started: ${probe.why}` }] : lost;
}

function describeLoss(kind: PodLoss['kind'], count: number): string {
  const pods = count === 1 ? '1 pod' : `${count} pods`;
  switch (kind) {
    case 'pod-rejected':
      return `the kubelet rejected ${pods} that ran before`;
    case 'pod-evicted':
      return `the kubelet evicted ${pods} that ran before`;
    case 'static-pod-gone':
      return `the kubelet stopped ${count === 1 ? '1 static pod' : `${count} static pods`} that ran before`;
    case 'pod-not-started':
      return `the kubelet cannot restart containers of ${pods} that ran before`;
  }
}

function hasCrashed({ restarts }: HealthHistory, unit: Observation['unit']): boolean {
  if (unit === null) return false;
  if (restarts !== null && unit.restarts > restarts) return true;
  return unit.activeState === 'failed' || unit.subState === 'auto-restart';
}

function describeUnit(unit: Observation['unit']): string {
  return unit === null ? 'unit state unknown' : `unit ${unit.activeState} (${unit.subState}), ${unit.restarts} restarts`;
}
