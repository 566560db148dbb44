import type { JsonObject } from '../../src/base/json.ts';
import { parseSource, sourceToJson } from '../../src/codec/source.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { readPod } from '../../src/kubelet/workload/pod.ts';
import { memberOf, textOf } from '../api-server/members.ts';
import {
  admitPods,
  byCreation,
  isCritical,
  isRunnable,
  nodeResources,
  type Pressure,
  pressuresOf,
  type Refusal,
} from './stand-in-admission.ts';
import { failedStatus, mirrorPod, missingClusterDns, podEvent, podStart, startedStatus, staticHash } from './stand-in-pods.ts';

/** The requests of a kubelet about the pods of its node. */
export interface PodApi {
  /** The pods of the node. */
  pods(): Promise<readonly KubeObject[]>;
  /** The uid of the Node; empty: it does not exist. */
  nodeUid(): Promise<string>;
  /** Creates a mirror pod or an Event. */
  create(object: KubeObject): Promise<void>;
  setStatus(pod: KubeObject, status: JsonObject): Promise<void>;
  remove(pod: KubeObject): Promise<void>;
}

/** The files of a host. */
export interface PodFiles {
  exists(path: string): boolean;
  /** The texts of the files in a directory by path; null: the directory does not exist. */
  texts(directory: string): ReadonlyMap<string, string> | null;
}

export interface PodRunnerOptions {
  readonly api: PodApi;
  readonly files: PodFiles;
  readonly nodeName: string;
  /** IP address of the host. */
  readonly address: string;
  /** The configuration of the kubelet with its defaults and with absolute paths. */
  readonly config: JsonObject;
  readonly now: () => Date;
  /** Aborted at the end of the process. */
  readonly signal: AbortSignal;
}

/** The pods of one kubelet process. */
export interface PodRunner {
  /**
   * Brings the pods of the node to the state that the configuration and the files ask for. Calls during a pass
   * cause one more pass.
   * @returns whether all admitted pods run
   * @throws the error of a request; the next call continues
   */
  sync(): Promise<boolean>;
}

/**
 * Runs pods like a kubelet: admits those of its node when the process starts, starts their containers, shows
 * static pods as mirror pods, and evicts pods under pressure. No container runs.
 */
export function createPodRunner(options: PodRunnerOptions): PodRunner {
  const process: Process = { ...options, admitted: new Set(), refusedStatic: new Map(), reported: new Set(), noticed: [], nextIp: 2 };
  let current: Promise<boolean> | null = null;
  let isAgain = false;
  const pass = async (): Promise<boolean> => {
    try {
      let isDone = true;
      do {
        isAgain = false;
        isDone = await runOnce(process);
      } while (isAgain && !options.signal.aborted);
      return isDone;
    } finally {
      current = null;
    }
  };
  return {
    sync: () => {
      if (current !== null) isAgain = true;
      current ??= pass();
      return current;
    },
  };
}

interface Process extends PodRunnerOptions {
  /** Keys of the pods that this process has admitted. */
  readonly admitted: Set<string>;
  /** Static pods that this process has not admitted, by key. */
  readonly refusedStatic: Map<string, Refusal>;
  /** Events that were sent, by key and reason. */
  readonly reported: Set<string>;
  /** The pressures that the process has noticed: those of its first pass are noticed after the admission. */
  noticed: readonly Pressure[];
  nextIp: number;
}

/** A mirror pod created again has another uid, but is the same pod for the kubelet. */
function keyOf(pod: KubeObject): string {
  return staticHash(pod) || (pod.metadata.uid ?? '');
}

async function runOnce(process: Process): Promise<boolean> {
  const { api, signal, config } = process;
  const before = await api.pods();
  const pods = (await showStaticPods(process, before)) ? await api.pods() : before;
  for (const pod of pods) if (pod.metadata.deletionTimestamp !== undefined && !signal.aborted) await api.remove(pod);
  const runnable = pods.filter((pod) => isRunnable(pod) || isRestarted(process, pod));
  await admit(process, runnable);
  const isAdmitted = (pod: KubeObject): boolean => process.admitted.has(keyOf(pod));
  let isDone = true;
  for (const pod of runnable.filter(isAdmitted)) if (!(await start(process, pod))) isDone = false;
  process.noticed = pressuresOf(config);
  for (const pod of runnable.filter(isAdmitted)) {
    if (process.noticed[0] !== undefined && !isCritical(pod))
      await end(process, pod, { reason: 'Evicted', message: process.noticed[0].message });
  }
  const present = new Set(pods.map(keyOf));
  for (const key of process.admitted) if (!present.has(key)) process.admitted.delete(key);
  return isDone;
}

/** A new process runs a static pod again that the last one has ended. */
function isRestarted({ refusedStatic, admitted }: Process, pod: KubeObject): boolean {
  return staticHash(pod) !== '' && !refusedStatic.has(keyOf(pod)) && !admitted.has(keyOf(pod));
}

/**
 * Creates the mirror pods of new files, and removes those of removed and changed ones.
 * @returns whether it created or removed one
 */
