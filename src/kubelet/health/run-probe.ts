import type { Clock } from '../../base/clock.ts';
import { firstMessage, isAppError, messageOf, unlessRefused } from '../../base/errors.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { type Wait, type WaitContext, waitUntil } from '../../base/wait-until.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import type { Host } from '../../host/access/host.ts';
import { readJournal } from '../../host/access/journal.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isTemporaryError } from '../../kube/cluster-problems.ts';
import { type KubeObject, type ObjectRef, refOf } from '../../kube/object.ts';
import { listAt, objectsAt } from '../documents/values.ts';
import { isProbe, readPod } from '../workload/pod.ts';
import { PROBE_NAME, PROBE_NAMESPACE, type ProbeResult, podErrorIn, probePod, readProbe } from './probe-pod.ts';

/**
 * A probe pod now. `not-run`: it could not be created or read, or another client deleted it; `unknown`: the API server did not
 * answer.
 */
type ProbeReading =
  | ProbeResult
  | { readonly state: 'not-run'; readonly why: string }
  | { readonly state: 'unknown'; readonly seen: string };

/** A probe pod, created through the API server or as a static pod of the kubelet. */
export interface ProbeDriver {
  /** `NAMESPACE/NAME`. */
  readonly name: string;
  /** Creates the pod if that was not done yet, and reads it. */
  observe(): Promise<ProbeReading>;
  /** The error about the pod that an Event or the kubelet's log has; null: none, or not readable. */
  explain(): Promise<string | null>;
  /** Deletes the pod if it may exist. */
  remove(): Promise<void>;
}

/**
 * Waits until the container of a probe pod runs, and removes the pod, also after errors and interruptions.
 * @param wait `failedMs`: a failure that the kubelet reports for this time ends the wait; `meanwhile`: called with each check, an
 *   error ends the wait
 * @throws the signal's reason; errors of `meanwhile`
 */
export async function runProbe(
  context: WaitContext,
  driver: ProbeDriver,
  {
    failedMs,
    meanwhile,
    ...wait
  }: Pick<Wait<never, never>, 'timeoutMs' | 'pauseMs'> & {
    readonly failedMs: number;
    readonly meanwhile?: (() => Promise<void>) | undefined;
  },
): Promise<Exclude<ProbeReading, { readonly state: 'starting' | 'unknown' }>> {
  let failedAtMs: number | null = null;
  try {
    return await waitUntil<Awaited<ReturnType<typeof runProbe>>, Exclude<ProbeReading, { readonly state: 'started' | 'not-run' }>>(
      context,
      {
        probe: async (elapsedMs) => {
          const seen = await driver.observe();
          await meanwhile?.();
          if (seen.state === 'started' || seen.state === 'not-run') return { done: seen };
          if (seen.state === 'starting') failedAtMs = null;
          if (seen.state !== 'failed' && seen.state !== 'unusable') return { pending: seen };
          failedAtMs ??= elapsedMs();
          return elapsedMs() - failedAtMs < failedMs ? { pending: seen } : { done: { ...seen, why: await explained(driver, seen.why) } };
        },
        ...wait,
        progressMs: 5_000,
        describe: (seen, waitedMs) => `waiting for probe pod ${driver.name}, ${Math.round(waitedMs / 1000)} s: ${textOf(seen)}`,
        timedOut: async (seen) =>
          seen.state === 'unknown' ? { state: 'not-run', why: seen.seen } : { state: 'failed', why: await explained(driver, textOf(seen)) },
      },
    );
  } finally {
    await driver.remove();
  }
}

/** The cause of a failure, with the error that an Event or the log of the kubelet has. */
export async function explained(driver: ProbeDriver, why: string): Promise<string> {
  const error = await driver.explain();
  return error === null || why.includes(error) ? why : `${why}; ${error}`;
}

function textOf(seen: { readonly seen: string } | { readonly why: string }): string {
  return 'seen' in seen ? seen.seen : seen.why;
}

/** The kubelet stops a probe pod that a killed run has left. */
const MAX_SECONDS = 300;

/**
 * A probe pod that is created through the API server. A pod that cannot be deleted is reported (PROBE_POD_LEFT).
 * @param reads the client for the repeated reads of the pod. `phase`: shown in messages
 */
