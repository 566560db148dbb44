import { onAbort } from '../../base/abort.ts';
import { type AppError, type ExitCode, isAppError, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import { applyClusterChange } from '../../host/apply.ts';
import type { Impact } from '../../host/plan/impact.ts';
import type { RunSettings } from '../../host/run-settings.ts';
import { AGENT_NAMESPACE } from '../../kube/agent-namespace.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { configMapData } from '../../kube/object.ts';
import { createNamespace } from '../../kubeadm/phases/agent-rights.ts';
import { pathNotChecked, reachKubelet } from '../../kubelet/health/observe-change.ts';
import { type ConfigSource, describeSource, parseSourceArgument, sameSource } from '../../kubelet/layers/config-source.ts';
import type { HoldRun } from '../../maintenance/drain/hold.ts';
import { type NodeHolds, nodeHolds } from '../../maintenance/drain/while-drained.ts';
import type { MemberOutcome } from '../../maintenance/member-outcome.ts';
import { appendHash } from '../signing/config-map-hash.ts';
import { isRolledBack } from '../status/assess-node-config.ts';
import { assignmentReplaced, rolloutBlocked, rolloutNotRecorded, rolloutStopped } from '../status/dynamic-problems.ts';
import { notFoundProblem } from '../workflows/assign-config.ts';
import { type RolloutTarget, rollOut } from '../workflows/roll-out.ts';
import {
  type AssignmentSettings,
  minReadyOf,
  type RolloutListener,
  type RolloutOutcome,
  type RolloutPorts,
  type RolloutResult,
  type RolloutStage,
} from '../workflows/rollout.ts';

export interface DynamicRollout extends AssignmentSettings {
  readonly names: readonly string[];
  /** Null: the assignment is removed. */
  readonly desired: ConfigSource | null;
  readonly selector: string | undefined;
  /** How nodes are drained, and the impact of the assignment on each. Absent: no node is drained. */
  readonly draining?:
    | { readonly policy: NonNullable<RunSettings['drain']>; readonly run: HoldRun; readonly impactOf?: (name: string) => Impact | null }
    | undefined;
  readonly reporter: Reporter;
  /** Creates the receiver of the events. `prefix` precedes the numbers of batches. */
  listenerFor(part: { readonly total: number; readonly prefix: string }): RolloutListener;
  /** Called with every node after the rollout, before the rollout is recorded as finished. */
  ended(final: readonly FinalOutcome[]): void;
}

/** The nodes have run their previous configuration successfully: a shorter minimum Ready time suffices. */
const MIN_READY_BACK_MS = 10_000;

/**
 * Rolls out an assignment and reports the progress. If a node failed and `--on-failure revert` is set, the
 * previous assignments are restored. An assignment that another operator made in the meantime is reported and
 * kept.
 * @returns a problem for each node that is not updated, and the exit code: 0: all nodes are updated; 4: only some are updated
 *   or restored; 5: all are restored, or the only node rejected or rolled back its configuration; 3: no node could start
 * @throws AppError the errors of the API server
 */
export async function performRollout(
  services: RolloutPorts,
  cluster: Cluster,
  run: DynamicRollout,
): Promise<{ readonly exitCode: ExitCode; readonly problems: readonly Problem[] }> {
  const { names, desired, rollout } = run;
  const record = await recordOf(services, cluster, run);
  const before = new Map(record?.inherited ?? []);
  const listener = run.listenerFor({ total: names.length, prefix: '' });
  const { draining } = run;
  const holds = draining && nodeHolds({ cluster, run: draining.run, signal: services.signal, reporter: run.reporter }, draining.policy);
  const returns = returnsOf(holds);
  let now: readonly RolloutOutcome[] = [];
  const forget = onAbort(services.signal, () => reportInProgress(run.reporter, now));
  try {
    const targets = names.map((name) => ({ name, desired }));
    const result = await rollOut(services, cluster, targets, {
      ...run,
      listener: {
        ...listener,
        ended: (outcome) => {
          listener.ended?.(outcome);
          returns.begin(outcome);
        },
        onUnreached: (host, why) => run.reporter.report(pathNotChecked(host, why)),
        progress: (nodes) => {
          now = nodes;
          listener.progress?.(nodes);
        },
      },
      rules: rollout.rulesFor(names.length),
      until: rollout.wait === 'good' ? 'good' : 'trial',
      minReadyMs: minReadyOf(rollout, names.length),
      whyUnreached: async (name) => (await reachKubelet(cluster, name)).issue,
      begins: async (name, source) => {
        // The previous nodes are in service again.
        await returns.all();
        await holds?.take(name, draining?.impactOf?.(name) ?? null);
        await record?.began(name, source);
        before.set(name, source);
      },
    });
    await returns.all();
    const problems = problemsOf(result, rollout.timeoutMs);
    const isStopped = result.isStopped || result.blocked.length > 0;
    const restored = isStopped && rollout.onFailure === 'revert' ? revertTargets(result, before, desired) : [];
    const reverted = restored.length === 0 ? null : await revert(services, cluster, run, restored);
    const final = finalOutcomes(result, reverted);
    run.ended(final);
    const exitCode = exitCodeOf(result, reverted, final);
    if (exitCode === 0 || exitCode === 5) await record?.finished(names);
    return { exitCode, problems: [...problems, ...(reverted === null ? [] : problemsOf(reverted, rollout.timeoutMs))] };
  } finally {
    forget();
    await returns.settled();
    await holds?.endAll();
  }
}

/** Returns nodes to service; an error is thrown by `all`, before the next node begins or at the end. */
function returnsOf(holds: NodeHolds | undefined) {
  const returns: Promise<void>[] = [];
  return {
    begin: (outcome: RolloutOutcome): void => {
      if (holds === undefined) return;
      const returned = holds.end(outcome.name, isProven(outcome));
      returned.catch(() => undefined);
      returns.push(returned);
    },
    all: () => Promise.all(returns),
    settled: () => Promise.allSettled(returns),
  };
}

/** Whether a node runs its new or its previous configuration for certain: otherwise it stays cordoned. */
function isProven({ stage, isTouched, validated: { verdict } }: RolloutOutcome): boolean {
  return stage === 'changed' || !isTouched || isRolledBack(verdict);
}

/** Reports the nodes in progress, which finish without this command. */
function reportInProgress(reporter: Reporter, nodes: readonly RolloutOutcome[]): void {
  const names = nodes.filter(({ stage }) => stage === 'in-progress').map(({ name }) => name);
  if (names.length === 0) return;
  const message = `${namesText(names)} ${names.length === 1 ? 'is' : 'are'} being changed and will finish without this command`;
  reporter.report({ level: 'warning', code: 'ROLLOUT_INTERRUPTED', message, data: { nodes: names } });
}

/**
 * The nodes with the assignment of the rollout and a known previous assignment; failed nodes first.
 * Assignments of other operators are excluded.
 */
function revertTargets(
  { outcomes }: RolloutResult,
  before: ReadonlyMap<string, ConfigSource | null>,
  desired: ConfigSource | null,
): readonly RolloutTarget[] {
  const rank: Readonly<Record<RolloutStage, number>> = { failed: 0, unreachable: 1, 'in-progress': 2, changed: 3, queued: 4, replaced: 5 };
  const isOurs = ({ stage, isTouched, validated }: RolloutOutcome): boolean =>
    stage !== 'replaced' && (isTouched || sameSource(validated.config.source.source, desired));
  return outcomes
    .filter((outcome) => before.has(outcome.name) && isOurs(outcome))
    .toSorted((a, b) => rank[a.stage] - rank[b.stage])
    .map(({ name }) => ({ name, desired: before.get(name) ?? null, expected: desired }));
}

function revert(services: RolloutPorts, cluster: Cluster, run: DynamicRollout, targets: readonly RolloutTarget[]): Promise<RolloutResult> {
  const { reporter, rollout } = run;
  const data = { nodes: targets.map(({ name }) => name) };
  reporter.report({ level: 'warning', code: 'ROLLOUT_REVERTING', message: 'restoring the previous assignments of the nodes', data });
  return rollOut(services, cluster, targets, {
    ...run,
    allowPodLoss: false,
    listener: run.listenerFor({ total: run.names.length, prefix: 'rollback, ' }),
    rules: { ...rollout.rulesFor(run.names.length), canary: 0, maxFail: null, downFirst: true },
    until: 'trial',
    minReadyMs: Math.min(minReadyOf({ ...rollout, wait: 'trial' }, run.names.length), MIN_READY_BACK_MS),
  });
}

export interface FinalOutcome {
  /** That of the rollout, or of its rollback. */
  readonly stage: MemberOutcome;
  readonly outcome: RolloutOutcome;
}

function finalOutcomes({ outcomes }: RolloutResult, reverted: RolloutResult | null): readonly FinalOutcome[] {
  const back = new Map(reverted?.outcomes.map((outcome) => [outcome.name, outcome]));
  return outcomes.map((outcome): FinalOutcome => {
    const restored = back.get(outcome.name);
    if (restored !== undefined) {
      const stage = restored.stage === 'changed' ? 'rolled-back' : restored.stage === 'replaced' ? 'replaced' : 'not-rolled-back';
      return { stage, outcome: restored };
    }
    if (outcome.stage === 'queued') return { stage: 'not-started', outcome };
    return { stage: outcome.stage === 'changed' && !outcome.isTouched ? 'unchanged' : outcome.stage, outcome };
  });
}

/** Exit code 5 requires that every node has its previous assignment. */
function exitCodeOf({ outcomes, blocked }: RolloutResult, reverted: RolloutResult | null, final: readonly FinalOutcome[]): ExitCode {
  if (reverted !== null)
    return final.every(
      ({ stage, outcome }) => ['rolled-back', 'unchanged', 'not-started'].includes(stage) || isUntouchedFailure(stage, outcome),
    )
      ? 5
      : 4;
  if (outcomes.every(({ stage }) => stage === 'changed')) return 0;
  if (blocked.length > 0 && outcomes.every(({ isTouched }) => !isTouched)) return 3;
  const [only, ...others] = outcomes;
  if (others.length > 0 || only === undefined) return 4;
  if (only.error !== null) return only.error.exitCode;
  return isRolledBack(only.validated.verdict) ? 5 : 1;
}

function isUntouchedFailure(stage: MemberOutcome, { isTouched, error }: RolloutOutcome): boolean {
  return stage === 'failed' && !isTouched && error !== null;
}

/** A problem for each failed node, and one for all nodes that were not started. */
function problemsOf({ outcomes, blocked }: RolloutResult, timeoutMs: number): readonly Problem[] {
  const replaced = outcomes.filter(({ stage }) => stage === 'replaced');
  const lost = outcomes.filter(({ stage }) => stage === 'failed' || stage === 'unreachable');
  const left = outcomes.filter(({ stage }) => stage === 'queued');
  const failed = outcomes.filter(({ stage }) => stage === 'failed' || stage === 'replaced').map(({ name }) => name);
  return [
    ...replaced.flatMap(({ error, validated, desired }) => error?.problems ?? [assignmentReplaced(validated.config, desired)]),
    ...lost.flatMap(
      ({ name, error, validated }) => error?.problems.map((one) => ({ host: name, ...one })) ?? [notFoundProblem(validated, timeoutMs)],
    ),
    ...(blocked.length > 0 ? [rolloutBlocked(left.length, blocked)] : left.length > 0 ? [rolloutStopped(left.length, failed)] : []),
  ];
}

/**
 * The record of a rollout in the cluster; null for a single node without automatic rollback. Without
 * permission to write the record, a rollout that stops at a failure continues with a warning; one that
 * restores previous assignments does not start.
 */
async function recordOf(services: RolloutPorts, cluster: Cluster, { names, desired, rollout, reason, reporter }: DynamicRollout) {
  const isNeeded = rollout.onFailure === 'revert';
  if (names.length === 1 && !isNeeded) return null;
  let isWarned = false;
  const unlessRefused = async (work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (error) {
      if (isNeeded || !isAppError(error)) throw error;
      if (!isWarned) reporter.report(warningOf(error));
      isWarned = true;
    }
  };
  try {
    const record = await openRolloutRecord(cluster, desired, { by: services.self.name, reason, now: () => services.clock.now() });
    return {
      inherited: record.inherited,
      began: (name: string, previous: ConfigSource | null) => unlessRefused(record.began(name, previous)),
      finished: (finished: readonly string[]) => unlessRefused(record.finished(finished)),
    };
  } catch (error) {
    if (isNeeded || !isAppError(error)) throw error;
    reporter.report(warningOf(error));
    return null;
  }
}

function warningOf(error: AppError): Parameters<Reporter['report']>[0] {
  const { code, message, hint } = rolloutNotRecorded(error.problems[0]?.message ?? error.code);
  return { level: 'warning', code, message: `${message}. ${hint ?? ''}` };
}

/** Marks the ConfigMaps in which rollouts record the previous assignments of nodes. */
const ROLLOUT_LABEL = 'kubeletadm.dev/rollout';

const LOCAL = 'local';

/**
 * Opens the record of a rollout, so that any host can resume or revert it: the previous assignments of its nodes (null:
 * none), in a ConfigMap in the agents' namespace, which nodes can read but not write. A
 * record on the Node itself could be forged by the node, and a revert would then grant the node access to any
 * ConfigMap.
 * @param desired assignment of the rollout; null: none
 * @throws AppError the errors of reading it; a missing record is created with the first node. All functions throw the errors
 *   of the API server
 */
async function openRolloutRecord(
  cluster: Cluster,
  desired: ConfigSource | null,
  { by, reason, now }: { readonly by: string; readonly reason?: string | undefined; readonly now: () => Date },
) {
  const what = desired === null ? LOCAL : describeSource(desired);
  // The member name is part of the hash: runs of other versions must find the same ConfigMap.
  const name = appendHash({ name: 'rollout', data: { wanted: what } });
  const ref = { apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE, name };
  const found = await cluster.get(ref);
  const create = async (data: Readonly<Record<string, string>>): Promise<void> => {
    const annotations = {
      'kubeletadm.dev/rollout-of': what,
      'kubeletadm.dev/rollout-by': by,
      ...(reason === undefined ? {} : { 'kubeletadm.dev/rollout-reason': reason }),
      'kubeletadm.dev/rollout-at': now().toISOString(),
    };
    const metadata = { name, namespace: AGENT_NAMESPACE, labels: { [ROLLOUT_LABEL]: 'true' }, annotations };
    await cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
  };
  const write = async (node: string, text: string): Promise<void> => {
    const data = { [node]: text };
    const patch = () => cluster.patch(ref, 'merge', { data });
    try {
      await patch();
    } catch (error) {
      if (!isAppError(error, 'CLUSTER_NOT_FOUND')) throw error;
      if ((await cluster.get({ apiVersion: 'v1', kind: 'Namespace', name: AGENT_NAMESPACE })) === null)
        await unlessExists(applyClusterChange(cluster, createNamespace(AGENT_NAMESPACE)));
      if (!(await unlessExists(create(data)))) await patch();
    }
  };
  // Sequential, because concurrent writes of one object fail with conflicts.
  let last: Promise<unknown> = Promise.resolve();
  return {
    /** Assignments that an interrupted run of the same rollout recorded. */
    inherited: new Map(Object.entries(configMapData(found)).flatMap(readPrevious)),
    /** Resolves when the previous assignment of a node is recorded. */
    began: (node: string, previous: ConfigSource | null): Promise<void> => {
      const written = last.then(() => write(node, previous === null ? LOCAL : describeSource(previous)));
      last = written.catch(() => undefined);
      return written;
    },
    /** Removes the records of finished nodes, and the ConfigMap with the last one. */
    finished: async (nodes: readonly string[]): Promise<void> => {
      const now = await cluster.get(ref);
      const data = Object.fromEntries(nodes.filter((node) => Object.hasOwn(configMapData(now), node)).map((node) => [node, null]));
      if (now === null || Object.keys(data).length === 0) return;
      const kept = await cluster.patch(ref, 'merge', { data });
      if (Object.keys(configMapData(kept)).length === 0) await cluster.delete(ref);
    },
  };
}

/** Returns false if another rollout created the object first. */
async function unlessExists(creation: Promise<unknown>): Promise<boolean> {
  try {
    await creation;
    return true;
  } catch (error) {
    if (isAppError(error, 'CLUSTER_ALREADY_EXISTS')) return false;
    throw error;
  }
}

function readPrevious([node, text]: readonly [string, string]): readonly (readonly [string, ConfigSource | null])[] {
  if (text === LOCAL) return [[node, null]];
  const { source } = parseSourceArgument(text);
  return source === null ? [] : [[node, source]];
}
