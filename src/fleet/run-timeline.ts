import type { Clock } from '../base/clock.ts';
import type { ReportEvent } from '../base/reporter.ts';
import type { FleetPorts, FleetProgress, HostStatus } from './fleet.ts';

/** What a host of a run does, in the usual order. */
export type HostPhase =
  /** Connecting, reading facts and planning. */
  | 'planning'
  /** Planned; other hosts are changed first. */
  | 'queued'
  /** Writing files and changing objects; everything between `queued` and the end that has no phase of its own. */
  | 'changing'
  /** The kubelet is restarted by systemd. */
  | 'restarting'
  /** The new kubelet is checked: healthz, its Node Ready, its configz, its pods. */
  | 'verifying'
  /** A verified change is confirmed over a new connection. */
  | 'confirming'
  | 'rolling-back';

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

/** An observation about a host, in milliseconds since the start of the run. */
export type TimedEvent = { readonly host: string; readonly atMs: number } & (
  | { readonly kind: 'inspecting' | 'planned' | 'began' }
  | { readonly kind: 'reported'; readonly event: Pick<ReportEvent, 'code' | 'phase' | 'data'> }
  | { readonly kind: 'ended'; readonly status: HostStatus }
);

/**
 * The timelines of the hosts of a run.
 * @param events in order of time
 * @param options.canary number of hosts that are changed first
 * @param options.nowMs end of the phases in progress
 * @returns in order of the first event of each host
 */
export function timelinesOf(
  events: readonly TimedEvent[],
  { canary, nowMs }: { readonly canary: number; readonly nowMs: number },
): readonly HostTimeline[] {
  const hosts = new Map<string, HostTimes>();
  let passed = 0;
  for (const event of events) {
    const times = hosts.get(event.host) ?? new HostTimes(event.host);
    hosts.set(event.host, times);
    if (event.kind === 'began') times.isCanary = passed < canary;
    if (event.kind === 'ended' && times.beganMs !== null && (event.status === 'changed' || event.status === 'unchanged')) passed++;
    times.add(event);
  }
  const batches = batchesOf([...hosts.values()], nowMs);
  return [...hosts.values()].map((times) => times.timeline(nowMs, batches.get(times.host) ?? null));
}

/** Collects the phases of one host. */
class HostTimes {
  readonly host: string;
  readonly #phases: TimedPhase[] = [];
  #phase: HostPhase | null = null;
  #since = 0;
  /** Of the last report: a restart began when the change before it was done. */
  #lastMs = 0;
  #restartedIn: string | undefined;
  beganMs: number | null = null;
  confirmedMs: number | null = null;
  endedMs: number | null = null;
  isCanary = false;
  #status: HostStatus | null = null;

  constructor(host: string) {
    this.host = host;
  }

  add(event: TimedEvent): void {
    const { atMs } = event;
    switch (event.kind) {
      case 'inspecting':
        this.#enter('planning', atMs);
        break;
      case 'planned':
        if (this.beganMs === null) this.#enter('queued', atMs);
        break;
      case 'began':
        this.beganMs = atMs;
        this.#enter('changing', atMs);
        break;
      case 'reported':
        if (this.beganMs !== null) this.#report(event.event, atMs);
        break;
      case 'ended':
        this.#enter(null, atMs);
        this.endedMs = atMs;
        this.#status = event.status;
    }
    this.#lastMs = atMs;
  }

