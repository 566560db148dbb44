import type { AppError, Problem } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import { type ClusterName, type HostPlan, hasChangesOrDeferred } from '../../host/plan/document.ts';
import { foldPlans, type HostGroup } from '../../host/plan/fold.ts';
import { type FieldChange, highestImpact, type Impact } from '../../host/plan/impact.ts';
import { describeNodeSource } from '../../kubelet/effective/node-source.ts';
import { drainRefused } from '../../maintenance/drain/drain-problems.ts';
import type { GateRecord } from '../../maintenance/gates/batch-gates.ts';
import { outcomeText } from '../../maintenance/member-outcome.ts';
import type { MemberState } from '../../maintenance/next-step.ts';
import type { HostOutcome } from '../run/fleet.ts';
import { problemsOf } from '../run/fleet-failure.ts';
import { type HostTimeline, isRollingBack, slowLimitMs } from '../run/run-timeline.ts';
import type { HostCertificate, HostStatusRow } from '../use-cases/fleet-status.ts';
import { type ReportMember, type RunState, runVerdict, type Verdict } from './run-verdict.ts';
import { type SharedProblem, STATUS_LEVELS, statusProblems, statusVerdict } from './status-verdict.ts';

/** The content of a report (`--report`) and of a live page (`--serve`), without any format. Secrets are masked as in the plan document. */
export interface ReportModel {
  /** `plan`, `apply`, `fleet status`, `upgrade node`. */
  readonly command: string;
  /** The fleet file or saved plan, as named by the user; empty: none. */
  readonly subject: string;
  readonly noun: 'host' | 'node';
  /** Null: unknown. */
  readonly cluster: ClusterName | null;
  readonly facts: ReportFacts;
  readonly verdict: Verdict;
  readonly startedAt: Date;
  readonly endedAt: Date;
  /** Number of hosts per result, in the order of the first host. */
  readonly counts: ValueDistribution['entries'];
  /** Null: no running kubelet is changed. */
  readonly highestImpact: Impact | null;
  readonly problems: readonly SharedProblem[];
  /** The hosts or Nodes of a run, in its order. */
  readonly members: readonly ReportMember[];
  readonly matrix: FieldMatrix;
  readonly groups: readonly HostGroup[];
  /** `slowLimitMs`: hosts whose change took longer are slow. */
  readonly timeline: { readonly totalMs: number; readonly hosts: readonly HostTimeline[]; readonly slowLimitMs: number } | null;
  /** The gates between batches that have ended. */
  readonly gates: readonly GateRecord[];
  readonly census: readonly ValueDistribution[];
  readonly rows: readonly HostStatusRow[];
  readonly certificates: readonly HostCertificate[];
}

/** Who ran what, and why; null: unknown or none. */
interface ReportFacts {
  /** `alice@laptop`. */
  readonly operator: string | null;
  readonly commandLine: string | null;
  readonly reason: string | null;
  /** The ID of a saved plan. */
  readonly plan: string | null;
  /** The verified signer of the plan. */
  readonly signer: string | null;
  /** Null: the command has not ended. */
  readonly exitCode: number | null;
}

export interface ValueDistribution {
  readonly title: string;
  /** The most frequent first. */
  readonly entries: readonly { readonly value: string; readonly hosts: readonly string[] }[];
  /** How bad a value is; null: not bad. Absent: no value is bad. */
  readonly levelOf?: ((value: string) => 'error' | 'warning' | null) | undefined;
}

/** The changed fields of kubelet configurations: a row for the hosts with equal changes. */
export interface FieldMatrix {
  readonly fields: readonly string[];
  readonly rows: readonly {
    readonly hosts: readonly string[];
    readonly impact: Impact | null;
    readonly changes: ReadonlyMap<string, FieldChange>;
  }[];
}

const { compare } = new Intl.Collator('en', { numeric: true });

export type ReportHead = Pick<ReportModel, 'subject' | 'cluster' | 'facts' | 'startedAt' | 'endedAt'> & {
  readonly failure: AppError | null;
};

const EMPTY = {
  highestImpact: null,
  members: [],
  matrix: { fields: [], rows: [] },
  groups: [],
  timeline: null,
  gates: [],
  census: [],
  rows: [],
  certificates: [],
};

/** A run over hosts, at any time. */
interface ReportedRun extends ReportHead, Pick<ReportModel, 'command'> {
  readonly progress: RunState;
  /** All hosts, in the order of the run, as far as known: those with a result and those with a timeline are added. */
  readonly hosts: readonly string[];
  /** The hosts that are being changed, from the connection on. */
  readonly changing: readonly string[];
  readonly outcomes: readonly HostOutcome[];
  /** The plans of hosts without a result, as far as known. */
  readonly plans: ReadonlyMap<string, HostPlan>;
  readonly timelines: readonly HostTimeline[];
  readonly gates: readonly GateRecord[];
}

