import type { Clock } from '../base/clock.ts';
import type { ReportEvent, Reporter } from '../base/reporter.ts';
import type { FleetProgress, HostOutcome, HostStatus } from './fleet.ts';

/** A step of a host; times are milliseconds since the epoch. */
export interface HostStep {
  /** `inspect`, `queued`, the name of a phase, `confirm` (from the restart to the confirmation) or `roll back`. */
  readonly name: string;
  readonly startedAt: number;
  /** Null: in progress. */
  readonly endedAt: number | null;
}

/**
 * The steps of a host as a live display shows them. `run-timeline.ts` has fewer, common phases for the report of a
 * finished run.
 */
export interface HostSteps {
  readonly host: string;
  readonly startedAt: number;
  /** Null: in progress. */
  readonly endedAt: number | null;
  /** Null: in progress. */
  readonly status: HostStatus | null;
  /** In order; a host is in one step at a time. */
  readonly steps: readonly HostStep[];
  /** Its change was confirmed over a new connection. */
  readonly isConfirmed: boolean;
  /** What the last step waits for, without a duration and without the name of the host; null: unknown. */
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
  ended(outcome: Pick<HostOutcome, 'host' | 'status'>): void;
  /** All started hosts, in the order of their start. */
  hosts(): readonly HostSteps[];
  /** Undefined: not started. */
  host(name: string): HostSteps | undefined;
}

/** A host while it is recorded. */
interface Recording {
  readonly host: string;
  readonly startedAt: number;
  endedAt: number | null;
  status: HostStatus | null;
  steps: readonly HostStep[];
  isConfirmed: boolean;
  activity: string | null;
  revertsAt: number | null;
}

/** Starts the recording of a run. */
export function runSteps(clock: Pick<Clock, 'now'>): RunSteps {
  const now = (): number => clock.now().getTime();
  const recordings = new Map<string, Recording>();
  const find = (host: string): Recording => {
    const found = recordings.get(host);
    if (found !== undefined) return found;
    const first = { name: 'inspect', startedAt: now(), endedAt: null };
    const started = {
      host,
      startedAt: now(),
      endedAt: null,
      status: null,
      steps: [first],
      isConfirmed: false,
      activity: null,
      revertsAt: null,
    };
    recordings.set(host, started);
    return started;
  };
  const enter = (recording: Recording, name: string): void => {
    const last = recording.steps.at(-1);
    if (last?.name === name || recording.endedAt !== null) return;
    recording.steps = [...closed(recording.steps, now()), { name, startedAt: now(), endedAt: null }];
    recording.activity = null;
  };
  const isInspected = ({ steps }: Recording): boolean => steps.at(-1)?.name === 'inspect';
  const record = (recording: Recording, { code, phase, message, data }: ReportEvent): void => {
    if (code === 'PHASE_STARTED' && phase !== undefined) enter(recording, phase);
    if (code === 'WAITING') recording.activity = sharedText(message, recording.host);
    if (code === 'REVERT_ARMED' && typeof data?.timeoutSeconds === 'number') recording.revertsAt = now() + data.timeoutSeconds * 1000;
    if (code === 'CHANGE_DONE' && isKubeletRestart(data) && recording.revertsAt !== null) enter(recording, 'confirm');
    if (code === 'COMMIT_CONFIRMED') {
      recording.isConfirmed = true;
      recording.revertsAt = null;
    }
    if (code === 'ROLLBACK_STARTED') enter(recording, 'roll back');
  };
  return {
    startedAt: now(),
    of: (host, own) => ({
      ...own,
      report: (event) => {
        record(find(host), event);
        own.report(event);
      },
    }),
    progress: ({ looking, changing }) => {
      for (const host of looking) find(host);
      for (const host of changing) if (['inspect', 'queued'].includes(find(host).steps.at(-1)?.name ?? '')) enter(find(host), 'change');
      const busy = new Set([...looking, ...changing]);
      for (const recording of recordings.values())
        if (recording.endedAt === null && !busy.has(recording.host) && isInspected(recording)) enter(recording, 'queued');
    },
    ended: ({ host, status }) => {
      const recording = find(host);
      recording.steps = closed(recording.steps, now());
      recording.endedAt = now();
      recording.status = status;
      recording.revertsAt = null;
    },
    hosts: () => [...recordings.values()].map((recording) => ({ ...recording })),
    host: (name) => recordings.get(name),
  };
}

function closed(steps: readonly HostStep[], at: number): readonly HostStep[] {
  return steps.map((step) => (step.endedAt === null ? { ...step, endedAt: at } : step));
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
