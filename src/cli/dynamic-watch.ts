import { formatProblem, isAppError } from '../base/errors.ts';
import type { Reporter } from '../base/reporter.ts';
import { namesText } from '../base/text/name-ranges.ts';
import { isRolledBack } from '../dynamic/status/assess-node-config.ts';
import { assignmentEventNotCreated } from '../dynamic/use-cases/assign.ts';
import type { FinalOutcome } from '../dynamic/use-cases/perform-rollout.ts';
import { stateText } from '../dynamic/workflows/assign-config.ts';
import { minReadyOf, type RolloutListener, type RolloutOptions, type RolloutOutcome, rolloutMember } from '../dynamic/workflows/rollout.ts';
import { estimateRestMs } from '../fleet/run/run-steps.ts';
import { describeSource } from '../kubelet/layers/config-source.ts';
import type { GateRecord } from '../maintenance/gates/batch-gates.ts';
import { nextMembers } from '../maintenance/next-step.ts';
import { nodeDocument } from './node-document.ts';
import { type LiveRow, type LiveView, liveDisplay } from './output/live-view.ts';
import type { Services } from './output/services.ts';
import type { RunPage } from './report/run-page.ts';
import { rolloutSource, type ShownRollout } from './rollout-source.ts';
import { type ResultLines, resultLines } from './run-results.ts';

interface WatchInput {
  readonly reporter: Reporter;
  /** The command, as the live display names it. */
  readonly title: string;
  readonly rollout: RolloutOptions;
  /** Results are events: nothing is folded. */
  readonly asEvents: boolean;
  /** Shows the rollout; null: none. */
  readonly page: RunPage | null;
}

/** Time limits of a node, in milliseconds. */
interface RolloutLimits {
  readonly timeoutMs: number;
  readonly minReadyMs: number;
  /** The rollout waits for the end of the trials. */
  readonly waitsForTrial: boolean;
}

/** Observes a rollout and, after a failure, its rollback. */
interface RolloutWatch {
  /** @param part `prefix` precedes the numbers of batches */
  listenerFor(part: { readonly total: number; readonly prefix: string }): RolloutListener;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** The gates that have ended. */
  gates(): readonly GateRecord[];
  /** The final state of all nodes. */
  ended(final: readonly FinalOutcome[]): void;
  /** Erases the live display and prints the remaining results; may be called twice. */
  close(): void;
}

/**
 * Reports the progress of a rollout. On a terminal a live display shows the nodes in progress; the results of a rollout
 * over several nodes are one line for equal nodes, and each step of a node is shown with `-v 1`. Without a terminal,
 * each step is a line.
 */
export function watchRollout(
  services: Pick<Services, 'clock' | 'output'>,
  { reporter, title, rollout, asEvents, page }: WatchInput,
): RolloutWatch {
  const { clock, output } = services;
  const now = (): number => clock.now().getTime();
  const { timeoutMs, wait } = rollout;
  const none = { ...NOTHING, title, startedAt: now() };
  const limitsOf = (minReadyMs: number): RolloutLimits => ({ timeoutMs, minReadyMs, waitsForTrial: wait === 'good' });
  let state: RolloutState = { ...none, limits: limitsOf(0) };
  let results: ResultLines | null = null;
  const view = (): LiveView => rolloutView(state, now());
  const display = liveDisplay(services, view);
  page?.show(rolloutSource(title, none.startedAt, { shown: () => state, view }));
  const folds = !asEvents && output.status !== undefined && (reporter.verbosity ?? 0) === 0;
  return {
    startedAt: none.startedAt,
    gates: () => state.gates,
    listenerFor: ({ total, prefix }) => {
      // A rollback follows the gates of the rollout.
      state = { ...none, gates: state.gates, limits: limitsOf(minReadyOf(rollout, total)) };
      results?.close();
      results = folds && total > 1 ? resultLines(reporter, { total, folds, noun: 'nodes' }) : null;
      const lines = results;
      const every = reportingListener(reporter, { total, prefix });
      const listener = lines === null ? every : { ...every, ...foldingListener(lines, now) };
      return {
        ...listener,
        starts: (rules) => {
          state = { ...state, rules };
        },
        batch: (batch) => {
          lines?.close();
          const batches = new Map([...state.batches, ...batch.names.map((name) => [name, batch] as const)]);
          state = { ...state, batches, batch: `${prefix}batch ${batch.number}${batch.isCanary ? ' (canary)' : ''}` };
          listener.batch?.(batch);
        },
        ended: (outcome) => {
          state = { ...state, endedAt: new Map([...state.endedAt, [outcome.name, now()]]) };
          listener.ended?.(outcome);
        },
        gate: (gate) => {
          state = { ...state, gates: [...state.gates, gate] };
        },
        progress: (nodes) => {
          state = { ...state, nodes };
        },
      };
    },
    ended: (final) => {
      state = { ...state, final };
    },
    close: () => {
      display.close();
      results?.close();
    },
  };
}

/** A rollout that has not started. */
const NOTHING = { rules: null, nodes: [], batch: '', batches: new Map(), endedAt: new Map(), gates: [], final: null };

/** Keeps updated nodes to print equal ones together. Failed nodes are part of the display and the recap. */
function foldingListener(lines: ResultLines, now: () => number): RolloutListener {
  return {
    assigned: () => undefined,
    state: () => undefined,
    ended: ({ name, stage, beganAt }) => {
      if (stage !== 'changed') return;
      lines.add({ level: 'info', code: 'ROLLOUT_NODE', host: name, text: ENDED.changed, durationMs: now() - beganAt });
    },
  };
}

