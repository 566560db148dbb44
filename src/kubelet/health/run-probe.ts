import { type AppError, firstMessage, isAppError } from '../../base/errors.ts';
import { isJsonObject } from '../../base/json.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { API_PAUSE, type Probed, waitUntil } from '../../base/wait-until.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isTemporaryError } from '../../kube/cluster-problems.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { refOf } from '../../kube/object.ts';
import { isProbe, readPod } from '../workload/pod.ts';
import { PROBE_NAME, probePod, readProbe } from './probe-pod.ts';
import { limitsOf } from './signals.ts';

/** What a probe pod, created through the API server, showed about the kubelet of a node. */
export type ProbeOutcome =
  | { readonly state: 'started' }
  /** The kubelet did not start the pod in time, or reported a failure. */
  | { readonly state: 'failed'; readonly pod: string; readonly why: string }
  | { readonly state: 'no-image'; readonly pod: string; readonly why: string }
  /** The pod could not be created or read, or another client deleted it. */
  | { readonly state: 'not-run'; readonly why: string };

export interface ProbeRun {
  readonly cluster: Cluster;
  /** The client for the repeated reads of the pod. Default: `cluster`. */
  readonly reads?: Cluster | undefined;
  readonly nodeName: string;
  readonly image: string;
  /** Shown in messages. */
  readonly phase: string;
  readonly timeoutMs: number;
  /** Called with each check; an error ends the probe. */
  readonly meanwhile?: () => Promise<void>;
}

/** A failure that the kubelet reports for this time ends the probe. */
const FAILED_MS = limitsOf('ssh')['probe-pod'];
/** The kubelet stops a probe pod that a killed run has left. */
const MAX_SECONDS = 300;

/**
 * Starts a probe pod on a node, waits until its container runs, and deletes the pod, also after errors and
 * interruptions. A pod that cannot be deleted is reported (PROBE_POD_LEFT).
 * @throws the signal's reason; errors of `meanwhile`
 */
export async function runProbe(context: PhaseContext, run: ProbeRun): Promise<ProbeOutcome> {
  const { clock, signal, host, reporter } = context;
  const { cluster, phase, timeoutMs, meanwhile } = run;
  const pod = podOnNode(run, clock.now());
  const probe = probeOver(run, pod, signal);
  try {
    return await waitUntil<ProbeOutcome, Pending>(
      { clock, signal, host, reporter, phase },
      {
        probe: async (elapsedMs) => {
          const probed = await probe.check(elapsedMs);
          await meanwhile?.();
          return probed;
        },
        timeoutMs,
        pauseMs: API_PAUSE,
        progressMs: 5_000,
        describe: ({ seen }, waitedMs) => `waiting for probe pod ${nameOf(pod)}, ${Math.round(waitedMs / 1000)} s: ${seen}`,
        timedOut: ({ seen, isApiError }) => (isApiError ? { state: 'not-run', why: seen } : probe.ended('failed', seen)),
      },
    );
  } finally {
    if (probe.mayExist()) await deleteProbe(context, cluster, phase, refOf(pod));
  }
}

/** Deletes the probe pods of killed runs; the static probe pod of an agent belongs to its file. */
export async function deleteStaleProbePods(
  context: PhaseContext,
  { cluster, phase }: Pick<ProbeRun, 'cluster' | 'phase'>,
  pods: readonly KubeObject[],
): Promise<void> {
  for (const pod of pods) if (isProbe(pod) && !readPod(pod).isStatic) await deleteProbe(context, cluster, phase, podRef(pod));
}

/**
 * A pause image of a node, by the images that its kubelet reports (at most 50, the largest first); null: none
 * is reported.
 */
export function pauseImageOn({ status }: KubeObject): string | null {
  const images = isJsonObject(status) && Array.isArray(status.images) ? status.images.filter(isJsonObject) : [];
  const names = images.flatMap(({ names }) => (Array.isArray(names) ? names : []));
  return (names.find((name) => typeof name === 'string' && name.includes('/pause:')) as string | undefined) ?? null;
}