export function apiProbe(
  context: PhaseContext,
  {
    cluster,
    reads = cluster,
    phase,
    ...place
  }: Readonly<Record<'nodeName' | 'image' | 'phase', string>> & { readonly cluster: Cluster; readonly reads?: Cluster },
): ProbeDriver {
  const pod = podOnNode(place, context.clock.now());
  let state: 'absent' | 'requested' | 'created' = 'absent';

  const create = async (): Promise<ProbeReading | null> => {
    state = 'requested';
    try {
      await cluster.create(pod);
    } catch (error) {
      if (isTemporaryError(error)) return { state: 'unknown', seen: firstMessage(error) };
      // An earlier request was processed, and only its response was lost.
      if (!isAppError(error, 'CLUSTER_ALREADY_EXISTS')) {
        state = 'absent';
        return notRun(error);
      }
    }
    state = 'created';
    return null;
  };

  return {
    name: nameOf(pod),
    observe: async () => {
      const refused = state === 'created' ? null : await create();
      if (refused !== null) return refused;
      let found: KubeObject | null;
      try {
        found = await reads.get(refOf(pod));
      } catch (error) {
        context.signal?.throwIfAborted();
        return isTemporaryError(error) ? { state: 'unknown', seen: firstMessage(error) } : notRun(error);
      }
      if (found !== null) return readProbe(found);
      state = 'absent';
      return { state: 'not-run', why: `probe pod ${nameOf(pod)} was deleted by another client` };
    },
    explain: () => newestEvent(cluster, pod),
    remove: async () => {
      if (state !== 'absent') await deleteProbe(context, cluster, phase, refOf(pod));
    },
  };
}

/** Deletes the probe pods of killed runs; the static probe pod of an agent belongs to its file. */
export async function deleteStaleProbePods(
  context: PhaseContext,
  { cluster, phase }: { readonly cluster: Cluster; readonly phase: string },
  pods: readonly KubeObject[],
): Promise<void> {
  for (const pod of pods)
    if (isProbe(pod) && !readPod(pod).isStatic)
      await deleteProbe(context, cluster, phase, refOf({ ...pod, apiVersion: 'v1', kind: 'Pod' }));
}

/**
 * A pause image of a node, by the images that its kubelet reports (at most 50, the largest first); null: none
 * is reported.
 */
export function pauseImageOn(node: KubeObject): string | null {
  const names = objectsAt(node, 'status.images').flatMap((image) => listAt(image, 'names').map(String));
  return names.find((name) => name.includes('/pause:')) ?? null;
}

function podOnNode({ nodeName, image }: Readonly<Record<'nodeName' | 'image', string>>, now: Date): KubeObject {
  // A pod's name has at most 253 characters and no empty label.
  const name = `${PROBE_NAME}-${trimTrailing(nodeName.slice(0, 200), '-.')}-${now.getTime().toString(36)}`;
  const pod = probePod(name, image);
  return { ...pod, spec: { ...(pod.spec as object), nodeName, activeDeadlineSeconds: MAX_SECONDS } };
}

function nameOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** The pod has a grace period of 0, so it is deleted at once. */
async function deleteProbe({ host, reporter }: PhaseContext, cluster: Cluster, phase: string, pod: ObjectRef): Promise<void> {
  try {
    await cluster.delete(pod);
  } catch (error) {
    if (!isAppError(error)) throw error;
    const command = `kubectl delete pod -n ${pod.namespace} ${pod.name}`;
    const message = `probe pod ${pod.namespace}/${pod.name} was not deleted: ${firstMessage(error)}. Delete the pod: ${command}`;
    reporter.report({ level: 'warning', code: 'PROBE_POD_LEFT', host: host.name, phase, message });
  }
}

/** `REASON: message` of the newest warning about the pod, or of its newest Event; null: none, or not readable. */
async function newestEvent(cluster: Cluster, { metadata: { name, namespace = '' } }: KubeObject): Promise<string | null> {
  const fieldSelector = `involvedObject.kind=Pod,involvedObject.name=${name}`;
  const found = await unlessRefused(cluster.list({ apiVersion: 'v1', kind: 'Event', namespace }, { fieldSelector }));
  const items = found?.items ?? [];
  const warnings = items.filter(({ type }) => type === 'Warning');
  const [newest] = [...(warnings.length > 0 ? warnings : items)].sort((a, b) => timeOf(b) - timeOf(a));
  return newest === undefined ? null : [newest.reason, newest.message].filter(Boolean).join(': ');
}

