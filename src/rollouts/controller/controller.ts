import { type AppError, isAppError } from '../../base/errors.ts';
import { type JsonObject, jsonEqual } from '../../base/json.ts';
import { assessNodeConfig } from '../../dynamic/status/assess-node-config.ts';
import { type NodeConfig, readNodeConfig } from '../../dynamic/status/node-config.ts';
import { eventsByNode } from '../../dynamic/workflows/read-nodes.ts';
import { openRolloutRecord } from '../../dynamic/workflows/rollout-record.ts';
import type { HttpsClient } from '../../kube/https-client.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type ConfigSource, sameSource } from '../../kubelet/layers/config-source.ts';
import { cordonOwner, isCordoned } from '../../maintenance/node-hold.ts';
import { type Rollout, readRollout, rolloutRef } from '../api/rollout.ts';
import { checkKey, type NodeCheck, type Observed, type ObservedNode, sourceOfText, sourceText } from '../reconcile/observed.ts';
import { type Decision, reconcile } from '../reconcile/reconcile.ts';
import { mergePatch } from '../reconcile/status.ts';
import { GateAttempts } from './attempt-gates.ts';
import { type ChangePorts, holdOf, NodeChanges } from './change-nodes.ts';
import { checkNodes } from './check-nodes.ts';
import type { Leadership } from './lease.ts';
import type { ControllerMetrics } from './metrics.ts';
import { removeMarks } from './planned-marks.ts';
import { reportError } from './report-error.ts';
import { ensureRevision, revisionOf } from './revision.ts';
import { type Selection, selectNodes } from './select.ts';

/** The objects of the cluster, as the watches have delivered them. */
export interface ClusterView {
  readonly rollouts: readonly KubeObject[];
  readonly nodes: readonly KubeObject[];
  /** Configuration Events of kubelets. */
  readonly events: readonly KubeObject[];
}

/** A `ClusterView` by the names of Nodes. */
interface ViewByNode {
  readonly nodes: ReadonlyMap<string, KubeObject>;
  readonly events: ReturnType<typeof eventsByNode>;
}

interface ControllerOptions {
  /** The system time, also if it was changed. */
  readonly systemTime: () => Date;
  readonly web: HttpsClient;
  readonly metrics: Pick<ControllerMetrics, 'show' | 'reconciled'>;
  /** Namespace of the ConfigMaps of overlays, which agents may read, and of the revisions. */
  readonly namespace: string;
  /** Called when something has changed that the watches do not report. */
  readonly wake: () => void;
}

/** On a Node: the controller that took over its change. Writing it invalidates late writes of the previous controller. */
const LEADER_ANNOTATION = 'kubeletadm.dev/rollout-leader';
/** Of rollouts with `deletionPolicy: Reset`. */
export const FINALIZER = 'kubeletadm.dev/reset';
/** A payload that does not exist, or a failed request, is tried again after this time. */
const RETRY_MS = 10_000;
/** A refused configuration is validated again after this time. */
const RECHECK_MS = 60_000;
const NO_FINDING: NodeCheck = { refusal: null, impact: null };

/** What the leader keeps in memory for a rollout. All of it may be lost. */
interface Memory {
  readonly changes: NodeChanges;
  readonly gates: GateAttempts;
  /** By `checkKey`, for this generation. */
  readonly checks: Map<string, NodeCheck & { readonly at: number }>;
  /** By `checkKey`, for all generations: a revert drains the nodes that the change has drained. */
  readonly impacts: Map<string, NodeCheck['impact']>;
  generation: number;
  isChecking: boolean;
  /** The latest object that this controller wrote: the watch may lag behind. */
  latest: KubeObject | null;
  ensured: { readonly revision: string; readonly refusal: Observed['refusal']; readonly at: number } | null;
  record:
    | (Awaited<ReturnType<typeof openRolloutRecord>> & { readonly revision: string; readonly previous: Map<string, ConfigSource | null> })
    | null;
}

/**
 * Acts on all rollouts as long as its process is the leader.
 *
 * Two controllers never act at once, also if a process is stopped for longer than its Lease:
 * 1. A node is changed only after the status of its rollout records it. This write requires the version of the object that the
 *    decision is based on.
 * 2. A new leader first writes its identity to the status, so that status writes of the previous one are rejected, and to each Node
 *    in progress that does not have its assignment yet, so that assignments that were sent late are rejected. It counts the recorded
 *    nodes as unavailable.
 * 3. A write that is rejected is repeated only by a process that holds the Lease.
 */
