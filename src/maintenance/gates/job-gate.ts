import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster, KubeObject, ObjectRef } from '../../kube/cluster.ts';
import { isTemporaryError } from '../../kube/cluster-problems.ts';
import type { GateAnswer } from './batch-gates.ts';
import { type Attempt, type GatePorts, requiredCluster } from './gate-ports.ts';
import type { PreparedGate } from './rollout-settings.ts';

const POLL_MS = 2_000;
/** A failed Job is kept so long for its logs. */
export const KEPT_SECONDS = 86_400;

/**
 * Creates a Job under a generated name and waits until it has completed or failed. A completed Job is deleted with its pods, also
 * after an interruption; a failed one is kept for a day. The Job controller ends its pods at the time limit.
 * @throws AppError CLUSTER_*: the Job cannot be created or read
 */
export async function jobGate(
  { clock, signal, newId, cluster: given }: Pick<GatePorts, 'clock' | 'signal' | 'newId' | 'cluster'>,
  { manifest, namespace }: NonNullable<PreparedGate['job']>,
  { gate, batch, timeoutMs }: Attempt,
): Promise<GateAnswer> {
  const cluster = requiredCluster(given);
  const name = `${gate.name}-${(await newId()).slice(0, 8)}`;
  const job = gateJob(manifest, { namespace, name, gate: gate.name, batch: batch.number, timeoutMs });
  const ref = { apiVersion: 'batch/v1', kind: 'Job', namespace, name };
  await cluster.create(job);
  try {
    const end = await waitForJob({ clock, signal }, cluster, ref, timeoutMs);
    if (end.isPassed) await cluster.delete(ref).catch(() => null);
    return { ...end, answer: jobAnswer(ref, end) };
  } catch (error) {
    if (signal.aborted) await cluster.delete(ref).catch(() => null);
    throw error;
  }
}

/** The Job of a gate. It ends at the time limit of the gate, and is kept for a day for its logs. */
export function gateJob(
  manifest: JsonObject,
  {
    namespace,
    name,
    gate,
    batch,
    timeoutMs,
  }: { readonly namespace: string; readonly name: string; readonly gate: string; readonly batch: number; readonly timeoutMs: number },
): KubeObject {
  const metadata = isJsonObject(manifest.metadata) ? manifest.metadata : {};
  const spec = isJsonObject(manifest.spec) ? manifest.spec : {};
  const { name: _, generateName: __, labels, ...meta } = metadata;
  const ownLabels = { 'app.kubernetes.io/managed-by': 'kubeletadm', 'kubeletadm.dev/gate': gate };
  const annotations = { ...(isJsonObject(meta.annotations) ? meta.annotations : {}), 'kubeletadm.dev/batch': String(batch) };
  return {
    ...manifest,
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { ...meta, name, namespace, labels: { ...(isJsonObject(labels) ? labels : {}), ...ownLabels }, annotations },
    spec: { activeDeadlineSeconds: Math.ceil(timeoutMs / 1000), ttlSecondsAfterFinished: KEPT_SECONDS, ...spec },
  } as KubeObject;
}

/** The result as a clause about the Job. */
export function jobAnswer({ namespace, name }: ObjectRef, { isPassed, answer }: GateAnswer): string {
  return `Job ${namespace}/${name} ${answer}${isPassed ? '' : `; see kubectl logs -n ${namespace} job/${name}`}`;
}

function waitForJob(run: Pick<GatePorts, 'clock' | 'signal'>, cluster: Cluster, ref: ObjectRef, timeoutMs: number): Promise<GateAnswer> {
  return waitUntil<GateAnswer, null>(run, {
    probe: async () => {
      try {
        const end = resultOfJob(await cluster.get(ref));
        return end === null ? { pending: null } : { done: end };
      } catch (error) {
        if (!isTemporaryError(error)) throw error;
        return { pending: null };
      }
    },
    timeoutMs,
    pauseMs: () => POLL_MS,
    timedOut: () => ({ isPassed: false, answer: 'did not complete in time' }),
  });
}

/** The result of the Job of a gate; null: it runs. */
export function resultOfJob(job: KubeObject | null): GateAnswer | null {
  if (job === null) return { isPassed: false, answer: 'was deleted by others' };
  const status = isJsonObject(job.status) ? job.status : {};
  const conditions = (Array.isArray(status.conditions) ? status.conditions : []).filter(isJsonObject);
  const isTrue = (type: string): JsonObject | undefined => conditions.find((one) => one.type === type && one.status === 'True');
  if (isTrue('Complete') !== undefined) return { isPassed: true, answer: 'completed' };
  const failure = isTrue('Failed');
  if (failure === undefined) return null;
  return { isPassed: false, answer: `failed: ${failure.reason ?? 'unknown reason'}${failure.message ? `: ${failure.message}` : ''}` };
}