function timeOf({ lastTimestamp, eventTime, metadata }: KubeObject): number {
  return Date.parse(String(lastTimestamp ?? eventTime ?? metadata.creationTimestamp)) || 0;
}

function notRun(error: unknown): ProbeReading {
  if (!isAppError(error)) throw error;
  return { state: 'not-run', why: firstMessage(error) };
}

/** The members of a kubelet's configuration that a probe pod depends on. */
export interface ProbedKubelet {
  /** Absolute path of the directory; null: the kubelet runs no static pods. */
  readonly staticPodPath: string | null;
  readonly maxPods: number;
  /** Image of the probe pod. */
  readonly image: string;
}

export interface StaticProbePorts {
  readonly host: Host;
  readonly nodeName: string;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly onIssue: (message: string) => void;
  readonly signal: AbortSignal;
}

const JOURNAL_LINES = 300;

/**
 * A probe pod as a manifest in the staticPodPath of a kubelet, and its mirror pod `NAME-NODE`.
 * @param pods gives the pods of the node; null: not known
 */
export function staticProbe(
  { host, nodeName, clock, random, onIssue, signal }: StaticProbePorts,
  { staticPodPath, image }: ProbedKubelet,
  pods: () => readonly KubeObject[] | null,
): ProbeDriver {
  // Another name each time, so that the mirror pod of an earlier probe is not taken for this one.
  const suffix = Math.floor(random() * 36 ** 5).toString(36);
  const name = `${PROBE_NAME}-${suffix.padStart(5, '0')}`;
  const mirror = `${name}-${nodeName}`;
  let started: { readonly path: string; readonly at: number } | null = null;

  const start = async (): Promise<string | null> => {
    if (staticPodPath === null) return 'the kubelet has no staticPodPath';
    const { directory } = await host.query({ directory: { kind: 'file', path: staticPodPath } }, { signal });
    if (directory?.type !== 'directory') return `${staticPodPath} is not a directory`;
    const path = probeFile(staticPodPath);
    try {
      const content = encodeYaml(probePod(name, image));
      await host.perform([{ kind: 'write-file', path, mode: 0o600, owner: 'root:root', content }]);
    } catch (error) {
      signal.throwIfAborted();
      return `the manifest of the probe pod cannot be written: ${messageOf(error)}`;
    }
    started = { path, at: clock.now().getTime() };
    return null;
  };

  return {
    name: `${PROBE_NAMESPACE}/${mirror}`,
    observe: async () => {
      const why = started === null ? await start() : null;
      if (why !== null) return { state: 'not-run', why };
      return readProbe(pods()?.find(({ metadata }) => metadata.namespace === PROBE_NAMESPACE && metadata.name === mirror) ?? null);
    },
    explain: async () => {
      const since = `@${Math.floor((started?.at ?? 0) / 1000)}`;
      const journal = await readJournal(host, { unit: 'kubelet', since, lines: JOURNAL_LINES, bootOnly: false }, signal);
      return journal === null ? null : podErrorIn(journal, `${PROBE_NAMESPACE}/${mirror}`);
    },
    remove: async () => {
      if (started === null) return;
      const { path } = started;
      await host
        .perform([{ kind: 'remove-file', path }])
        .catch((error: unknown) => onIssue(`the manifest ${path} of the probe pod was not removed: ${messageOf(error)}`));
    },
  };
}

/** Removes the manifest that an agent has left. */
export async function removeStaleProbe(
  { host, signal }: Pick<StaticProbePorts, 'host' | 'signal'>,
  { staticPodPath }: ProbedKubelet,
): Promise<void> {
  if (staticPodPath === null) return;
  const path = probeFile(staticPodPath);
  const { file } = await host.query({ file: { kind: 'file', path, content: false } }, { signal });
  if (file !== null) await host.perform([{ kind: 'remove-file', path }]);
}

function probeFile(staticPodPath: string): string {
  return `${staticPodPath}/${PROBE_NAME}.yaml`;
}
