import type { AppError, Problem } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import type { ClusterName } from '../../host/plan/document.ts';
import { foldPlans, type HostGroup } from '../../host/plan/fold.ts';
import { type FieldChange, highestImpact, type Impact } from '../../host/plan/impact.ts';
import { describeNodeSource } from '../../kubelet/effective/node-source.ts';
import { outcomeText } from '../../maintenance/member-outcome.ts';
import type { HostOutcome } from '../run/fleet.ts';
import { type HostTimeline, slowLimitMs } from '../run/run-timeline.ts';
import type { HostCertificate, HostStatusRow } from '../use-cases/fleet-status.ts';

/** The content of a report (`--report`), without any format. Secrets are masked as in the plan document. */
export interface ReportModel {
  readonly command: 'plan' | 'apply' | 'fleet status';
  /** The fleet file or saved plan, as named by the user. */
  readonly subject: string;
  /** Null: unknown. */
  readonly cluster: ClusterName | null;
  readonly startedAt: Date;
  readonly endedAt: Date;
  /** Number of hosts per result, in the order of the first host. */
  readonly counts: ValueDistribution['entries'];
  /** Null: no running kubelet is changed. */
  readonly highestImpact: Impact | null;
  readonly problems: readonly SharedProblem[];
  readonly matrix: FieldMatrix;
  readonly groups: readonly HostGroup[];
  /** `slowLimitMs`: hosts whose change took longer are slow. */
  readonly timeline: { readonly totalMs: number; readonly hosts: readonly HostTimeline[]; readonly slowLimitMs: number } | null;
  readonly census: readonly ValueDistribution[];
  readonly rows: readonly HostStatusRow[];
  readonly certificates: readonly HostCertificate[];
}

export interface ValueDistribution {
  readonly title: string;
  /** The most frequent first. */
  readonly entries: readonly { readonly value: string; readonly hosts: readonly string[] }[];
}

/** A problem that several hosts may share; without a host: of the run. */
export interface SharedProblem {
  readonly severity: 'error' | 'warning';
  readonly hosts: readonly string[];
  readonly problem: Problem;
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

type ReportHead = Pick<ReportModel, 'subject' | 'cluster' | 'startedAt' | 'endedAt'> & {
  readonly failure: AppError | null;
};

const EMPTY = { highestImpact: null, matrix: { fields: [], rows: [] }, groups: [], timeline: null, census: [], rows: [], certificates: [] };

/** The report of `plan` and `apply`. `timelines`: empty for a plan. */
export function runReport(
  run: ReportHead &
    Pick<ReportModel, 'command'> & { readonly outcomes: readonly HostOutcome[]; readonly timelines: readonly HostTimeline[] },
): ReportModel {
  const { outcomes: unsorted, failure, timelines, ...head } = run;
  const outcomes = unsorted.toSorted((a, b) => compare(a.host, b.host));
  const groups = foldPlans(
    outcomes.flatMap(({ plan, status }) => {
      if (plan === null || status === 'unchanged') return [];
      // The sources of the fields name the host.
      const { origins: _, ...host } = plan.host;
      return [host];
    }),
  );
  const totalMs = Math.max(1, head.endedAt.getTime() - head.startedAt.getTime());
  return {
    ...EMPTY,
    ...head,
    counts: censusOf(outcomes.map(({ host, status }) => [outcomeText(status), host])),
    highestImpact: highestImpact(groups.flatMap(({ changes }) => changes.map(({ impact }) => impact as Impact | undefined))),
    problems: sharedProblems(failure?.problems ?? [], outcomes),
    matrix: matrixOf(groups),
    groups,
    timeline: timelines.length === 0 ? null : { totalMs, hosts: timelines, slowLimitMs: slowLimitMs(timelines) },
  };
}

export function statusReport(status: ReportHead & Pick<ReportModel, 'rows' | 'certificates'>): ReportModel {
  const { rows: unsorted, certificates, failure, ...head } = status;
  const rows = unsorted.toSorted((a, b) => compare(a.host, b.host));
  const table = (title: string, textOf: (row: HostStatusRow) => string | null): ValueDistribution => ({
    title,
    entries: censusOf(rows.map((row) => [textOf(row) ?? 'unknown', row.host])).toSorted((a, b) => b.hosts.length - a.hosts.length),
  });
  return {
    ...EMPTY,
    ...head,
    command: 'fleet status',
    counts: censusOf(rows.map(({ host, reachable }) => [reachable ? 'reachable' : 'unreachable', host])),
    problems: sharedProblems(failure?.problems ?? [], []),
    census: [
      table('Configuration (SHA-256 of config.yaml)', ({ config }) => config),
      table('Source of the configuration', ({ source }) => (source === null ? null : describeNodeSource(source))),
      table('Kubelet version', ({ kubelet }) => kubelet),
      table('Health of the kubelet', ({ health }) => health),
      table('Status of the Node', ({ node }) => node),
      table('Drift from the fleet file', ({ drift }) => drift),
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

/** Equal problems of several hosts become one; errors come before warnings. */
function sharedProblems(errors: readonly Problem[], outcomes: readonly HostOutcome[]): readonly SharedProblem[] {
  const warnings = outcomes.flatMap(({ host, plan }): readonly Problem[] => {
    const ofPhases = plan?.host.phases.flatMap((phase) => phase.plan.warnings ?? []) ?? [];
    return [...(plan?.warnings ?? []), ...ofPhases].map(({ code, message, field }) => ({
      host,
      severity: 'warning',
      code,
      message,
      path: field,
    }));
  });
  const all = [...errors, ...warnings].toSorted((a, b) => Number(isWarning(a)) - Number(isWarning(b)));
  return [...groupBy(all, ({ host: _, ...problem }) => JSON.stringify(problem)).values()].map((same) => {
    const [{ host: _, ...problem }] = same as [Problem];
    const hosts = [...new Set(same.flatMap(({ host }) => host ?? []))];
    return { severity: isWarning(problem) ? 'warning' : 'error', problem, hosts };
  });
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
