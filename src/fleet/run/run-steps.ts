import type { Clock } from '../../base/clock.ts';
import type { ReportEvent, Reporter } from '../../base/reporter.ts';
import type { FleetProgress, HostOutcome, HostStatus } from './fleet.ts';

/** A period of a host; times are milliseconds since the epoch. */
interface Period<Name extends string> {
  readonly name: Name;
  readonly startedAt: number;
  /** Null: in progress. */
  readonly endedAt: number | null;
}

/**
 * A step of a host as the live display names it: `inspect`, `queued`, `change`, the name of a phase, `confirm` (from the
 * restart to the confirmation) or `roll back`.
 */
type HostStep = Period<string>;

/** What a host of a run does, in the usual order: fewer, common names for comparing hosts. */
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
  /** Changes after the confirmation, such as labels of the Node. */
  | 'finishing'
  | 'rolling-back';

/** The steps and phases of a host. */
export interface HostSteps {
  readonly host: string;
  readonly startedAt: number;
  /** Start of the first change; null: not changed, or the start is not recorded (`RunSteps.begins`). */
  readonly beganAt: number | null;
  /** Null: in progress. */
  readonly endedAt: number | null;
  /** Null: in progress. */
  readonly status: HostStatus | null;
  /** In order; a host is in one step at a time. */
  readonly steps: readonly HostStep[];
  /** In order, without gaps; only `planning` and `queued` before `beganAt`. */
  readonly phases: readonly Period<HostPhase>[];
  /** When its change was confirmed over a new connection; null: it needed no confirmation, or was not confirmed. */
  readonly confirmedAt: number | null;
  /** What the last step waits for, or why the host rolls back, without a duration and without the name of the host; null: unknown. */
  readonly activity: string | null;
  /** The time at which the host rolls back automatically unless its change is confirmed; null: no such change. */
  readonly revertsAt: number | null;
}

/** Records the present step of each host of a run, and the durations of the previous ones. */
export interface RunSteps {
  readonly startedAt: number;
  /** A reporter for a host that records the host's events. */
  of(host: string, reporter: Reporter): Reporter;
  /** The run changes its hosts one after another: a host that is neither inspected nor changed is queued. */
  progress(progress: Pick<FleetProgress, 'looking' | 'changing'>): void;
  /** The first change of a host starts. */
  begins(host: string): void;
  ended(outcome: Pick<HostOutcome, 'host' | 'status'>): void;
  /** All started hosts, in the order of their start. */
  hosts(): readonly HostSteps[];
  /** Undefined: not started. */
  host(name: string): HostSteps | undefined;
}

/** Starts the recording of a run. */
export function runSteps(clock: Pick<Clock, 'now'>): RunSteps {
  const now = (): number => clock.now().getTime();
  const recordings = new Map<string, Recording>();
  const find = (host: string): Recording => {
    const recording = recordings.get(host) ?? new Recording(host, now());
    recordings.set(host, recording);
    return recording;
  };
  return {
    startedAt: now(),
    of: (host, own) => ({
      ...own,
      report: (event) => {
        find(host).report(event, now());
        own.report(event);
      },
    }),
    progress: ({ looking, changing }) => {
      for (const host of looking) find(host);
      for (const host of changing) find(host).isPlanned('change', now());
      const busy = new Set([...looking, ...changing]);
      for (const recording of recordings.values()) if (!busy.has(recording.host)) recording.isPlanned('queued', now());
    },
    begins: (host) => find(host).begins(now()),
    ended: ({ host, status }) => find(host).ends(status, now()),
    hosts: () => [...recordings.values()].map((recording) => recording.state()),
    host: (name) => recordings.get(name)?.state(),
  };
}

/** Derives the steps and phases of one host from its events. */
class Recording {
  readonly host: string;
  readonly #startedAt: number;
  readonly #steps: Track<string>;
  readonly #phases: Track<HostPhase>;
  /** Of the last event: a restart began when the change before it was done. */
  #lastAt: number;
  /** The phase that restarted the kubelet. */
  #restartedIn: string | undefined;
  #beganAt: number | null = null;
  #endedAt: number | null = null;
  #isRollingBack = false;
  #status: HostStatus | null = null;
  #confirmedAt: number | null = null;
  #activity: string | null = null;
  #revertsAt: number | null = null;

  constructor(host: string, at: number) {
    this.host = host;
    this.#startedAt = at;
    this.#lastAt = at;
    this.#steps = new Track('inspect', at);
    this.#phases = new Track<HostPhase>('planning', at);
  }

