/** What shows that a kubelet does not do with its configuration. */
export type Sign = 'crash' | 'wrong-payload' | 'start' | 'healthz' | 'configz' | 'locked-out' | 'not-ready' | 'pressure';

/** A kubelet as it is now. What could not be found out is null. */
export interface Observation {
  readonly unit: {
    /** `active`, `activating`, `inactive`, `failed`, ... */
    readonly activeState: string;
    readonly subState: string;
    /** Automatic restarts, as systemd counts them. */
    readonly restarts: number;
  } | null;
  /** The payload on the command line of the process; `local` for another configuration; null: no process, or it was not told. */
  readonly runs: string | null;
  /** How long ago the process was started; null: not known. */
  readonly ageMs?: number | null;
  /** Null: the kubelet serves none. */
  readonly healthz: { readonly ok: true } | { readonly ok: false; readonly why: string } | null;
  /** The process was started with the payload that its command line names, after that was written, and the payload is unchanged on disk. */
  readonly isProven: boolean;
  /** Fields of configz that are not what was wanted; null: it was not told. */
  readonly differing: readonly string[] | null;
  /** The Node's condition Ready, and why where it is not True. */
  readonly ready: { readonly is: boolean; readonly why: string } | null;
  /** The conditions of the Node that are troubles (DiskPressure, ...). */
  readonly pressures: readonly string[];
  /** Why the kubelet ended, by its journal; null: not looked for. */
  readonly cause: string | null;
  /** This kubelet refuses the credential of the node, which the one before the switch accepted: a clause; null: that is not so. */
  readonly lockedOut?: string | null;
  /** What could not be found out though it should be, and why: clauses. */
  readonly unknown?: readonly string[];
}

/** What is remembered from one look at a kubelet to the next. Times are added up from look to look, so that a clock that jumps does not count. */
export interface Watch {
  /** systemd's count at the last look. */
  readonly restarts: number | null;
  readonly lastAt: number | null;
  /** How long it was healthy without a break. */
  readonly healthyMs: number;
  readonly wasHealthy: boolean;
  /** How long each sign has been there without a break. */
  readonly signs: Readonly<Partial<Record<Sign, number>>>;
  /** The kubelet as it was before the switch: its troubles are not the new configuration's. */
  readonly before: { readonly ready: boolean; readonly pressures: readonly string[] } | null;
  /** When the kubelet ended by itself, newest last. */
  readonly crashes: readonly number[];
  /** For how long nothing was wrong, and not all could be seen that has to be. */
  readonly unprovenMs: number;
  /** What could not be seen, where that lasts; null: all is seen, or it is too early to say. */
  readonly unproven: string | null;
}

export const NEW_WATCH: Watch = {
  restarts: null,
  lastAt: null,
  healthyMs: 0,
  wasHealthy: false,
  signs: {},
  before: null,
  crashes: [],
  unprovenMs: 0,
  unproven: null,
};

/** A kubelet needs a while after its start until all can be seen. */
const UNPROVEN_MS = 30_000;

export interface Timing {
  /** How long a payload has to be healthy until it is the last known good. */
  readonly trialMs: number;
  /** How long each sign may last in a trial. */
  readonly patienceMs: Readonly<Record<Sign, number>>;
  /** From one look to the next, in a trial and after it. */
  readonly pollMs: number;
  readonly superviseMs: number;
  /** So many ends within that time make a crash loop of a payload that was good. */
  readonly crashLoop: { readonly times: number; readonly withinMs: number };
  /** Until a switch that failed is tried again; doubled each time up to `switchAgainMaxMs`. */
  readonly switchAgainMs: number;
  readonly switchAgainMaxMs: number;
}

/** Upstream's trial is ten minutes. No sign may last longer than a minute. */
export const DEFAULT_TIMING: Timing = {
  trialMs: 600_000,
  patienceMs: {
    crash: 0,
    'wrong-payload': 10_000,
    start: 45_000,
    healthz: 5_000,
    configz: 0,
    'locked-out': 30_000,
    'not-ready': 30_000,
    pressure: 20_000,
  },
  pollMs: 1_000,
  superviseMs: 30_000,
  crashLoop: { times: 3, withinMs: 600_000 },
  switchAgainMs: 1_000,
  switchAgainMaxMs: 60_000,
};

/** A sign that lasted for too long, and a clause that says what was seen. */
export interface Failure {
  readonly sign: Sign;
  readonly cause: string;
}

export interface Assessment {
  readonly watch: Watch;
  readonly failure: Failure | null;
}

/**
 * Judges a kubelet in a trial by what is seen of it. Healthy is: the unit is up and did not end by itself, the process was started with that payload, healthz
 * answers, configz is what was wanted where the kubelet tells it, and the Node is Ready. What is not known (the API server does not answer) is neither healthy nor a sign.
 */