export class RolloutController {
  readonly #ports: ChangePorts;
  readonly #leadership: Leadership;
  readonly #options: ControllerOptions;
  readonly #memory = new Map<string, Memory>();
  readonly #background = new Set<Promise<void>>();
  readonly #configs = new WeakMap<KubeObject, NodeConfig>();
  /** The validations to start after a step: they take processor time, and decisions about other rollouts do not wait for them. */
  readonly #checks: (() => void)[] = [];
  /** The nodes that each rollout will drain, by the id of its cordons; null: not known yet. */
  readonly #drains = new Map<string, ReadonlySet<string> | null>();
  #unmarking: Promise<void> | null = null;

  constructor(ports: ChangePorts, leadership: Leadership, options: ControllerOptions) {
    this.#ports = ports;
    this.#leadership = leadership;
    this.#options = options;
  }

  /**
   * Decides and acts once for each rollout.
   * @returns time until the next step without an event, in milliseconds
   */
  async step(view: ClusterView): Promise<number> {
    const { reporter } = this.#ports;
    const objects = view.rollouts.map((object) => newer(object, this.#memory.get(object.metadata.uid ?? '')?.latest ?? null));
    const rollouts = objects.flatMap((object) => {
      const read = readRollout(object);
      if ('rollout' in read) return [read.rollout];
      reporter.report({
        level: 'warning',
        code: 'ROLLOUT_INVALID',
        message: `KubeletConfigRollout ${object.metadata.name}: ${read.errors.join('; ')}`,
      });
      return [];
    });
    const present = new Set(rollouts.map(({ uid }) => uid));
    for (const [uid, { changes }] of this.#memory) {
      if (present.has(uid)) continue;
      this.#memory.delete(uid);
      const ending = changes.close().finally(() => this.#background.delete(ending));
      this.#background.add(ending);
    }
    const { metrics } = this.#options;
    metrics.show(rollouts);
    let requeueMs = RETRY_MS;
    const seen = { nodes: new Map(view.nodes.map((node) => [node.metadata.name, node])), events: eventsByNode(view.events) };
    this.#drains.clear();
    for (const selection of selectNodes(rollouts, view.nodes)) {
      this.#drains.set(holdOf(selection.rollout), null);
      const startedAt = this.#steadyMs();
      try {
        requeueMs = Math.min(requeueMs, (await this.#reconcile(selection, seen)) ?? RETRY_MS);
      } catch (error) {
        if (!isAppError(error) || error.code === 'LEASE_LOST') throw error;
        // The object was changed meanwhile: the watch delivers it.
        if (error.code !== 'CLUSTER_CONFLICT' && error.code !== 'CLUSTER_NOT_FOUND') this.#report(error, selection.rollout);
      } finally {
        metrics.reconciled((this.#steadyMs() - startedAt) / 1000);
      }
    }
    this.#unmarking ??= removeMarks(this.#ports.cluster, view.nodes, new Map(this.#drains)).finally(() => (this.#unmarking = null));
    for (const start of this.#checks.splice(0)) start();
    return requeueMs;
  }

  #report(error: AppError, { name }: Rollout): void {
    reportError(this.#ports.reporter, error, { subject: `KubeletConfigRollout ${name}: ` });
  }

  #steadyMs(): number {
    const { clock } = this.#ports;
    return clock.steadyMs?.() ?? clock.now().getTime();
  }

  /** Ends all changes; those of nodes continue with the next leader. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#background, ...[...this.#memory.values()].map(({ changes }) => changes.close())]);
  }

  /** Resolves when no change or check is being executed. */
  async settled(): Promise<void> {
    const memories = [...this.#memory.values()];
    await Promise.all([
      this.#unmarking,
      ...this.#background,
      ...memories.flatMap(({ changes, gates }) => [changes.settled(), gates.settled()]),
    ]);
  }

  /** A watch keeps the object of an unchanged Node. Steps are frequent, because all kubelets send heartbeats. */
  #configOf(node: KubeObject): NodeConfig {
    const known = this.#configs.get(node);
    if (known !== undefined) return known;
    const config = readNodeConfig(node);
    this.#configs.set(node, config);
    return config;
  }

  async #reconcile({ rollout: given, names, refusal }: Selection, view: ViewByNode): Promise<number | null> {
    if (given.isDeleted && !given.finalizers.includes(FINALIZER)) return null;
    const memory = this.#memory.get(given.uid) ?? (await this.#takeOver(given, view));
    const rollout = await this.#withFinalizer(latestOf(given, memory), memory);
    this.#forgetChecks(rollout, memory);
    const revision = revisionOf(rollout, this.#options.namespace);
    const unusable = refusal ?? (await this.#ensure(rollout, revision, memory));
    const observed: Observed = {
      rollout,
      nodes: this.#observe(names, rollout, memory, view),
      revision,
      refusal: rollout.isDeleted ? null : unusable,
      checks: memory.checks,
      previous: await this.#previous(rollout, revision, memory),
      now: this.#ports.clock.now(),
      localTime: this.#options.systemTime(),
      attempt: memory.gates.last(),
    };
    const decision = reconcile(observed);
    await this.#writeStatus(rollout, decision, memory);
    this.#drains.set(holdOf(rollout), decision.drains && new Set(decision.drains));
    if (decision.isFinalized) await this.#finalize(rollout, memory);
    else this.#act(observed, decision, memory);
    if (decision.isComplete && memory.record !== null && memory.record.previous.size > 0) {
      await memory.record.finished([...memory.record.previous.keys()]);
      memory.record = null;
    }
    return decision.requeueMs;
  }

  /** Invalidates late writes of the previous leader, before anything is decided. */
  async #takeOver(rollout: Rollout, { nodes }: ViewByNode): Promise<Memory> {
    const { cluster } = this.#ports;
    const { identity } = this.#leadership;
    const latest = await this.#patchStatus(rollout, { leader: identity });
    for (const { name, state, source = '' } of rollout.status.nodes ?? []) {
      const node = nodes.get(name);
      if (state !== 'InProgress' || node === undefined) continue;
      const { source: assigned } = this.#configOf(node);
      if (assigned.issue === null && sameSource(assigned.source, sourceOfText(source))) continue;
      await cluster.patch({ apiVersion: 'v1', kind: 'Node', name }, 'merge', {
        metadata: { annotations: { [LEADER_ANNOTATION]: identity } },
      });
    }
    const { wake, web } = this.#options;
    const memory: Memory = {
      changes: new NodeChanges(this.#ports, rollout, wake),
      gates: new GateAttempts({ ...this.#ports, web }, rollout, wake),
      checks: new Map(),
      impacts: new Map(),
      generation: rollout.generation,
      isChecking: false,
      latest,
      ensured: null,
      record: null,
    };
    this.#memory.set(rollout.uid, memory);
    return memory;
  }

  async #withFinalizer(rollout: Rollout, memory: Memory): Promise<Rollout> {
    const { name, spec, finalizers, isDeleted, resourceVersion } = rollout;
    const isNeeded = spec.deletionPolicy === 'Reset';
    if (isDeleted || isNeeded === finalizers.includes(FINALIZER)) return rollout;
    const changed = isNeeded ? [...finalizers, FINALIZER] : finalizers.filter((one) => one !== FINALIZER);
    memory.latest = await this.#ports.cluster.patch(rolloutRef(name), 'merge', { metadata: { resourceVersion, finalizers: changed } });
    return rolloutOf(memory.latest) ?? rollout;
  }

  async #finalize({ name, resourceVersion, finalizers }: Rollout, memory: Memory): Promise<void> {
    const version = memory.latest?.metadata.resourceVersion ?? resourceVersion;
    const left = finalizers.filter((one) => one !== FINALIZER);
    memory.latest = await this.#ports.cluster.patch(rolloutRef(name), 'merge', {
      metadata: { resourceVersion: version, finalizers: left },
    });
  }

  async #ensure(rollout: Rollout, revision: Observed['revision'], memory: Memory): Promise<Observed['refusal']> {
    const now = this.#ports.clock.now().getTime();
    const { ensured } = memory;
    const isKnown = ensured?.revision === revision.name && (ensured.refusal === null || now - ensured.at < RETRY_MS);
    if (rollout.isDeleted) return null;
    if (isKnown) return ensured.refusal;
    const refusal = await ensureRevision(this.#ports.cluster, rollout, revision, this.#options.namespace);
    memory.ensured = { revision: revision.name, refusal, at: now };
    return refusal;
  }

  #observe(names: readonly string[], rollout: Rollout, { changes }: Memory, { nodes, events }: ViewByNode): readonly ObservedNode[] {
    const now = this.#ports.clock.now();
    return names.flatMap((name): readonly ObservedNode[] => {
      const node = nodes.get(name);
      if (node === undefined) return [];
      const { labels = {}, creationTimestamp } = node.metadata;
      const config = this.#configOf(node);
      const verdict = assessNodeConfig(config, events.get(name)?.at(-1) ?? null, now);
      const isHeld = isCordoned(node) && cordonOwner(node)?.run === holdOf(rollout);
      const createdAt = new Date(creationTimestamp ?? 0);
      return [
        { name, assessed: { config, verdict }, labels, createdAt, isHeld, isBusy: changes.isBusy(config), issue: changes.issueOf(name) },
      ];
    });
  }

  /** The assignments before the revision, which only a revert needs. */
  async #previous({ name, spec, status }: Rollout, revision: Observed['revision'], memory: Memory): Promise<Observed['previous']> {
    if (spec.onFailure !== 'Revert' && status.failedRevision !== revision.name) return new Map();
    if (memory.record?.revision !== revision.name) {
      const by = { by: `KubeletConfigRollout ${name}`, now: () => this.#ports.clock.now() };
      const opened = await openRolloutRecord(this.#ports.cluster, [{ desired: revision.source }], by);
      memory.record = { ...opened, revision: revision.name, previous: new Map(opened.inherited) };
    }
    return memory.record.previous;
  }

  async #writeStatus(rollout: Rollout, { status }: Decision, memory: Memory): Promise<void> {
    const before = rollout.status as JsonObject;
    const changed = { ...status, leader: this.#leadership.identity } as JsonObject;
    if (jsonEqual(before, changed)) return;
    memory.latest = await this.#patchStatus(rollout, mergePatch(before, changed));
  }

  #patchStatus({ name, resourceVersion }: Rollout, status: JsonObject): Promise<KubeObject> {
    return this.#ports.cluster.patch(rolloutRef(name), 'merge', { metadata: { resourceVersion }, status }, { subresource: 'status' });
  }

  #act({ rollout, revision, nodes }: Observed, { assign, drains, uncordon, gate, check }: Decision, memory: Memory): void {
    const { changes, record, impacts } = memory;
    if (drains !== null) changes.mark(revision.name, drains);
    const configs = new Map(nodes.map(({ name, assessed }) => [name, assessed.config]));
    const { drain } = rollout.spec.strategy;
    for (const change of assign) {
      const config = configs.get(change.name);
      if (config === undefined) continue;
      // A return changes the same fields as the change to the revision. Pods of a node that is down could not be evicted.
      const isReturn = config.isReady && sameSource(config.status?.active ?? null, revision.source);
      const changed = isReturn ? revision.source : change.desired;
      const impact = (changed && impacts.get(checkKey(config, changed))) ?? null;
      const isNew = record !== null && sameSource(change.desired, revision.source);
      const remember = async (name: string, before: ConfigSource | null): Promise<void> => {
        await record?.began(name, before);
        record?.previous.set(name, before);
      };
      const isRevert = rollout.status.failedRevision === revision.name;
      changes.assign(config, change, { revision: revision.name, isRevert, impact, drain, record: isNew ? remember : null });
    }
    for (const name of uncordon) changes.uncordon(name);
    if (gate !== null) memory.gates.attempt(gate);
    if (check.length === 0 || memory.isChecking) return;
    this.#checks.push(() => {
      memory.isChecking = true;
      const work = this.#check(rollout, check, configs, memory).finally(() => {
        memory.isChecking = false;
        this.#background.delete(work);
        this.#options.wake();
      });
      this.#background.add(work);
    });
  }