/** The report of `plan`, `apply` and other runs over hosts. */
export function runReport(run: ReportedRun): ReportModel {
  const { outcomes: unsorted, plans, failure, timelines, hosts, changing, progress, ...head } = run;
  const outcomes = unsorted.toSorted((a, b) => compare(a.host, b.host));
  const groups = foldPlans(plansToShow(outcomes, plans));
  const members = membersOf(run);
  const impact = highestImpact(groups.flatMap(({ changes }) => changes.map(({ impact }) => impact as Impact | undefined)));
  return {
    ...EMPTY,
    ...head,
    noun: 'host',
    verdict: runVerdict({ command: head.command, noun: 'host', members, progress, failure, impact }),
    counts: progress === 'ended' ? censusOf(outcomes.map(({ host, status }) => [outcomeText(status), host])) : countsOf(members),
    highestImpact: impact,
    problems: sharedProblems(failure?.problems ?? problemsOf(outcomes), outcomes),
    members,
    matrix: matrixOf(groups),
    groups,
    timeline: timelineOf(head, timelines),
  };
}

/** The plans with changes by name of the host; a host with a result has the plan of its result. */
function plansToShow(outcomes: readonly HostOutcome[], plans: ReportedRun['plans']): readonly HostPlan[] {
  const known = new Map(plans);
  for (const { host, plan, status } of outcomes) {
    if (status === 'unchanged') known.delete(host);
    else if (plan !== null) known.set(host, plan.host);
  }
  const sorted = [...known.values()].toSorted((a, b) => compare(a.name, b.name));
  return sorted.flatMap((plan) => {
    if (!hasChangesOrDeferred(plan)) return [];
    // The sources of the fields name the host.
    const { origins: _, ...host } = plan;
    return [host];
  });
}

/** The report of a rollout over Nodes. */
export function rolloutReport(
  run: ReportHead &
    Pick<ReportModel, 'command' | 'members' | 'gates'> & { readonly progress: RunState; readonly problems: readonly Problem[] },
): ReportModel {
  const { failure, progress, problems, ...head } = run;
  const { members, command } = head;
  return {
    ...EMPTY,
    ...head,
    noun: 'node',
    verdict: runVerdict({ command, noun: 'node', members, progress, failure, impact: null }),
    counts: countsOf(members),
    problems: sharedProblems(failure?.problems ?? problems, []),
    timeline: timelineOf(
      head,
      members.flatMap(({ timeline }) => timeline ?? []),
    ),
  };
}

/** The chart of the hosts, if one was changed. */
function timelineOf(
  { startedAt, endedAt }: Pick<ReportModel, 'startedAt' | 'endedAt'>,
  timelines: readonly HostTimeline[],
): ReportModel['timeline'] {
  if (timelines.every(({ beganMs }) => beganMs === null)) return null;
  return { totalMs: Math.max(1, endedAt.getTime() - startedAt.getTime()), hosts: timelines, slowLimitMs: slowLimitMs(timelines) };
}

function membersOf({ hosts, changing, outcomes, timelines }: ReportedRun): readonly ReportMember[] {
  const byName = new Map(timelines.map((timeline) => [timeline.host, timeline]));
  const states = new Map<string, MemberState>([
    ...changing.map((host) => [host, 'in-progress'] as const),
    ...outcomes.map(({ host, status }) => [host, status] as const),
  ]);
  const names = new Set([...hosts, ...states.keys(), ...byName.keys()]);
  return [...names].map((name) => {
    const timeline = byName.get(name) ?? null;
    const isFailing = timeline !== null && isRollingBack(timeline);
    return { name, timeline, state: isFailing ? 'rolling-back' : (states.get(name) ?? presentState(timeline)) };
  });
}

function presentState(timeline: HostTimeline | null): MemberState {
  if (timeline === null) return 'waiting';
  if (timeline.status !== null) return timeline.status;
  const phase = timeline.phases.at(-1)?.phase ?? 'planning';
  return phase === 'planning' ? 'inspecting' : phase === 'queued' ? 'queued' : 'in-progress';
}

/** Number of members per state. Members whose turn has not come are counted together, inspected or not. */
function countsOf(members: readonly ReportMember[]): ValueDistribution['entries'] {
  return censusOf(members.map(({ name, state }) => [(state === 'waiting' ? 'queued' : state).replaceAll('-', ' '), name]));
}