export function assessTrial(watch: Watch, hash: string, seen: Observation, now: number, timing: Timing): Assessment {
  const stepMs = stepOf(watch, now, timing.pollMs);
  const isStarting = (seen.ageMs ?? timing.patienceMs.start) < timing.patienceMs.start;
  const found = signsOf(watch, hash, seen, isStarting);
  const signs: Partial<Record<Sign, number>> = {};
  for (const { sign } of found) signs[sign] = watch.signs[sign] === undefined ? 0 : watch.signs[sign] + stepMs;
  const failure = found.find(({ sign }) => (signs[sign] ?? 0) >= timing.patienceMs[sign]) ?? null;
  const isWell = found.length === 0 && isUp(seen);
  const isProven = isWell && seen.isProven && seen.ready !== null;
  const unprovenMs = isWell && !isProven ? watch.unprovenMs + stepMs : 0;
  return {
    watch: {
      ...watch,
      restarts: seen.unit?.restarts ?? watch.restarts,
      lastAt: now,
      healthyMs: found.length > 0 ? 0 : watch.healthyMs + (isProven && watch.wasHealthy ? stepMs : 0),
      wasHealthy: watch.wasHealthy || (isWell && seen.runs === hash),
      signs,
      unprovenMs,
      unproven: unprovenMs < UNPROVEN_MS ? null : (seen.unknown ?? []).join('; ') || 'not all can be seen',
    },
    failure,
  };
}

/** Judges a kubelet whose payload was good before: only a crash loop takes it away again, because much else can make a node NotReady. */
export function assessGood(watch: Watch, seen: Observation, now: number, timing: Timing): Assessment {
  const { times, withinMs } = timing.crashLoop;
  const { unit } = seen;
  if (unit === null) return { watch: { ...watch, lastAt: now }, failure: null };
  const ended = watch.restarts === null ? 0 : Math.max(0, unit.restarts - watch.restarts);
  const recent = watch.crashes.filter((at) => at <= now && now - at < withinMs);
  const crashes = [...recent, ...Array.from({ length: Math.min(ended, times) }, () => now)].slice(-times);
  const isLoop = crashes.length >= times || unit.activeState === 'failed';
  const count =
    unit.activeState === 'failed' ? 'the unit has failed' : `it ended ${times} times within ${Math.round(withinMs / 60_000)} minutes`;
  return {
    watch: { ...watch, restarts: unit.restarts, lastAt: now, crashes },
    failure: isLoop ? { sign: 'crash', cause: ['the kubelet crash-loops', seen.cause ?? count].join(': ') } : null,
  };
}

/** Time that passed since the last look, for which nobody knows what happened in between: at most five looks' worth. */
function stepOf({ lastAt }: Watch, now: number, pollMs: number): number {
  return lastAt === null ? 0 : Math.min(Math.max(0, now - lastAt), 5 * pollMs);
}

function isUp({ unit, healthz }: Observation): boolean {
  return unit?.activeState === 'active' && (healthz === null || healthz.ok);
}

/** By somebody: a kubelet that ends by itself is started again, or its unit has failed. An upgrade of its package does it. */
function isStopped({ unit }: Observation): boolean {
  return unit?.activeState === 'inactive' || unit?.activeState === 'deactivating';
}

/**
 * The worst first.
 * @param isStarting it was started so lately that it need not be up yet, also where it was up before
 */
function signsOf(watch: Watch, hash: string, seen: Observation, isStarting: boolean): readonly Failure[] {
  const { unit, healthz, runs, differing, ready, pressures } = seen;
  const signs: Failure[] = [];
  if (hasCrashed(watch, unit)) signs.push({ sign: 'crash', cause: `the kubelet exited: ${seen.cause ?? describeUnit(unit)}` });
  if (differing !== null && differing.length > 0 && runs === hash)
    signs.push({ sign: 'configz', cause: `configz differs from what was wanted in ${differing.slice(0, 5).join(', ')}` });
  if (runs !== null && runs !== hash) signs.push({ sign: 'wrong-payload', cause: 'the kubelet runs another configuration' });
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
  if (typeof seen.lockedOut === 'string' && isUp(seen)) signs.push({ sign: 'locked-out', cause: seen.lockedOut });
  if (ready !== null && !ready.is && watch.before?.ready !== false)
    signs.push({ sign: 'not-ready', cause: `the Node is not Ready: ${ready.why}` });
  const added = pressures.filter((name) => watch.before?.pressures.includes(name) !== true);
  if (added.length > 0) signs.push({ sign: 'pressure', cause: `the Node has ${added.join(', ')}` });
  return signs;
}

function hasCrashed({ restarts }: Watch, unit: Observation['unit']): boolean {
  if (unit === null) return false;
  if (restarts !== null && unit.restarts > restarts) return true;
  return unit.activeState === 'failed' || unit.subState === 'auto-restart';
}

function describeUnit(unit: Observation['unit']): string {
  return unit === null
    ? 'its unit is not told'
    : `its unit is ${unit.activeState} (${unit.subState}), started again ${unit.restarts} times`;
}