interface Pending {
  readonly seen: string;
  /** The API server did not answer, so the state of the pod is unknown. */
  readonly isApiError: boolean;
}

interface Probe {
  check(elapsedMs: () => number): Promise<Probed<ProbeOutcome, Pending>>;
  ended(state: 'failed' | 'no-image', seen: string): Promise<ProbeOutcome>;
  mayExist(): boolean;
}

function probeOver({ cluster, reads = cluster }: ProbeRun, pod: KubeObject, signal: AbortSignal | undefined): Probe {
  let state: 'absent' | 'requested' | 'created' = 'absent';
  let failedAtMs: number | null = null;

  const create = async (): Promise<Probed<ProbeOutcome, Pending> | null> => {
    state = 'requested';
    try {
      await cluster.create(pod);
    } catch (error) {
      if (isTemporaryError(error)) return unreadablePod(error);
      // An earlier request was processed, and only its response was lost.
      if (!isAppError(error, 'CLUSTER_ALREADY_EXISTS')) {
        state = 'absent';
        return { done: notRun(error) };
      }
    }
    state = 'created';
    return null;
  };

  const ended: Probe['ended'] = async (how, seen) => {
    const event = await newestEvent(cluster, pod);
    const why = event === null || seen.includes(event) ? seen : `${seen}; ${event}`;
    return { state: how, pod: nameOf(pod), why };
  };

  return {
    mayExist: () => state !== 'absent',
    ended,
    check: async (elapsedMs) => {
      const refused = state === 'created' ? null : await create();
      if (refused !== null) return refused;
      let found: KubeObject | null;
      try {
        found = await reads.get(refOf(pod));
      } catch (error) {
        signal?.throwIfAborted();
        return isTemporaryError(error) ? unreadablePod(error) : { done: notRun(error) };
      }
      if (found === null) {
        state = 'absent';
        return { done: { state: 'not-run', why: `probe pod ${nameOf(pod)} was deleted by another client` } };
      }
      const result = readProbe(found);
      if (result.state === 'started') return { done: { state: 'started' } };
      if (result.state === 'starting') {
        failedAtMs = null;
        return { pending: { seen: result.seen, isApiError: false } };
      }
      failedAtMs ??= elapsedMs();
      if (elapsedMs() - failedAtMs < FAILED_MS) return { pending: { seen: result.why, isApiError: false } };
      return { done: await ended(result.state === 'unusable' ? 'no-image' : 'failed', result.why) };
    },
  };
}

function podOnNode({ nodeName, image }: ProbeRun, now: Date): KubeObject {
  // A pod's name has at most 253 characters and no empty label.
  const name = `${PROBE_NAME}-${trimTrailing(nodeName.slice(0, 200), '-.')}-${now.getTime().toString(36)}`;
  const pod = probePod({ name, image });
  return { ...pod, spec: { ...(pod.spec as object), nodeName, activeDeadlineSeconds: MAX_SECONDS } };
}

function podRef({ metadata: { namespace = '', name } }: KubeObject): ObjectRef {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name };
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
  try {
    const fieldSelector = `involvedObject.kind=Pod,involvedObject.name=${name}`;
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Event', namespace }, { fieldSelector });
    const warnings = items.filter(({ type }) => type === 'Warning');
    const [newest] = [...(warnings.length > 0 ? warnings : items)].sort((a, b) => timeOf(b) - timeOf(a));
    return newest === undefined ? null : [newest.reason, newest.message].filter(Boolean).join(': ');
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

function timeOf({ lastTimestamp, eventTime, metadata }: KubeObject): number {
  return Date.parse(String(lastTimestamp ?? eventTime ?? metadata.creationTimestamp)) || 0;
}

function unreadablePod(error: AppError): Probed<never, Pending> {
  return { pending: { seen: firstMessage(error), isApiError: true } };
}

function notRun(error: unknown): ProbeOutcome {
  if (!isAppError(error)) throw error;
  return { state: 'not-run', why: firstMessage(error) };
}
