import { type ReportHead, type ReportModel, runReport } from '../../fleet/report/report-model.ts';
import type { RunState } from '../../fleet/report/run-verdict.ts';
import type { RunRecord } from '../../fleet/run/run-timeline.ts';
import type { LiveView } from '../output/live-view.ts';

/** What a page shows. */
export interface PageSource {
  /** The time in which the operator answers a question is not part of a run. */
  readonly startedAt: Date;
  /** @param head its `facts.exitCode` is null while the command runs */
  model(head: ReportHead): ReportModel;
  /** Null: the run does not change anything now. */
  live(): LiveView | null;
}

/** What the page of a run over hosts shows in addition to the recorded events. */
export interface ShownRun {
  readonly command: string;
  readonly state: Exclude<RunState, 'ended'>;
  /** All hosts, in the order of the run. */
  readonly hosts: readonly string[];
  /** Number of hosts that are changed first. */
  readonly canary: number;
}

/**
 * A run over hosts as its page shows it.
 * @param view the live display of the run
 * @param earlier the plans that the operator has approved
 */
export function runSource(
  record: RunRecord,
  { command, state, hosts, canary }: ShownRun,
  view: () => LiveView,
  earlier: RunRecord['plans'] = new Map(),
): PageSource {
  const { startedAt, outcomes, plans } = record;
  return {
    startedAt,
    model: (head) =>
      runReport({
        ...head,
        command,
        progress: stateOf(head, state, view()),
        hosts,
        changing: record.progress()?.changing ?? [],
        outcomes,
        plans: new Map([...earlier, ...plans]),
        timelines: record.timelines(canary),
        gates: record.gates,
      }),
    live: () => (state === 'approval' ? null : view()),
  };
}

/** The state of a run that has this state until its end, unless it stops earlier. */
export function stateOf(
  { facts }: Pick<ReportHead, 'facts'>,
  before: Exclude<RunState, 'ended'>,
  { next }: Partial<LiveView> = {},
): RunState {
  if (facts.exitCode !== null) return 'ended';
  return before === 'changing' && next?.stopped != null ? 'stopping' : before;
}
