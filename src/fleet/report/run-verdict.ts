import type { AppError } from '../../base/errors.ts';
import type { Impact } from '../../host/plan/impact.ts';
import type { MemberState } from '../../maintenance/next-step.ts';
import type { HostTimeline } from '../run/run-timeline.ts';

/** A host or Node of a run. */
export interface ReportMember {
  readonly name: string;
  readonly state: MemberState | 'rolling-back';
  /** Null: not started. */
  readonly timeline: HostTimeline | null;
}

/** The result of a command in one sentence. */
export interface Verdict {
  readonly level: 'ok' | 'warning' | 'error' | 'active';
  readonly text: string;
}

/** `approval`: the operator is asked. `stopping`: no other host is started. */
export type RunState = 'planning' | 'approval' | 'changing' | 'stopping' | 'ended';

interface RunToJudge {
  readonly command: string;
  readonly noun: 'host' | 'node';
  readonly members: readonly ReportMember[];
  readonly progress: RunState;
  readonly failure: AppError | null;
  /** The highest impact of the changes. */
  readonly impact: Impact | null;
}

/** The states of a member that has not ended. */
export const UNFINISHED: ReadonlySet<ReportMember['state']> = new Set(['waiting', 'inspecting', 'queued', 'in-progress', 'rolling-back']);
/** The results of a failed change, the worst first. */
const BROKEN = ['failed', 'not-rolled-back', 'rolling-back', 'rolled-back'] as const;
/** The results of a member that needs an action, the worst first. */
const BAD = [...BROKEN, 'refused', 'unreachable', 'replaced', 'interrupted', 'not-started', 'skipped'] as const;

/** The verdict about a run, at any time. */
export function runVerdict(run: RunToJudge): Verdict {
  const { progress, failure, members } = run;
  if (progress !== 'ended') return { level: presentLevel(run), text: presentText(run) };
  if (failure === null) return { level: 'ok', text: successText(run) };
  const bad = BAD.flatMap((state) => clauseOf(run, state));
  const why = failure.exitCode >= 128 ? 'Interrupted' : hasState(members, 'not-started') ? 'Stopped' : 'Failed';
  if (bad.length === 0) return { level: 'error', text: `${why}: ${failure.problems[0]?.message ?? 'unknown error'}.` };
  const done = ['changed', 'unchanged', 'pending'].flatMap((state) => clauseOf(run, state as ReportMember['state']));
  const broken = members.some(({ state }) => state === 'failed' || state === 'not-rolled-back');
  const level = failure.exitCode >= 128 && !broken ? 'warning' : 'error';
  return { level, text: `${why}: of ${countText(run, members.length)}, ${[...bad, ...done].join(', ')}.${safetyText(run)}` };
}

/** `3 changed`. */
function clauseOf({ members }: Pick<RunToJudge, 'members'>, state: ReportMember['state']): readonly string[] {
  const count = members.filter((member) => member.state === state).length;
  return count === 0 ? [] : [`${count} ${state.replaceAll('-', ' ')}`];
}

function hasState(members: readonly ReportMember[], state: ReportMember['state']): boolean {
  return members.some((member) => member.state === state);
}

function countText({ noun }: Pick<RunToJudge, 'noun'>, count: number): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** What is left on the members whose change did not succeed. */
function safetyText({ members }: Pick<RunToJudge, 'members'>): string {
  if (members.some(({ state }) => state === 'failed' || state === 'not-rolled-back')) return ' The failed ones need attention.';
  return hasState(members, 'rolled-back') ? ' Rolled back: the previous configuration runs again.' : '';
}

function successText(run: RunToJudge): string {
  const { members, command, impact } = run;
  if (members.length === 0) return 'Nothing to do.';
  const pending = members.filter(({ state }) => state === 'pending').length;
  if (command === 'plan' || pending > 0) {
    if (pending === 0) return `No changes: ${countText(run, members.length)} up to date.`;
    const worst = impact === null ? '' : `; highest impact: ${impact}`;
    return `${pending} of ${countText(run, members.length)} would be changed${worst}.`;
  }
  const done = (['changed', 'unchanged'] as const).flatMap((state) => clauseOf(run, state));
  return `Succeeded: ${countText(run, members.length)}, ${done.join(', ')}.`;
}

/** A failed change is an error at once; what was left out is a warning until the end. */
function presentLevel({ progress, members }: RunToJudge): Verdict['level'] {
  if (progress === 'stopping' || BROKEN.some((state) => hasState(members, state))) return 'error';
  return progress === 'changing' && BAD.some((state) => hasState(members, state)) ? 'warning' : 'active';
}

function presentText(run: RunToJudge): string {
  const { members, progress } = run;
  const left = members.filter(({ state }) => UNFINISHED.has(state)).length;
  const done = `${members.length - left} of ${countText(run, members.length)}`;
  if (progress === 'approval') {
    const pending = members.filter(({ state }) => state === 'pending').length;
    return `Planned. Waiting for the answer on the terminal: ${countText(run, pending)} would be changed.`;
  }
  if (members.length === 0) return 'Starting.';
  if (progress === 'planning') return `Planning: ${done} planned.`;
  const bad = BAD.flatMap((state) => clauseOf(run, state));
  return `${progress === 'stopping' ? 'Stopping' : 'In progress'}: ${done} done${bad.length === 0 ? '' : `, ${bad.join(', ')}`}.`;
}