async function showStaticPods(process: Process, pods: readonly KubeObject[]): Promise<boolean> {
  const { api, signal } = process;
  const shown = new Map(pods.filter((pod) => readPod(pod).isStatic).map((pod) => [staticHash(pod), pod]));
  const desired = await staticPods(process);
  const gone = [...shown].filter(([hash]) => !desired.has(hash));
  const added = [...desired].filter(([hash]) => !shown.has(hash));
  for (const [hash, pod] of gone) {
    if (signal.aborted) break;
    await api.remove(pod);
    process.admitted.delete(hash);
    process.refusedStatic.delete(hash);
  }
  for (const [, pod] of added) if (!signal.aborted) await api.create(pod);
  return gone.length + added.length > 0;
}

/** The mirror pods of the files in staticPodPath, by hash. Other files are ignored. */
async function staticPods({ api, files, nodeName, config }: Process): Promise<ReadonlyMap<string, KubeObject>> {
  const directory = textOf(config, 'staticPodPath');
  const texts = directory === '' ? null : files.texts(directory);
  if (texts === null || texts.size === 0) return new Map();
  const nodeUid = await api.nodeUid();
  const pods = [...texts].flatMap(([path, text]): readonly KubeObject[] => {
    const { documents, problems } = parseSource(text, path);
    const root = documents[0]?.root ?? null;
    if (problems.length > 0 || root === null || root.kind !== 'map') return [];
    const manifest = sourceToJson(root) as JsonObject;
    if (manifest.kind !== 'Pod' || textOf(memberOf(manifest, 'metadata'), 'name') === '') return [];
    return [mirrorPod(manifest, { path, nodeName, nodeUid })];
  });
  return new Map(pods.map((pod) => [staticHash(pod), pod]));
}

async function admit(process: Process, runnable: readonly KubeObject[]): Promise<void> {
  const { config, admitted, refusedStatic, noticed } = process;
  const isNew = (pod: KubeObject): boolean => !admitted.has(keyOf(pod)) && !refusedStatic.has(keyOf(pod));
  const isStatic = (pod: KubeObject): boolean => staticHash(pod) !== '';
  const fresh = runnable.filter(isNew).sort(byCreation);
  // The kubelet reads its files before it has the pods of the API server.
  const ordered = [...fresh.filter(isStatic), ...fresh.filter((pod) => !isStatic(pod))];
  const running = runnable.filter((pod) => admitted.has(keyOf(pod)));
  const verdict = admitPods(ordered, { running, limits: nodeResources(config).limits, pressures: noticed });
  for (const pod of verdict.admitted) admitted.add(keyOf(pod));
  for (const { pod, refusal } of verdict.refused) {
    if (isStatic(pod)) refusedStatic.set(keyOf(pod), refusal);
    await end(process, pod, refusal, 'Pod was rejected: ');
  }
  for (const pod of verdict.preempted)
    await end(process, pod, { reason: 'Preempting', message: 'Preempted in order to admit critical pod' });
}

async function end(process: Process, pod: KubeObject, refusal: Refusal, prefix = ''): Promise<void> {
  const { api, admitted, signal, now } = process;
  if (signal.aborted) return;
  admitted.delete(keyOf(pod));
  await report(process, pod, refusal);
  await api.setStatus(pod, failedStatus({ pod, now: now() }, { ...refusal, message: `${prefix}${refusal.message}` }));
}

/** Starts the containers of an admitted pod if they do not run. */
async function start(process: Process, pod: KubeObject): Promise<boolean> {
  const { api, config, files, now, address, signal } = process;
  const { phase, waiting } = readPod(pod);
  if (phase === 'Running' || signal.aborted) return true;
  const attempt = podStart(pod, config, (path) => files.exists(path));
  if (attempt.kind === 'no-sandbox')
    await report(process, pod, { reason: 'FailedCreatePodSandBox', message: `Failed to create pod sandbox: ${attempt.why}` });
  const dns = missingClusterDns(pod, config);
  if (dns !== null) await report(process, pod, dns);
  const podIp = `10.244.0.${2 + (process.nextIp++ % 250)}`;
  const status = startedStatus({ pod, now: now(), hostIp: address, podIp }, attempt);
  const [before] = waiting;
  const isReported = attempt.kind !== 'running' && before?.reason === reasonOf(status);
  if (!isReported) await api.setStatus(pod, { ...status, reason: null, message: null });
  return attempt.kind === 'running';
}

function reasonOf(status: JsonObject): string {
  return readPod({ apiVersion: 'v1', kind: 'Pod', metadata: { name: '' }, status }).waiting[0]?.reason ?? '';
}

/** Sends an Event once for each pod and reason. */
async function report(process: Process, pod: KubeObject, refusal: Refusal): Promise<void> {
  const { api, nodeName, now, reported } = process;
  const key = `${keyOf(pod)} ${refusal.reason}`;
  if (reported.has(key)) return;
  reported.add(key);
  await api.create(podEvent(pod, refusal, { nodeName, now: now() }));
}
