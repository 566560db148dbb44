import { onAbort } from '../../base/abort.ts';
import { type AppError, type ExitCode, isAppError, type Problem } from '../../base/errors.ts';
import type { Reporter } from '../../base/reporter.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { pathNotChecked, reachKubelet } from '../../kubelet/health/observe-change.ts';
import { type ConfigSource, sameSource } from '../../kubelet/layers/config-source.ts';
import { restoredUndrained } from '../../maintenance/drain/drain-problems.ts';
import type { BatchGates } from '../../maintenance/gates/batch-gates.ts';
import type { MemberOutcome } from '../../maintenance/member-outcome.ts';
import { isRolledBack } from '../status/assess-node-config.ts';
import { assignmentReplaced, rolloutBlocked, rolloutNotRecorded, rolloutStopped, withUnchanged } from '../status/dynamic-problems.ts';
import { notFoundProblem, type RecordedRun } from '../workflows/assign-config.ts';
import { rollOut } from '../workflows/roll-out.ts';
import {
  type AssignmentSettings,
  mayRevert,
  minReadyOf,
  type RolloutListener,
  type RolloutOutcome,
  type RolloutPorts,
  type RolloutResult,
  type RolloutStage,
} from '../workflows/rollout.ts';
import type { RolloutTarget } from '../workflows/rollout-node.ts';
import { openRolloutRecord } from '../workflows/rollout-record.ts';
import { type NodeDraining, type NodeService, nodeService } from './node-service.ts';

export interface DynamicRollout extends AssignmentSettings {
  /** The nodes in their order, and the assignment of each. */
  readonly targets: readonly RolloutTarget[];
  readonly recorded: RecordedRun;
  readonly selector: string | undefined;
  /** Absent: no node is drained. */
  readonly draining?: NodeDraining | undefined;
  /** Gates and windows between batches. Absent: none. */
  readonly gates?: BatchGates | undefined;
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
  const { targets, rollout } = run;
  const names = targets.map(({ name }) => name);
  const record = await recordOf(services, cluster, run);
  const before = new Map(record?.inherited ?? []);
  const listener = run.listenerFor({ total: names.length, prefix: '' });
  const service = nodeService({ signal: services.signal, reporter: run.reporter }, cluster, run.draining);
  let now: readonly RolloutOutcome[] = [];
  const forget = onAbort(services.signal, () => reportInProgress(run.reporter, now));
  try {
    await service.announce();
    const result = await rollOut(services, cluster, targets, {
      ...run,
      listener: {
        ...listener,
        ended: (outcome) => {
          listener.ended?.(outcome);
          if (outcome.stage === 'skipped') reportSkipped(run.reporter, outcome);
          service.end(outcome);
        },
        onUnreached: (host, why) => run.reporter.report(pathNotChecked(host, why)),
        progress: (nodes) => {
          now = nodes;
          listener.progress?.(nodes);
        },
      },
      gates: gatesAfter(service.returned, run.gates),
      rules: rollout.rulesFor(names.length),
      until: rollout.wait === 'good' ? 'good' : 'trial',
      minReadyMs: minReadyOf(rollout, names.length),
      isOutOfService: service.isOutOfService,
      whyUnreached: async (name) => (await reachKubelet(cluster, name)).issue,
      begins: async (name, source) => {
        await service.begin(name);
        await record?.began(name, source);
        before.set(name, source);
      },
    });
    await service.returned();
    const problems = problemsOf(result, rollout.timeoutMs);
    const isStopped = result.isStopped || result.blocked.length > 0;
    const restored = isStopped && (result.gate?.reverts ?? rollout.onFailure === 'revert') ? revertTargets(result, before) : [];
    const reverted = restored.length === 0 ? null : await revert(services, cluster, run, { targets: restored, result, service });
    const final = finalOutcomes(result, reverted);
    run.ended(final);
    const exitCode = exitCodeOf(result, reverted, final);
    if (exitCode === 0 || exitCode === 5) await record?.finished(names);
    return { exitCode, problems: [...problems, ...(reverted === null ? [] : problemsOf(reverted, rollout.timeoutMs))] };
  } finally {
    forget();
    await service.close();
  }
}

function reportSkipped(reporter: Reporter, { name, error }: RolloutOutcome): void {
  for (const { code, message, hint } of error?.problems ?? [])
    reporter.report({ level: 'warning', code, host: name, message: `${message}. ${hint}.` });
}

