import { AppError, isAppError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { API_PAUSE, type Probed, waitUntil } from '../base/wait-until.ts';
import type { PhaseContext, ProveCommit } from '../host/phase.ts';
import type { Cluster } from '../kube/cluster.ts';
import { isNodeReady, nodeIssues, readyHeartbeat } from '../kube/node-conditions.ts';
import type { KubeObject } from '../kube/object.ts';
import { type ConfigSource, describeSource } from './config-source.ts';
import { readConfigz } from './effective/configz.ts';
import { fieldsNotInForce, fieldsToShow, type KubeletReader } from './fields-in-force.ts';
import { sourceInForce } from './source-in-force.ts';

/** Evidence for a changed kubelet configuration, in addition to the kubelet's health. */
export interface KubeletProof extends KubeletReader {
  readonly nodeName: string;
  /** Command-line words, `--name=value`, which override the file. */
  readonly flags: readonly string[];
}

export interface ProvenChange {
  readonly phase: string;
  /** config.yaml; null: no previous file. */
  readonly before: string | null;
  readonly after: string;
  /** The kubelet is restarted: the status of its Node must be newer than the restart. */
  readonly restarts: boolean;
}

/** Interval between checks whether the change still waits for its confirmation. */
const CHECK_MS = 5_000;
const POLL_MS = 2_000;

/**
 * Inspects the Node before a change of its kubelet.
 * @returns a function that waits until the API server shows the change: the Node is Ready again if it was
 *   before, by a newer heartbeat, and its configz has the new values. Facts that were not visible before, or
 *   not permitted, are not required
 */
export async function prepareProof(context: PhaseContext, proof: KubeletProof, change: ProvenChange): Promise<ProveCommit> {
  const { cluster, signal, clock, host, reporter } = context;
  const before = cluster === null ? null : await inspect(cluster, proof.nodeName, context);
  if (cluster === null || before === null || !isNodeReady(before)) return async () => undefined;
  const fields = fieldsToShow(change.before, change.after, proof.flags, proof);
  return async (deadline, checkOpen) => {
    let nextCheckMs = 0;
    const probe = async (elapsedMs: () => number): Promise<Probed<string | undefined, string>> => {
      const { why, unproven } = await whyNotProven(cluster, { proof, change, before, fields });
      if (why === null) return { done: unproven };
      // A change that the host has reverted is never confirmed.
      if (elapsedMs() >= nextCheckMs) {
        nextCheckMs += CHECK_MS;
        await checkOpen();
      }
      return { pending: why };
    };
    return waitUntil(
      { clock, signal, host, reporter, phase: change.phase },
      {
        probe,
        timeoutMs: deadline - clock.now().getTime(),
        pauseMs: API_PAUSE,
        progressMs: 5_000,
        describe: (why, waitedMs) => `waiting to confirm, ${Math.round(waitedMs / 1000)} s: ${why}`,
        timedOut: (why, waitedMs) => {
          throw notProven(host.name, change.phase, why, waitedMs);
        },
      },
    );
  };
}

/** Null if the Node cannot be read: it does not exist, access is denied, or the API server does not respond within two seconds. */
async function inspect(cluster: Cluster, nodeName: string, { clock, signal }: PhaseContext): Promise<KubeObject | null> {
  return waitUntil(
    { clock, signal },
    {
      probe: async () => {
        try {
          return { done: await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName }) };
        } catch (error) {
          if (!isAppError(error)) throw error;
          return error.code === 'CLUSTER_UNREACHABLE' ? { pending: null } : { done: null };
        }
      },
      timeoutMs: POLL_MS,
      pauseMs: API_PAUSE,
      timedOut: () => null,
    },
  );
}

interface Expected {
  readonly proof: KubeletProof;
  readonly change: ProvenChange;
  readonly before: KubeObject;
  readonly fields: readonly string[];
}

interface Proof {
  /** The reason against the change; null: confirmed. */
  readonly why: string | null;
  readonly unproven?: string | undefined;
}

async function whyNotProven(cluster: Cluster, { proof, change, before, fields }: Expected): Promise<Proof> {
  const { nodeName } = proof;
  let override: ConfigSource | null;
  try {
    const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName });
    if (node === null) return { why: `Node ${nodeName} no longer exists` };
    if (!isNodeReady(node)) return { why: `Node ${nodeName}: ${nodeIssues(node).join('; ')}` };
    const heartbeat = readyHeartbeat(before);
    if (change.restarts && heartbeat !== null && readyHeartbeat(node) === heartbeat)
      return { why: `Node ${nodeName}: the kubelet has not reported Ready since its restart` };
    override = sourceInForce(node);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return { why: error.problems[0]?.message ?? error.code };
  }
  if (fields.length === 0) return { why: null };
  const shown = await readShown(cluster, proof);
  const missing = shown === null ? [] : fieldsNotInForce(shown, change.after, fields, proof);
  if (override !== null && (shown === null || missing.length > 0))
    return { why: null, unproven: overridden(nodeName, override, { shown, missing, fields }) };
  return { why: missing.length === 0 ? null : `the kubelet does not run with the new ${missing.join(', ')}` };
}

/**
 * An active ConfigMap of the kubelet or its agent replaces the file, so that a change of the file has no
 * effect.
 */
function overridden(
  nodeName: string,
  override: ConfigSource,
  {
    shown,
    missing,
    fields,
  }: { readonly shown: JsonObject | null; readonly missing: readonly string[]; readonly fields: readonly string[] },
): string {
  const what =
    shown === null
      ? `configz cannot be read, so it is unknown whether the kubelet runs with the new ${fields.join(', ')}`
      : `the kubelet does not run with the new ${missing.join(', ')}`;
  return `ConfigMap ${describeSource(override)} overrides config.yaml on Node ${nodeName}: ${what}; change the ConfigMap, or run dynamic reset ${nodeName}`;
}

/** Null if configz cannot be read through the API server: access is denied, or the kubelet is unreachable. */
async function readShown(cluster: Cluster, { nodeName, ...reader }: KubeletProof): Promise<JsonObject | null> {
  try {
    return readConfigz(await cluster.getRaw(`/api/v1/nodes/${encodeURIComponent(nodeName)}/proxy/configz`), nodeName, reader);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

function notProven(host: string, phase: string, why: string, waitedMs: number): AppError {
  const message = `${phase}: the change could not be confirmed within ${Math.round(waitedMs / 1000)}s: ${why}`;
  return new AppError({
    host,
    code: 'COMMIT_NOT_PROVEN',
    message,
    hint: 'See journalctl -u kubelet on the host. The next error reports whether the host was rolled back',
  });
}