export function statusReport(status: ReportHead & Pick<ReportModel, 'rows' | 'certificates'>): ReportModel {
  const { rows: unsorted, certificates, failure, ...head } = status;
  const rows = unsorted.toSorted((a, b) => compare(a.host, b.host));
  const table = (
    title: string,
    textOf: (row: HostStatusRow) => string | null,
    levelOf?: (row: HostStatusRow) => 'error' | 'warning' | null,
  ): ValueDistribution => {
    const shownOf = (row: HostStatusRow): string => textOf(row) ?? 'unknown';
    const levels = new Map(rows.map((row) => [shownOf(row), levelOf?.(row) ?? null]));
    const entries = censusOf(rows.map((row) => [shownOf(row), row.host])).toSorted((a, b) => b.hosts.length - a.hosts.length);
    return { title, entries, ...(levelOf === undefined ? {} : { levelOf: (value: string) => levels.get(value) ?? null }) };
  };
  const known = { rows, certificates, now: head.endedAt };
  const problems = [...sharedProblems(failure?.problems ?? [], []), ...statusProblems(known)];
  return {
    ...EMPTY,
    ...head,
    command: 'fleet status',
    noun: 'host',
    verdict: statusVerdict(known, failure),
    counts: censusOf(rows.map(({ host, reachable }) => [reachable ? 'reachable' : 'unreachable', host])),
    problems: problems.toSorted((a, b) => Number(a.severity === 'warning') - Number(b.severity === 'warning')),
    census: [
      table('Kubelet version', ({ kubelet }) => kubelet),
      table('Health of the kubelet', ({ health }) => health, STATUS_LEVELS.health),
      table('Status of the Node', ({ node }) => node, STATUS_LEVELS.node),
      table('Drift from the fleet file', ({ drift }) => drift, STATUS_LEVELS.drift),
      table('Source of the configuration', ({ source }) => (source === null ? null : describeNodeSource(source))),
      table('Configuration (SHA-256 of config.yaml)', ({ config }) => config),
    ],
    rows,
    certificates: certificates.toSorted((a, b) => timeOf(a) - timeOf(b) || compare(a.host, b.host)),
  };
}

/** Certificates that cannot be read come first. */
function timeOf({ notAfter }: HostCertificate): number {
  return notAfter?.getTime() ?? 0;
}

function censusOf(pairs: readonly (readonly [value: string, host: string])[]): ValueDistribution['entries'] {
  return [...groupBy(pairs, ([value]) => value)].map(([value, same]) => ({ value, hosts: same.map(([, host]) => host) }));
}

/** Equal problems of several hosts become one: first the drains that were or would be refused, then errors, then warnings. */
function sharedProblems(errors: readonly Problem[], outcomes: readonly HostOutcome[]): readonly SharedProblem[] {
  const warnings = outcomes.flatMap(({ host, plan }): readonly Problem[] => {
    const ofPhases = plan?.host.phases.flatMap((phase) => phase.plan.warnings ?? []) ?? [];
    const isBlocked = plan?.drain?.state === 'blocked';
    return [...(plan?.warnings ?? []), ...ofPhases].flatMap(({ code, message, field }) =>
      isBlocked && code === 'DRAIN_FORECAST' ? [] : [{ host, severity: 'warning', code, message, path: field }],
    );
  });
  const rank = (problem: Problem): number => (isWarning(problem) ? 2 : problem.code === 'DRAIN_BLOCKED' ? 0 : 1);
  const sorted = [...errors, ...warnings].toSorted((a, b) => rank(a) - rank(b));
  const all = [...outcomes.flatMap(blockedDrains), ...sorted];
  return [...groupBy(all, ({ host: _, ...problem }) => JSON.stringify(problem)).values()].map((same) => {
    const [{ host: _, ...problem }] = same as [Problem];
    const hosts = [...new Set(same.flatMap(({ host }) => host ?? []))];
    return { severity: isWarning(problem) ? 'warning' : 'error', problem, hosts };
  });
}

/** Why the drain of a planned host would be refused, with what frees it. */
function blockedDrains({ host, plan }: HostOutcome): readonly Problem[] {
  const drain = plan?.drain;
  if (drain === undefined) return [];
  const problems = drainRefused({ nodes: [drain] })?.problems ?? [];
  return problems.map(({ message, hint }) => ({
    host,
    severity: 'warning',
    code: 'DRAIN_FORECAST',
    message: `Node ${drain.node}: ${message}`,
    hint,
  }));
}

function isWarning({ severity }: Problem): boolean {
  return severity === 'warning';
}

/** The changed fields of a group; of a plan document, a stable interface. */
function fieldsOf({ changes }: HostGroup): readonly FieldChange[] {
  return changes.flatMap(({ fields }) => (fields as unknown as readonly FieldChange[] | undefined) ?? []);
}

function matrixOf(groups: readonly HostGroup[]): FieldMatrix {
  const changing = groups.filter((group) => fieldsOf(group).length > 0);
  const rows = [...groupBy(changing, (group) => JSON.stringify(fieldsOf(group))).values()].map((same) => {
    const fields = fieldsOf(same[0] as HostGroup);
    return {
      hosts: same.flatMap(({ hosts }) => hosts).sort(compare),
      impact: highestImpact(fields.map(({ impact }) => impact)),
      changes: new Map(fields.map((each) => [each.field, each])),
    };
  });
  return {
    fields: [...new Set(rows.flatMap(({ changes }) => [...changes.keys()]))].sort(),
    rows: rows.toSorted((a, b) => b.hosts.length - a.hosts.length),
  };
}