function reportingListener(reporter: Reporter, { total, prefix }: { readonly total: number; readonly prefix: string }): RolloutListener {
  const print = (code: string, message: string, more: Partial<Parameters<Reporter['report']>[0]> = {}): void =>
    reporter.report({ level: 'info', code, message, ...more });
  return {
    batch: ({ number, names, isCanary, down }) => {
      if (total === 1) return;
      const batch = `${prefix}batch ${number}`;
      const count = `${names.length} ${names.length === 1 ? 'node' : 'nodes'}`;
      const others = down.length === 0 ? '' : `; down: ${namesText(down)}`;
      const data = { batch: number, nodes: names, canary: isCanary, down };
      print('ROLLOUT_BATCH', `${batch}${isCanary ? ' (canary)' : ''}, ${count}: ${namesText(names)}${others}`, { data });
    },
    assigned: (host, desired, isNew) => {
      const what = desired === null ? 'reset' : `assigned ${describeSource(desired)}`;
      print('DYNAMIC_ASSIGNED', isNew ? what : `unchanged: already ${what}`, { host });
    },
    onEventNotCreated: (host, error) => reporter.report(assignmentEventNotCreated(host, error)),
    state: (node) => {
      const { why } = node.verdict;
      // A node without an assignment has nothing else to report.
      const state = node.verdict.state === 'local' ? 'uses its local configuration' : stateText(node);
      // The error of a single node, which follows, has the reason.
      const isRepeated = total === 1 && isRolledBack(node.verdict);
      const text = node.verdict.state === 'rejected' ? 'has rejected the configuration' : state;
      print('DYNAMIC_STATE', isRepeated ? text : `${state}${why === null ? '' : `: ${why}`}`, {
        host: node.config.name,
        data: { ...nodeDocument(node) },
      });
    },
    ended: ({ name, stage, validated, error }) => {
      if (total === 1) return;
      const data = {
        stage,
        node: { ...nodeDocument(validated) },
        ...(error === null ? {} : { problems: error.problems.map(formatProblem) }),
      };
      print('ROLLOUT_NODE', ENDED[stage], { host: name, data });
    },
    blocked: (down) =>
      print('ROLLOUT_BLOCKED', `waiting: ${namesText(down)} ${down.length === 1 ? 'is' : 'are'} down`, { level: 'warning' }),
    recovering: (names, leftMs) => {
      const whose = names.length === 1 ? 'its kubelet' : 'their kubelets';
      print('WAITING', `waiting ${Math.ceil(leftMs / 1000)} s for ${namesText(names)}: ${whose} may be restarting after a failure`);
    },
    issue: (error) => {
      if (error === null) print('CLUSTER_ANSWERS', 'the API server is reachable again');
      else if (isAppError(error)) print(error.code, `${error.problems.map(formatProblem).join('; ')}; retrying`, { level: 'warning' });
    },
  };
}

const ENDED = {
  queued: 'not started',
  'in-progress': 'in progress',
  changed: 'changed',
  failed: 'failed',
  unreachable: 'unreachable: the node is down or deleted',
  replaced: 'replaced by the assignment of another operator',
  skipped: 'skipped',
} as const;

/** State of a rollout as the display shows it. */
interface RolloutState extends ShownRollout {
  readonly title: string;
  readonly batch: string;
  readonly limits: RolloutLimits;
}

/** The live display of a rollout. */
function rolloutView({ title, startedAt, rules, nodes, batch, endedAt, limits }: RolloutState, now: number): LiveView {
  const of = (...stages: readonly RolloutOutcome['stage'][]): readonly RolloutOutcome[] =>
    nodes.filter(({ stage }) => stages.includes(stage));
  const [waiting, active, ended] = [of('queued'), of('in-progress'), of('changed', 'failed', 'unreachable', 'replaced')];
  const down = nodes.filter(({ validated }) => !validated.config.isReady).length;
  const members = nodes.map(({ stage, validated }) => rolloutMember(validated.config, stage));
  const next = rules === null ? null : nextMembers(members, rules);
  const stopped = next?.stopped != null && waiting.length > 0 ? `no other node is started: ${next.stopped}` : null;
  return {
    title,
    startedAt,
    total: Math.max(nodes.length, 1),
    done: ended.length,
    restMs: nodes.length <= 1 ? null : estimateRestMs([...endedAt.values()], waiting.length + active.length, now),
    counts: [
      { word: 'changed', count: of('changed').length, style: 'green' },
      { word: 'failed', count: of('failed', 'replaced').length, style: 'red' },
      { word: 'unreachable', count: of('unreachable').length, style: 'yellow' },
      { word: 'down', count: down, style: 'yellow' },
    ],
    notes: [stopped ?? batch, waiting.length > 0 ? `${waiting.length} not started` : ''],
    next,
    active: active.map((node) => rowOf(node, limits)),
    failures: of('failed', 'unreachable', 'replaced').map(({ name, stage, validated, error }) => {
      const why = error?.problems[0]?.message ?? validated.verdict.why;
      return { name, text: why === null ? ENDED[stage] : `${ENDED[stage]}: ${why}` };
    }),
  };
}

function rowOf({ name, validated, beganAt, updatedSince }: RolloutOutcome, limits: RolloutLimits): LiveRow {
  const { state, why } = validated.verdict;
  const limit = { what: 'times out', at: beganAt + limits.timeoutMs };
  // Earlier versions of the agent do not report the end of the trial.
  const trialEnd = limits.waitsForTrial && state === 'trial' ? Date.parse(validated.config.report?.trialEnds ?? '') : Number.NaN;
  const deadline =
    updatedSince !== null
      ? { what: 'updated', at: updatedSince + limits.minReadyMs }
      : trialEnd < limit.at
        ? { what: 'trial ends', at: trialEnd }
        : limit;
  return { name, activity: why === null ? state : `${state}: ${why}`, since: beganAt, medianMs: null, deadline };
}
