import { formatPosition, type Problem } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import type { JsonObject } from '../../base/json.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import type { Text } from '../../base/text/styled.ts';
import { shownChanges } from '../../fleet/plan/operations.ts';
import type { FieldMatrix, ReportModel, SharedProblem, ValueDistribution } from '../../fleet/report/report-model.ts';
import type { HostCertificate } from '../../fleet/use-cases/fleet-status.ts';
import { formatClusterName } from '../../host/plan/document.ts';
import type { HostGroup } from '../../host/plan/fold.ts';
import { highestImpact, type Impact } from '../../host/plan/impact.ts';
import { describeNodeSource } from '../../kubelet/effective/node-source.ts';
import { nodeColumn } from '../output/node-column.ts';
import { changeLines } from '../output/show-plan.ts';
import { type Tag, timelineView } from './report-timeline.ts';
import { dateText, durationText, hostCount, timeText } from './report-words.ts';

/** The texts of a page, for `templates/report/page.html.hbs`. Null hides a part of the page. */
export function pageOf(model: ReportModel, version: string): object {
  const { command, subject, cluster, startedAt, endedAt, highestImpact: impact, counts } = model;
  const parts = {
    problems: orNull(model.problems.map(problemView)),
    matrix: model.matrix.rows.length === 0 ? null : matrixView(model.matrix),
    groups: orNull(groupViews(model.groups)),
    timeline: model.timeline === null ? null : timelineView(model.timeline),
    census: orNull(model.census.map(censusView)),
    certificates: model.certificates.length === 0 ? null : certificatesView(model.certificates, endedAt),
    rows: model.rows.length === 0 ? null : rowsView(model.rows),
  };
  return {
    title: `kubeletadm ${command}: ${subject}`,
    meta: [
      ...(cluster === null ? [] : [`Cluster: ${formatClusterName(cluster)}`]),
      `${timeText(startedAt)}, took ${durationText(endedAt.getTime() - startedAt.getTime())}`,
    ],
    counts: [
      { hosts: counts.reduce((sum, { hosts }) => sum + hosts.length, 0), value: 'hosts' },
      ...counts.map(({ value, hosts }) => ({ hosts: hosts.length, value })),
    ],
    impact,
    sections: SECTIONS.filter(([part]) => parts[part] !== null).map(([, id, name]) => ({ id, name })),
    ...parts,
    footer: `Created by kubeletadm ${version}. The page loads nothing from the network and contains no secrets.`,
  };
}

const SECTIONS = [
  ['problems', 'problems', 'Problems'],
  ['timeline', 'timeline', 'Timeline'],
  ['matrix', 'fields', 'Changed fields'],
  ['groups', 'changes', 'Changes'],
  ['census', 'census', 'Census'],
  ['certificates', 'certificates', 'Certificates'],
  ['rows', 'hosts', 'Hosts'],
] as const;

function orNull<T>(items: readonly T[]): readonly T[] | null {
  return items.length === 0 ? null : items;
}

function problemView({ severity, hosts, problem }: SharedProblem): object {
  const { code, message, hint = null } = problem;
  return { severity, hosts: hosts.length === 0 ? 'all' : namesText(hosts), place: placeOf(problem), message, hint, code };
}

/** Position and field path. */
function placeOf({ position, path }: Problem): string {
  const place = position === undefined ? '' : formatPosition(position);
  return [place, path].filter(Boolean).join(' ');
}

