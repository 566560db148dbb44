import type { FinalOutcome } from '../dynamic/use-cases/perform-rollout.ts';
import type { RolloutListener, RolloutOutcome } from '../dynamic/workflows/rollout.ts';
import { rolloutReport } from '../fleet/report/report-model.ts';
import type { ReportMember } from '../fleet/report/run-verdict.ts';
import type { HostTimeline, TimedPhase } from '../fleet/run/run-timeline.ts';
import type { GateRecord } from '../maintenance/gates/batch-gates.ts';
import type { RolloutRules } from '../maintenance/next-step.ts';
import type { LiveView } from './output/live-view.ts';
import { type PageSource, stateOf } from './report/run-source.ts';

/** What the page of a rollout shows. Times are milliseconds since the epoch. */
export interface ShownRollout {
  readonly startedAt: number;
  /** Null: not started. */
  readonly rules: RolloutRules | null;
  readonly nodes: readonly RolloutOutcome[];
  readonly batches: ReadonlyMap<string, Pick<Parameters<NonNullable<RolloutListener['batch']>>[0], 'number' | 'isCanary'>>;
  readonly endedAt: ReadonlyMap<string, number>;
  readonly gates: readonly GateRecord[];
  /** Null: the rollout has not ended. */
  readonly final: readonly FinalOutcome[] | null;
}

/**
 * A rollout over Nodes as its page shows it.
 * @param command `dynamic assign`
 */
export function rolloutSource(
  command: string,
  startedAt: number,
  { shown, view }: { shown(): ShownRollout; view(): LiveView },
): PageSource {
  return {
    startedAt: new Date(startedAt),
    model: (head) => {
      const now = head.endedAt.getTime();
      const rollout = shown();
      const members = rollout.final?.map(({ stage, outcome }) => ({ ...memberOf(outcome, rollout, now), state: stage }));
      return rolloutReport({
        ...head,
        command,
        progress: stateOf(head, 'changing', view()),
        gates: rollout.gates,
        members: members ?? rollout.nodes.map((node) => memberOf(node, rollout, now)),
        problems: rollout.nodes.flatMap(({ name, error }) => error?.problems.map((problem) => ({ host: name, ...problem })) ?? []),
      });
    },
    live: () => (shown().final === null ? view() : null),
  };
}

function memberOf(node: RolloutOutcome, rollout: ShownRollout, now: number): ReportMember {
  return { name: node.name, state: node.stage, timeline: timelineOf(node, rollout, now) };
}

/** The phases of a node: queued, applied by its agent, and observed until it is updated. */
function timelineOf(
  { name, stage, isTouched, beganAt, updatedSince }: RolloutOutcome,
  { startedAt, batches, endedAt }: ShownRollout,
  now: number,
): HostTimeline {
  const batch = batches.get(name);
  const end = endedAt.get(name) ?? null;
  const since = (at: number): number => Math.max(0, at - startedAt);
  const until = since(end ?? now);
  const began = batch === undefined || !isTouched ? null : since(beganAt);
  const phases: readonly TimedPhase[] =
    began === null
      ? [{ phase: 'queued', startMs: 0, endMs: until }]
      : [
          { phase: 'queued', startMs: 0, endMs: began },
          { phase: 'changing', startMs: began, endMs: updatedSince === null ? until : since(updatedSince) },
          ...(updatedSince === null ? [] : [{ phase: 'verifying' as const, startMs: since(updatedSince), endMs: until }]),
        ];
  return {
    host: name,
    phases: phases.filter(({ startMs, endMs }) => endMs > startMs),
    beganMs: began,
    confirmedMs: null,
    endedMs: end === null ? null : since(end),
    status: stage === 'queued' || stage === 'in-progress' ? null : stage === 'replaced' ? 'failed' : stage,
    isCanary: batch?.isCanary === true,
    batch: batch?.number ?? null,
  };
}
