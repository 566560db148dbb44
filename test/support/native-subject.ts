import { expect } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { NativeSteps } from './native-steps.ts';

/**
 * A Node with a kubelet that reads its configuration from the API server, simulated or real, and the actions
 * on it.
 */
export interface NativeSubject extends NativeSteps {
  readonly nodeName: string;
  readonly admin: Pick<Cluster, 'get' | 'list' | 'create' | 'update' | 'patch' | 'delete'>;
  /** With the credentials of its kubelet. */
  readonly asNode: Pick<Cluster, 'get' | 'patch'>;
  readonly namespace: string;
  /** `--dynamic-config-dir` on its host. */
  readonly directory: string;
  readonly kubelet: SubjectKubelet;
  readonly store: SubjectStore;
  /**
   * The number of repetitions: one for the simulated kubelet, which needs no time, and one for a real
   * kubelet.
   */
  rounds(standIn: number, real: number): number;
  /** Factor on time limits: seconds of a busy host per second of the simulated kubelet. */
  readonly patience: number;
  /** Seconds. */
  now(): number;
  pass(seconds: number): Promise<void>;
  /** Makes the synced assignment older than a trial, and waits until the kubelet has noticed that. */
  passTrial(): Promise<void>;
  /** Sets the age of `meta/assigned`. */
  backdate(minutes: number): Promise<void>;
  /** Another API server for the same objects, with the gate off. */
  withoutGate(): Promise<Pick<Cluster, 'get' | 'patch'>>;
  /** Makes the API server unreachable for this kubelet, or reachable again. */
  loseApiServer(isLost: boolean): Promise<void>;
  /** Makes the API server answer 500 when this kubelet writes its status, or accept it again. */
  refuseReports(isRefused: boolean): Promise<void>;
}

export interface SubjectKubelet {
  /** A manual start: systemd's counters start over. */
  start(): Promise<void>;
  stop(): Promise<void>;
  process(): Promise<SubjectProcess>;
  configz(): Promise<JsonObject | null>;
  /** The lines of `/metrics` about dynamic configuration. */
  metrics(): Promise<string>;
  /** The log since the last manual start. */
  log(): Promise<string>;
}

/** Since the last manual start. */
export interface SubjectProcess {
  readonly state: 'stopped' | 'running' | 'waiting';
  /** The number of restarts by systemd. */
  readonly restarts: number;
  readonly exitCodes: readonly number[];
}

/** Files of its host, by absolute paths. */
export interface SubjectStore {
  /** Null: the file does not exist. */
  read(path: string): Promise<string | null>;
  write(path: string, text: string): Promise<void>;
  makeDirectory(path: string): Promise<void>;
  remove(path: string): Promise<void>;
  exists(path: string): Promise<boolean>;
  list(path: string): Promise<readonly string[]>;
  /** Unix seconds. */
  modifiedAt(path: string): Promise<number>;
}

/** Observable state; all of it at one time. */
export interface Observed {
  readonly status?: unknown;
  /** `maxPods` of the running configuration; null: no kubelet runs. */
  readonly pods?: unknown;
  readonly restarts?: unknown;
  readonly exitCodes?: unknown;
  readonly state?: unknown;
  readonly lastEvent?: unknown;
  /** `meta/assigned`, unchanged. */
  readonly assigned?: unknown;
  readonly lastKnownGood?: unknown;
  readonly metrics?: unknown;
  readonly log?: unknown;
}

const LOOKS: { readonly [K in keyof Required<Observed>]: (subject: NativeSubject) => Promise<unknown> } = {
  status: (subject) => subject.status(),
  pods: async ({ kubelet }) => (await kubelet.configz())?.maxPods ?? null,
  restarts: async ({ kubelet }) => (await kubelet.process()).restarts,
  exitCodes: async ({ kubelet }) => (await kubelet.process()).exitCodes,
  state: async ({ kubelet }) => (await kubelet.process()).state,
  lastEvent: async (subject) => (await subject.events()).at(-1),
  assigned: ({ store, directory }) => store.read(`${directory}/store/meta/assigned`),
  lastKnownGood: ({ store, directory }) => store.read(`${directory}/store/meta/last-known-good`),
  metrics: ({ kubelet }) => kubelet.metrics(),
  log: ({ kubelet }) => kubelet.log(),
};

/** Seconds for notice, restart and first report. */
const SETTLED = 30;

/** Lets time pass until the state matches; fails when it does not match within the given seconds. */
export function comesTo(subject: NativeSubject, expected: Observed, withinSeconds?: number): Promise<void> {
  return becomes(subject, () => inspect(subject, expected), expected, withinSeconds);
}

/** Lets time pass until the answer matches; fails when it does not match within the given seconds. */
export async function becomes(
  subject: NativeSubject,
  query: () => Promise<unknown>,
  expected: unknown,
  withinSeconds = SETTLED,
): Promise<void> {
  const deadline = subject.now() + withinSeconds * subject.patience;
  for (;;) {
    const answer = await query();
    if (fits(answer, expected)) return;
    if (subject.now() >= deadline) return expect(answer).toEqual(expected);
    await subject.pass(1);
  }
}

/** Lets time pass, and checks that the state still matches. */
export async function stays(subject: NativeSubject, expected: Observed, seconds: number): Promise<void> {
  await subject.pass(seconds);
  expect(await inspect(subject, expected)).toEqual(expected);
}

/**
 * Reads the state up to the first member that does not match: every read costs a round trip to a real host.
 */
async function inspect(subject: NativeSubject, at: Observed): Promise<Observed> {
  const seen: Record<string, unknown> = {};
  for (const name of Object.keys(at) as (keyof Observed)[]) {
    seen[name] = await LOOKS[name](subject);
    if (!fits(seen[name], at[name])) break;
  }
  return seen;
}

/** Like `toEqual`, without the cost of formatting a difference. */
function fits(answer: unknown, expected: unknown): boolean {
  return (expect.objectContaining({ answer: expected }) as { asymmetricMatch(other: unknown): boolean }).asymmetricMatch({ answer });
}