/** Gates that wait for other work first. */
function gatesAfter(work: () => Promise<unknown>, gates: BatchGates | undefined): BatchGates | undefined {
  if (gates === undefined) return undefined;
  return {
    pass: async (...next) => {
      await work();
      return gates.pass(...next);
    },
  };
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
function revertTargets({ outcomes }: RolloutResult, before: ReadonlyMap<string, ConfigSource | null>): readonly RolloutTarget[] {
  const rank: Readonly<Record<RolloutStage, number>> = {
    failed: 0,
    unreachable: 1,
    'in-progress': 2,
    changed: 3,
    queued: 4,
    replaced: 5,
    skipped: 6,
  };
  const isOurs = ({ stage, isTouched, validated, desired }: RolloutOutcome): boolean =>
    stage !== 'replaced' && (isTouched || sameSource(validated.config.source.source, desired));
  return outcomes
    .filter((outcome) => before.has(outcome.name) && isOurs(outcome))
    .toSorted((a, b) => rank[a.stage] - rank[b.stage])
    .map(({ name, desired }) => ({ name, desired: before.get(name) ?? null, expected: desired }));
}

/**
 * Restores the previous assignments. Nodes with the new configuration are drained as for the change, because the same fields
 * change. Failed nodes are not: the change has drained them, and pods of a node that is down could not be evicted.
 */
async function revert(
  services: RolloutPorts,
  cluster: Cluster,
  run: DynamicRollout,
  {
    targets,
    result,
    service,
  }: { readonly targets: readonly RolloutTarget[]; readonly result: RolloutResult; readonly service: NodeService },
): Promise<RolloutResult> {
  const { reporter, rollout, draining } = run;
  const total = run.targets.length;
  const nodes = targets.map(({ name }) => name);
  reporter.report({
    level: 'warning',
    code: 'ROLLOUT_REVERTING',
    message: 'restoring the previous assignments of the nodes',
    data: { nodes },
  });
  const stages = new Map(result.outcomes.map(({ name, stage }) => [name, stage]));
  const changed = nodes.filter((name) => stages.get(name) === 'changed');
  const unknown = draining?.policy.isAllowed === false ? [] : changed.filter((name) => draining?.impactOf?.(name) === undefined);
  if (unknown.length > 0) reporter.report({ level: 'warning', ...restoredUndrained(unknown) });
  const listener = run.listenerFor({ total, prefix: 'rollback, ' });
  const reverted = await rollOut(services, cluster, targets, {
    ...run,
    recorded: { ...run.recorded, isRevert: true },
    gates: undefined,
    allowPodLoss: false,
    listener: {
      ...listener,
      ended: (outcome) => {
        listener.ended?.(outcome);
        if (outcome.stage === 'skipped') reportSkipped(reporter, outcome);
        service.end(outcome);
      },
    },
    rules: { ...rollout.rulesFor(total), canary: 0, maxFail: null, downFirst: true, order: undefined },
    until: 'trial',
    isOutOfService: service.isOutOfService,
    minReadyMs: Math.min(minReadyOf({ ...rollout, wait: 'trial' }, total), MIN_READY_BACK_MS),
    begins: async (name) => void (await (changed.includes(name) ? service.begin(name) : service.returned())),
  });
  await service.returned();
  return reverted;
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
function exitCodeOf({ outcomes, blocked, gate }: RolloutResult, reverted: RolloutResult | null, final: readonly FinalOutcome[]): ExitCode {
  if (reverted !== null)
    return final.every(
      ({ stage, outcome }) => ['rolled-back', 'unchanged', 'not-started', 'skipped'].includes(stage) || isUntouchedFailure(stage, outcome),
    )
      ? 5
      : 4;
  if (gate !== undefined) return outcomes.every(({ isTouched }) => !isTouched) ? 3 : 4;
  if (outcomes.every(({ stage }) => stage === 'changed' || stage === 'skipped')) return 0;
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
function problemsOf({ outcomes, blocked, gate }: RolloutResult, timeoutMs: number): readonly Problem[] {
  const replaced = outcomes.filter(({ stage }) => stage === 'replaced');
  const lost = outcomes.filter(({ stage }) => stage === 'failed' || stage === 'unreachable');
  const left = outcomes.filter(({ stage }) => stage === 'queued');
  const failed = outcomes.filter(({ stage }) => stage === 'failed' || stage === 'replaced').map(({ name }) => name);
  return [
    ...replaced.flatMap(({ error, validated, desired }) => error?.problems ?? [assignmentReplaced(validated.config, desired)]),
    ...lost.flatMap(
      ({ name, error, validated }) => error?.problems.map((one) => ({ host: name, ...one })) ?? [notFoundProblem(validated, timeoutMs)],
    ),
    ...(gate !== undefined
      ? [withUnchanged(gate.problem, left.length)]
      : blocked.length > 0
        ? [rolloutBlocked(left.length, blocked)]
        : left.length > 0
          ? [rolloutStopped(left.length, failed)]
          : []),
  ];
}

/**
 * The record of a rollout in the cluster; null for a single node without automatic rollback. Without
 * permission to write the record, a rollout that stops at a failure continues with a warning; one that
 * restores previous assignments does not start.
 */
async function recordOf(services: RolloutPorts, cluster: Cluster, { targets, rollout, reason, reporter }: DynamicRollout) {
  const isNeeded = mayRevert(rollout);
  if (targets.length === 1 && !isNeeded) return null;
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
    const record = await openRolloutRecord(cluster, targets, { by: services.self.name, reason, now: () => services.clock.now() });
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