  /** @param next what follows the inspection of the host */
  isPlanned(next: 'queued' | 'change', at: number): void {
    if (this.#endedAt !== null) return;
    if (this.#steps.present === 'inspect' || (next === 'change' && this.#steps.present === 'queued')) this.#enter(next, at);
    if (this.#phases.present !== 'planning') return;
    this.#phases.enter('queued', at);
    this.#lastAt = at;
  }

  begins(at: number): void {
    this.isPlanned('change', at);
    this.#beganAt = at;
    this.#phases.enter('changing', at);
    this.#lastAt = at;
  }

  ends(status: HostStatus, at: number): void {
    this.#steps.end(at);
    this.#phases.end(at);
    this.#endedAt = at;
    this.#status = status;
    this.#revertsAt = null;
  }

  report({ code, phase, message, data }: ReportEvent, at: number): void {
    if (this.#endedAt !== null) return;
    switch (code) {
      case 'WAITING':
        // A rollback shows its cause instead.
        if (!this.#isRollingBack) this.#activity = sharedText(message, this.host);
        return;
      case 'REVERT_ARMED':
        if (typeof data?.timeoutSeconds === 'number') this.#revertsAt = at + data.timeoutSeconds * 1000;
        return;
      case 'PHASE_STARTED':
        if (phase === undefined) break;
        this.#enter(phase, at);
        // Child phases of the restart belong to its verification: they wait for the kubelet.
        if (this.#phases.present === 'verifying' && !phase.startsWith(`${this.#restartedIn}/`)) this.#phases.enter('changing', at);
        break;
      case 'CHANGE_DONE':
        if (isKubeletRestart(data)) this.#restarted(phase, at);
        break;
      case 'COMMIT_VERIFIED':
        this.#changes('confirming', at);
        break;
      case 'COMMIT_CONFIRMED':
        this.#confirmedAt = at;
        this.#revertsAt = null;
        this.#changes('finishing', at);
        break;
      case 'COMMIT_NOT_IN_FORCE':
        this.#confirmedAt = null;
        this.#changes('changing', at);
        break;
      case 'ROLLBACK_STARTED':
        this.#enter('roll back', at);
        this.#changes('rolling-back', at);
        this.#isRollingBack = true;
        if (typeof data?.cause === 'string') this.#activity = sharedText(data.cause, this.host);
        break;
      default:
        return;
    }
    this.#lastAt = at;
  }

  #restarted(phase: string | undefined, at: number): void {
    // The restart of a rollback belongs to the rollback.
    if (this.#isRollingBack) return;
    if (this.#revertsAt !== null) this.#enter('confirm', at);
    this.#changes('restarting', this.#lastAt);
    this.#changes('verifying', at);
    this.#restartedIn = phase;
  }

  #enter(step: string, at: number): void {
    if (this.#steps.present === step) return;
    this.#steps.enter(step, at);
    this.#activity = null;
  }

  /** A rollback is the last phase; before the first change a host is planned or queued. */
  #changes(phase: HostPhase, at: number): void {
    if (this.#beganAt !== null && !this.#isRollingBack) this.#phases.enter(phase, at);
  }

  state(): HostSteps {
    return {
      host: this.host,
      startedAt: this.#startedAt,
      beganAt: this.#beganAt,
      endedAt: this.#endedAt,
      status: this.#status,
      steps: this.#steps.periods,
      phases: this.#phases.periods,
      confirmedAt: this.#confirmedAt,
      activity: this.#activity,
      revertsAt: this.#revertsAt,
    };
  }
}

/** Periods one after another. */
class Track<Name extends string> {
  #periods: readonly Period<Name>[];

  constructor(name: Name, at: number) {
    this.#periods = [{ name, startedAt: at, endedAt: null }];
  }

  get periods(): readonly Period<Name>[] {
    return this.#periods;
  }

  get present(): Name | undefined {
    return this.#periods.at(-1)?.name;
  }

  enter(name: Name, at: number): void {
    if (this.present === name) return;
    this.end(at);
    this.#periods = [...this.#periods, { name, startedAt: at, endedAt: null }];
  }

  end(at: number): void {
    this.#periods = this.#periods.map((period) => (period.endedAt === null ? { ...period, endedAt: at } : period));
  }
}

function isKubeletRestart(data: ReportEvent['data']): boolean {
  return data?.kind === 'restart-unit' && data.unit === 'kubelet';
}

/**
 * `waiting for Node edge-1 to be Ready, 12 s: why` without the duration and the words that contain the name of the
 * host, so that hosts with the same wait have equal texts.
 */
function sharedText(message: string, host: string): string {
  const words = message.replace(/, [0-9]+ ?s(?=:|$)/, '').split(' ');
  return words
    .map((word) => (containsName(word, host) ? (/[:,;]$/.exec(word)?.[0] ?? '') : word))
    .filter((word) => word !== '')
    .join(' ')
    .replace(/ (?=[:,;])/g, '');
}

/** Whether a word is a name, or contains it as one of its parts. */
function containsName(word: string, name: string): boolean {
  for (let at = word.indexOf(name); at >= 0; at = word.indexOf(name, at + 1)) {
    const isPart = !/[A-Za-z0-9]/.test(word.charAt(at - 1)) && !/[A-Za-z0-9]/.test(word.charAt(at + name.length));
    if (isPart) return true;
  }
  return false;
}

/** The median duration of each finished step, by its name, in milliseconds, if enough hosts have finished it. */
export function medianStepMs(hosts: readonly HostSteps[]): ReadonlyMap<string, number> {
  const durations = new Map<string, number[]>();
  for (const { steps } of hosts)
    for (const { name, startedAt, endedAt } of steps) {
      if (endedAt === null) continue;
      const known = durations.get(name);
      if (known === undefined) durations.set(name, [endedAt - startedAt]);
      else known.push(endedAt - startedAt);
    }
  return new Map([...durations].flatMap(([name, all]) => (all.length < LEAST_HOSTS ? [] : [[name, medianOf(all)] as const])));
}

/** Fewer hosts give no usable median. */
const LEAST_HOSTS = 3;

/** The median of at least one number. */
export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}

const LEAST_ENDED = 4;

/**
 * Estimates the rest of a run from the rate at which the later half of its hosts ended: a canary and growing
 * batches make the first hosts slower than the others.
 * @param endedAt times at which hosts ended, in any order
 * @param left number of hosts that have not ended
 * @returns milliseconds; null: too few hosts have ended
 */
export function estimateRestMs(endedAt: readonly number[], left: number, now: number): number | null {
  if (left === 0) return 0;
  if (endedAt.length < LEAST_ENDED) return null;
  const sorted = endedAt.toSorted((a, b) => a - b);
  const first = Math.floor(sorted.length / 2) - 1;
  const count = sorted.length - 1 - first;
  const elapsed = now - (sorted[first] ?? now);
  return elapsed <= 0 ? null : (elapsed / count) * left;
}
