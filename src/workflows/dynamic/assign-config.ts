import {
  CONFIG_SOURCE_ANNOTATION,
  type ConfigIdentity,
  type ConfigSource,
  describeSource,
  formatConfigSource,
  formatSourceAnnotation,
  sameSource,
} from '../../core/dynamic/config-source.ts';
import type { ConfigState } from '../../core/dynamic/judge-node-config.ts';
import { type Backend, type NodeConfig, readNodeConfig } from '../../core/dynamic/node-config.ts';
import { AppError, type Problem } from '../../core/errors.ts';
import type { JsonObject } from '../../core/json.ts';
import type { KubeObject } from '../../core/kubernetes/object.ts';
import type { ClusterChange } from '../../core/plan/change.ts';
import { noSuchPayload, sourceDropped } from '../../core/problems/dynamic.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Cluster } from '../../ports/cluster.ts';
import { type JudgedNode, judgeNodes } from './read-nodes.ts';

/** What is to be assigned, as it is in the cluster now. */
export interface FoundPayload {
  readonly identity: ConfigIdentity;
  readonly text: string;
  readonly isImmutable: boolean;
}

/**
 * Reads what a source names: a kubelet that finds nothing there falls back or waits for ever.
 * @throws AppError DYNAMIC_NO_PAYLOAD (exit code 2)
 */
export async function findPayload(cluster: Cluster, source: ConfigSource): Promise<FoundPayload> {
  const { namespace, name, kubeletConfigKey } = source;
  const object = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace, name });
  if (object === null) throw noSuchPayload(source, null);
  const data = (object.data ?? {}) as Readonly<Record<string, string>>;
  const text = data[kubeletConfigKey];
  if (text === undefined) throw noSuchPayload(source, Object.keys(data));
  const { uid = '', resourceVersion = '' } = object.metadata;
  return { identity: { ...source, uid, resourceVersion }, text, isImmutable: object.immutable === true };
}

/** The patch that assigns a source to a node, or with null takes its assignment away; null: it is so already. */
export function planAssignment({ name, backend, source }: NodeConfig, wanted: ConfigSource | null): Assignment | null {
  if (source.trouble === null && sameSource(source.source, wanted)) return null;
  const ref = { apiVersion: 'v1', kind: 'Node', name };
  const patch: JsonObject =
    backend === 'native'
      ? { spec: { configSource: wanted === null ? null : formatConfigSource(wanted) } }
      : { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: wanted === null ? null : formatSourceAnnotation(wanted) } } };
  const before = source.source === null ? 'the local configuration' : describeSource(source.source);
  const because = wanted === null ? `${before} was assigned` : `it was ${before}`;
  return { kind: 'patch-object', ref, patch, because };
}

export type Assignment = Extract<ClusterChange, { kind: 'patch-object' }>;

/**
 * Patches a Node and reads back what was kept: an API server that does not know the field answers 200.
 * @throws AppError DYNAMIC_SOURCE_DROPPED, what the API server says
 */
export async function applyAssignment(cluster: Cluster, node: NodeConfig, change: Assignment, wanted: ConfigSource | null): Promise<void> {
  const kept: KubeObject = await cluster.patch(change.ref, 'merge', change.patch);
  if (sameSource(readNodeConfig(kept, node.backend).source.source, wanted)) return;
  throw new AppError(sourceDropped(node.name, cluster.server, await cluster.version()));
}

export interface WaitOptions {
  readonly clock: Clock;
  readonly signal?: AbortSignal;
  readonly timeoutMs: number;
  readonly backend?: Backend | undefined;
  /** Null: the local configuration. */
  readonly wanted: ConfigIdentity | null;
  /** How far it has to come. */
  readonly until: 'trial' | 'good';
  /** Told at each change of a node's state. */
  readonly onState?: (node: JudgedNode) => void;
}

export interface Outcome {
  readonly node: JudgedNode;
  /** It is where it was to come. */
  readonly reached: boolean;
}

const POLL_MS = 2_000;
/** Nothing changes from there by waiting. */
const FINAL: ReadonlySet<ConfigState> = new Set(['fell-back', 'looping', 'off']);
/** A node is authorized to read the ConfigMap a moment after it is assigned: the first try may fail. */
const SYNC_GRACE_MS = 60_000;

/** Waits until every node is where it was to come, or will not come there, or time is up. */
export async function waitForConfig(cluster: Cluster, names: readonly string[], options: WaitOptions): Promise<readonly Outcome[]> {
  const { clock, signal, timeoutMs, wanted, until } = options;
  const begin = clock.now().getTime();
  const said = new Map<string, string>();
  const outcomes = new Map<string, Outcome>();
  for (;;) {
    const waiting = names.filter((name) => !outcomes.has(name));
    const now = clock.now();
    for (const node of await judgeNodes(cluster, waiting, { now, backend: options.backend })) {
      const { state } = node.verdict;
      if (said.get(node.config.name) !== state) options.onState?.(node);
      said.set(node.config.name, state);
      const reached = hasReached(node, wanted, until);
      const elapsed = now.getTime() - begin;
      const isFinal = (FINAL.has(state) && isAbout(node, wanted)) || (state === 'not-synced' && elapsed > SYNC_GRACE_MS);
      if (reached || isFinal || elapsed >= timeoutMs) outcomes.set(node.config.name, { node, reached });
    }
    if (outcomes.size === names.length) return names.flatMap((name) => outcomes.get(name) ?? []);
    await clock.sleep(POLL_MS, signal);
  }
}

function hasReached({ config, verdict }: JudgedNode, wanted: ConfigIdentity | null, until: 'trial' | 'good'): boolean {
  if (wanted === null) return verdict.state === 'local';
  const { assigned } = config.status ?? {};
  // A version of the ConfigMap that is newer than the one looked at is as good: somebody edited it since.
  if (!assigned || !sameSource(assigned, wanted)) return false;
  return config.isReady && (verdict.state === 'good' || (until === 'trial' && verdict.state === 'trial'));
}

/** A node that fell back from what it had before is not lost yet. */
function isAbout({ config, verdict }: JudgedNode, wanted: ConfigIdentity | null): boolean {
  return verdict.state !== 'fell-back' || sameSource(config.status?.assigned ?? null, wanted);
}

/** Why a node is not where it was to come. */
export function outcomeProblem({ node: { config, verdict } }: Outcome, timeoutMs: number): Problem {
  const waited = `not there after ${Math.round(timeoutMs / 1000)} s`;
  const why = verdict.why ?? (config.isReady ? waited : `${waited}: ${config.troubles.join('; ')}`);
  const code = { 'fell-back': 'DYNAMIC_FELL_BACK', looping: 'DYNAMIC_CRASH_LOOP', off: 'DYNAMIC_NOT_ENABLED' }[verdict.state as string];
  return {
    host: config.name,
    code: code ?? 'DYNAMIC_NOT_REACHED',
    message: `${verdict.state}: ${why}`,
    mend: verdict.mend ?? 'See kubeletadm dynamic status and the log of the kubelet',
  };
}
