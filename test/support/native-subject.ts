import { expect } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { NativeSteps } from './native-steps.ts';

/** A Node with a kubelet that reads its configuration from the API server, the stand-in or a real one, and what can happen to it. */
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
  /** A number for the stand-in, which does anything in no time, and one for a real kubelet. */
  rounds(standIn: number, real: number): number;
  /** Seconds of a machine that is busy for one of the stand-in's. */
  readonly patience: number;
  /** Seconds. */
  now(): number;
  pass(seconds: number): Promise<void>;
  /** Makes what is assigned, and was synced, older than a trial is long, and lets the kubelet notice. */
  passTrial(): Promise<void>;
  /** Makes `meta/assigned` as old as that. */
  backdate(minutes: number): Promise<void>;
  /** Another API server for the same objects, whose gate is off. */
  withoutGate(): Promise<Pick<Cluster, 'get' | 'patch'>>;
  /** The API server does not answer this kubelet, or does again. */
  loseApiServer(isLost: boolean): Promise<void>;
  /** The API server answers 500 when this kubelet writes its status, or takes it again. */
  refuseReports(isRefused: boolean): Promise<void>;
}

export interface SubjectKubelet {
  /** By hand: what systemd counts begins anew. */
  start(): Promise<void>;
  stop(): Promise<void>;
  process(): Promise<SubjectProcess>;
  configz(): Promise<JsonObject | null>;
  /** The lines of `/metrics` that are about this. */
  metrics(): Promise<string>;
  /** What it said since it was started by hand. */
  log(): Promise<string>;
}

/** Since it was started by hand. */
export interface SubjectProcess {
  readonly state: 'stopped' | 'running' | 'waiting';
  /** How often systemd started it again. */
  readonly restarts: number;
  readonly exitCodes: readonly number[];
}

/** Files of its host, by absolute paths. */
export interface SubjectStore {
  /** Null: there is none. */
  read(path: string): Promise<string | null>;
  write(path: string, text: string): Promise<void>;
  makeDirectory(path: string): Promise<void>;
  remove(path: string): Promise<void>;
  exists(path: string): Promise<boolean>;
  list(path: string): Promise<readonly string[]>;
  /** Unix seconds. */
  modifiedAt(path: string): Promise<number>;
}

/** What can be looked at; all of it at one time. */
export interface Observed {
  readonly status?: unknown;
  /** `maxPods` of the configuration that runs; null: none runs. */
  readonly pods?: unknown;
  readonly restarts?: unknown;
  readonly exitCodes?: unknown;
  readonly state?: unknown;
  readonly lastEvent?: unknown;
  /** `meta/assigned` as it is. */
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

/** Notice, restart, first report. */
const SETTLED = 30;

/** Lets time pass until it looks like that, which it has to within seconds. */
export function comesTo(subject: NativeSubject, expected: Observed, withinSeconds?: number): Promise<void> {
  return becomes(subject, () => inspect(subject, expected), expected, withinSeconds);
}

/** Lets time pass until an answer is that, which it has to be within seconds. */
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

/** Lets time pass, and looks: it is still like that. */
export async function stays(subject: NativeSubject, expected: Observed, seconds: number): Promise<void> {
  await subject.pass(seconds);
  expect(await inspect(subject, expected)).toEqual(expected);
}

/** What can be seen, as far as it is what is expected and one further: every look costs a real host something. */
async function inspect(subject: NativeSubject, at: Observed): Promise<Observed> {
  const seen: Record<string, unknown> = {};
  for (const name of Object.keys(at) as (keyof Observed)[]) {
    seen[name] = await LOOKS[name](subject);
    if (!fits(seen[name], at[name])) break;
  }
  return seen;
}

/** As `toEqual`, without what it costs to tell of a difference. */
function fits(answer: unknown, expected: unknown): boolean {
  return (expect.objectContaining({ answer: expected }) as { asymmetricMatch(other: unknown): boolean }).asymmetricMatch({ answer });
}