  #report({ code, phase, data }: Extract<TimedEvent, { kind: 'reported' }>['event'], atMs: number): void {
    if (this.#phase === 'rolling-back') return;
    if (code === 'CHANGE_DONE' && data?.kind === 'restart-unit' && data.unit === 'kubelet') {
      this.#enter('restarting', this.#lastMs);
      this.#enter('verifying', atMs);
      this.#restartedIn = phase;
    }
    // Child phases of the restart belong to its verification: they wait for the kubelet.
    if (code === 'PHASE_STARTED' && this.#phase === 'verifying' && phase?.startsWith(`${this.#restartedIn}/`) === false)
      this.#enter('changing', atMs);
    if (code === 'COMMIT_VERIFIED') this.#enter('confirming', atMs);
    if (code === 'COMMIT_CONFIRMED' || code === 'COMMIT_NOT_IN_FORCE') {
      this.confirmedMs = code === 'COMMIT_CONFIRMED' ? atMs : null;
      this.#enter('changing', atMs);
    }
    if (code === 'ROLLBACK_STARTED') this.#enter('rolling-back', atMs);
  }

  #enter(phase: HostPhase | null, atMs: number): void {
    if (phase === this.#phase) return;
    this.#close(atMs);
    this.#phase = phase;
    this.#since = atMs;
  }

  #close(atMs: number): void {
    if (this.#phase !== null && atMs > this.#since) this.#phases.push({ phase: this.#phase, startMs: this.#since, endMs: atMs });
  }

  timeline(nowMs: number, batch: number | null): HostTimeline {
    this.#close(nowMs);
    const { host, beganMs, confirmedMs, endedMs, isCanary } = this;
    return { host, phases: this.#phases, beganMs, confirmedMs, endedMs, status: this.#status, isCanary, batch };
  }
}

/** A batch has the hosts that began before any host of the batch had ended. */
function batchesOf(hosts: readonly HostTimes[], nowMs: number): ReadonlyMap<string, number> {
  const batches = new Map<string, number>();
  let batch = 0;
  let firstEndMs = Number.NEGATIVE_INFINITY;
  const changed = hosts.flatMap(({ host, beganMs, endedMs }) => (beganMs === null ? [] : [{ host, beganMs, endMs: endedMs ?? nowMs }]));
  for (const { host, beganMs, endMs } of changed.toSorted((a, b) => a.beganMs - b.beganMs)) {
    if (beganMs >= firstEndMs) {
      batch++;
      firstEndMs = Number.POSITIVE_INFINITY;
    }
    firstEndMs = Math.min(firstEndMs, endMs);
    batches.set(host, batch);
  }
  return batches;
}

/** Milliseconds from the first change of a host until it finishes; null: not changed. */
export function changeMsOf({ beganMs, endedMs }: HostTimeline): number | null {
  return beganMs === null || endedMs === null ? null : endedMs - beganMs;
}

const SLOW_FACTOR = 2;
const SLOW_MARGIN_MS = 5_000;
const FEWEST_TO_COMPARE = 3;

/**
 * The duration of a change beyond which a host is slow: twice the median, and at least five seconds more.
 * @returns milliseconds; Infinity: too few hosts were changed to compare them
 */
export function slowLimitMs(timelines: readonly HostTimeline[]): number {
  const durations = timelines.flatMap((each) => changeMsOf(each) ?? []).sort((a, b) => a - b);
  if (durations.length < FEWEST_TO_COMPARE) return Number.POSITIVE_INFINITY;
  const median = durations[Math.floor((durations.length - 1) / 2)] as number;
  return Math.max(median * SLOW_FACTOR, median + SLOW_MARGIN_MS);
}

/** Records the events of a run, for the timelines of its hosts. */
export interface RunRecorder {
  /** The start of the run. */
  readonly startedAt: Date;
  /** The given ports, whose events are recorded. */
  record(ports: FleetPorts): FleetPorts;
  /** @param canary number of hosts that are changed first */
  timelines(canary: number): readonly HostTimeline[];
}

export function runRecorder(clock: Clock): RunRecorder {
  const startedAt = clock.now();
  const nowMs = (): number => clock.now().getTime() - startedAt.getTime();
  const events: TimedEvent[] = [];
  const ended = new Set<string>();
  let looking: ReadonlySet<string> = new Set();
  const add = (event: TimedEvent): void => {
    events.push(event);
  };
  const follow = (progress: FleetProgress): void => {
    const atMs = nowMs();
    const now = new Set(progress.looking);
    for (const host of now) if (!looking.has(host)) add({ kind: 'inspecting', host, atMs });
    for (const host of looking) if (!now.has(host) && !ended.has(host)) add({ kind: 'planned', host, atMs });
    looking = now;
  };
  return {
    startedAt,
    record: (ports) => ({
      ...ports,
      reporterOf: (host) => {
        const own = ports.reporterOf(host);
        return {
          ...own,
          report: (event) => {
            const { code, phase, data } = event;
            const about = { code, ...(phase === undefined ? {} : { phase }), ...(data === undefined ? {} : { data }) };
            if (TIMED.has(code)) add({ kind: 'reported', host, atMs: nowMs(), event: about });
            own.report(event);
          },
        };
      },
      begins: async (host) => {
        await ports.begins?.(host);
        add({ kind: 'began', host, atMs: nowMs() });
      },
      ended: async (outcome) => {
        ended.add(outcome.host);
        add({ kind: 'ended', host: outcome.host, atMs: nowMs(), status: outcome.status });
        await ports.ended?.(outcome);
      },
      progress: (progress) => {
        follow(progress);
        ports.progress?.(progress);
      },
    }),
    timelines: (canary) => timelinesOf(events, { canary, nowMs: nowMs() }),
  };
}

/** Reports that begin or end a phase. */
const TIMED: ReadonlySet<string> = new Set([
  'CHANGE_DONE',
  'COMMIT_CONFIRMED',
  'COMMIT_NOT_IN_FORCE',
  'COMMIT_VERIFIED',
  'PHASE_STARTED',
  'ROLLBACK_STARTED',
]);