function matrixView({ fields, rows }: FieldMatrix): object {
  return {
    // A long name may be broken before a separator.
    fields: fields.map((field) => field.split(/(?=[.[])/)),
    rows: rows.map(({ hosts, changes }) => ({
      hosts: namesText(hosts),
      size: hostCount(hosts.length),
      cells: fields.map((field) => {
        const change = changes.get(field);
        if (change === undefined) return { impact: null, before: '', after: '' };
        return { impact: change.impact, before: valueText(change.before), after: valueText(change.after) };
      }),
    })),
  };
}

function valueText(value: unknown): string {
  return value === null ? 'unset' : typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}

/** More than the plans of a usual fleet have; beyond it, the page has the heads of the changes without their lines. */
const MOST_CHARACTERS = 2_000_000;
const MOST_OPEN_GROUPS = 3;

function groupViews(groups: readonly HostGroup[]): readonly object[] {
  let left = MOST_CHARACTERS;
  return groups.map(({ hosts, changes, deferred }) => {
    const shown = shownChanges(changes, 0).map((change) => {
      const [head = '', ...lines] = changeLines(change);
      const texts = lines.map(lineView);
      left -= texts.reduce((sum, { text }) => sum + text.length, 0);
      return { head: textOf(head).trim(), impact: impactOf(change), lines: left < 0 ? [] : texts };
    });
    const later = deferred.map(({ phase, reason }) => ({ head: `> [${phase}] later: ${reason}`, impact: null, lines: [] }));
    const count = shown.length + later.length;
    return {
      hosts: namesText(hosts),
      names: hosts.length === 1 ? null : hosts.join(' '),
      size: hostCount(hosts.length),
      summary: `${count} ${count === 1 ? 'change' : 'changes'}`,
      impact: highestImpact(changes.map(impactOf)),
      isOpen: groups.length <= MOST_OPEN_GROUPS,
      changes: [...shown, ...later],
      omitted:
        left < 0 ? 'The page would be too large with the lines of this entry. To show them, run kubeletadm plan with --limit.' : null,
    };
  });
}

function impactOf({ impact }: JsonObject): Impact | null {
  return (impact as Impact | undefined) ?? null;
}

function lineView(line: Text): { readonly text: string; readonly isAdded: boolean; readonly isRemoved: boolean } {
  const text = textOf(line).replace(/^ {6}/, '');
  return { text, isAdded: /^\+(?!\+\+ )/.test(text), isRemoved: /^-(?!-- )/.test(text) };
}

function textOf(text: Text): string {
  return typeof text === 'string' ? text : text.map((part) => (typeof part === 'string' ? part : part.text)).join('');
}

function censusView({ title, entries }: ValueDistribution): object {
  const total = entries.reduce((sum, { hosts }) => sum + hosts.length, 0);
  return {
    title,
    entries: entries.map(({ value, hosts }) => ({
      value,
      size: hosts.length,
      share: Math.round((hosts.length / total) * 1000),
      hosts: namesText(hosts),
    })),
  };
}

function rowsView(rows: ReportModel['rows']): object {
  const nodes = nodeColumn(rows.map(({ host, nodeName }) => ({ host, node: nodeName })));
  const names = nodes.header.map(() => 'Node');
  return {
    columns: ['Host', ...names, 'Reachable', 'Kubelet', 'Configuration', 'Source', 'Health', 'Status', 'Drift'],
    hosts: rows.map(({ host, reachable, kubelet, config, source, health, node, drift }) => ({
      host,
      cells: [
        ...nodes.cells(host).map((name) => cell(name, null)),
        cell(reachable ? 'yes' : 'no', reachable ? null : 'error'),
        cell(kubelet, null),
        cell(config, null),
        cell(source === null ? null : describeNodeSource(source), null),
        cell(health, health === null || health === 'ok' ? null : 'error'),
        cell(node, node === null || node === 'Ready' ? null : 'warning'),
        cell(drift, drift === null || drift === 'none' ? null : 'warning'),
      ],
    })),
  };
}

function cell(text: string | null, tag: Tag['kind'] | null): object {
  return { text: text ?? '-', tag };
}

const DAY_MS = 86_400_000;
const SOON_DAYS = 30;

type State = 'expired' | 'soon' | 'ok';

/** The expiration dates of all certificates, equal ones in one row. */
function certificatesView(certificates: readonly HostCertificate[], now: Date): object {
  const hosts = new Set(certificates.map(({ host }) => host)).size;
  const bad = certificates.filter((each) => stateOf(each, now) !== 'ok').length;
  return {
    summary: `${certificates.length} certificates of ${hostCount(hosts)}; ${bad} of them expired, not valid or about to expire within ${SOON_DAYS} days.`,
    dates: datesOf(certificates, now),
  };
}

function stateOf({ notAfter, state }: HostCertificate, now: Date): State {
  if (notAfter === null || notAfter < now || state === 'error') return 'expired';
  return notAfter.getTime() - now.getTime() < SOON_DAYS * DAY_MS ? 'soon' : 'ok';
}

function datesOf(certificates: readonly HostCertificate[], now: Date): readonly object[] {
  const dateOf = ({ notAfter }: HostCertificate): string => (notAfter === null ? 'unknown' : dateText(notAfter));
  const keyOf = (each: HostCertificate): string => JSON.stringify([dateOf(each), each.role, stateOf(each, now), each.notes]);
  return [...groupBy(certificates, keyOf).values()].map((same) => {
    const [first] = same as [HostCertificate];
    return {
      date: dateOf(first),
      role: first.role,
      tag: TAGS[stateOf(first, now)],
      hosts: namesText(same.map(({ host }) => host)),
      notes: first.notes.join('; '),
    };
  });
}

const TAGS: Readonly<Record<State, Tag>> = {
  expired: { kind: 'error', text: 'problem' },
  soon: { kind: 'warning', text: `within ${SOON_DAYS} days` },
  ok: { kind: 'info', text: 'valid' },
};