  /** Limits of the rollout decide about checks, and the reason of a refusal may have disappeared. */
  #forgetChecks({ generation }: Rollout, memory: Memory): void {
    const { checks } = memory;
    const now = this.#ports.clock.now().getTime();
    if (generation !== memory.generation) checks.clear();
    for (const [key, check] of checks)
      if (check.refusal !== null && now - check.at >= RECHECK_MS) checks.set(key, { ...check, isStale: true });
    memory.generation = generation;
  }

  async #check(rollout: Rollout, check: Decision['check'], configs: ReadonlyMap<string, NodeConfig>, memory: Memory): Promise<void> {
    const { cluster, signal } = this.#ports;
    const bySource = new Map(check.map(({ source }) => [sourceText(source), source]));
    for (const [text, source] of bySource) {
      const nodes = check.flatMap((one) => (sourceText(one.source) === text ? (configs.get(one.name) ?? []) : []));
      try {
        const found = await checkNodes(cluster, rollout.spec, source, nodes);
        // Edited meanwhile: the result is that of other limits.
        if (memory.generation !== rollout.generation) return;
        const at = this.#ports.clock.now().getTime();
        for (const node of nodes) {
          const [key, check] = [checkKey(node, source), found.get(node.name) ?? NO_FINDING];
          memory.checks.set(key, { ...check, at });
          memory.impacts.set(key, check.impact);
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!isAppError(error)) throw error;
        this.#report(error, rollout);
      }
    }
  }
}

function rolloutOf(object: KubeObject | null): Rollout | null {
  const read = object === null ? null : readRollout(object);
  return read !== null && 'rollout' in read ? read.rollout : null;
}

/** The rollout as this controller wrote it last, unless the watch has delivered a newer one. */
function latestOf(given: Rollout, { latest }: Memory): Rollout {
  if (latest === null || Number(latest.metadata.resourceVersion) <= Number(given.resourceVersion)) return given;
  return rolloutOf(latest) ?? given;
}

function newer(watched: KubeObject, written: KubeObject | null): KubeObject {
  const versionOf = ({ metadata }: KubeObject): number => Number(metadata.resourceVersion);
  return written !== null && versionOf(written) > versionOf(watched) ? written : watched;
}
