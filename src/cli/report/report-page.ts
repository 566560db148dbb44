import { formatPosition } from '../../base/errors.ts';
import { groupBy } from '../../base/group-by.ts';
import type { JsonObject } from '../../base/json.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import type { Text } from '../../base/text/styled.ts';
import { shownChanges } from '../../fleet/plan/operations.ts';
import type { FieldMatrix, ReportModel, ValueDistribution } from '../../fleet/report/report-model.ts';
import type { Verdict } from '../../fleet/report/run-verdict.ts';
import { certificateState, type SharedProblem, SOON_DAYS, STATUS_LEVELS } from '../../fleet/report/status-verdict.ts';
import type { HostCertificate } from '../../fleet/use-cases/fleet-status.ts';
import { formatClusterName } from '../../host/plan/document.ts';
import type { HostGroup } from '../../host/plan/fold.ts';
import { highestImpact, type Impact } from '../../host/plan/impact.ts';
import { describeNodeSource } from '../../kubelet/effective/node-source.ts';
import type { GateRecord } from '../../maintenance/gates/batch-gates.ts';
import { foldRows, type LiveView, noteOf } from '../output/live-view.ts';
import { nodeColumn } from '../output/node-column.ts';
import { changeLines } from '../output/show-plan.ts';
import { countViews, membersView, resultTags } from './report-members.ts';
import { type Tag, timelineView } from './report-timeline.ts';
import { dateText, durationText, hostCount, hostList, timeText } from './report-words.ts';

/** The texts of a page, for `templates/report`. Null hides a part of the page. */
export function pageOf(model: ReportModel, version: string, live: LiveView | null = null) {
  const { highestImpact: impact, verdict } = model;
  // Before the first progress of a run, the live display does not know its hosts.
  const total = Math.max(live?.total ?? 0, model.members.length);
  const states = new Map(model.members.map(({ name, state }) => [name, state]));
  const parts = {
    progress: live === null ? null : progressView(live, total, model.endedAt.getTime()),
    problems: problemsView(model.problems, model.noun),
    members: membersView(model),
    matrix: model.matrix.rows.length === 0 ? null : matrixView(model.matrix, states),
    groups: orNull(groupViews(model.groups, states)),
    timeline: model.timeline === null ? null : timelineView(model.timeline, model.noun),
    gates: orNull(model.gates.map(gateView)),
    census: orNull(model.census.map(censusView)),
    certificates: model.certificates.length === 0 ? null : certificatesView(model.certificates, model.endedAt),
    rows: model.rows.length === 0 ? null : rowsView(model.rows),
  } satisfies Record<Exclude<Part, 'head' | 'links'>, unknown>;
  const title = `kubeletadm ${[model.command, model.subject].filter(Boolean).join(': ')}`;
  return {
    title: `${verdict.level === 'error' ? '✗ ' : ''}${live === null ? '' : `${live.done}/${total} `}${title}`,
    parts: {
      head: { title, verdict: verdictView(verdict), counts: countViews(model), impact, facts: factsOf(model) },
      links: { sections: SECTIONS.filter(([part]) => parts[part] !== null).map(([, id, name]) => ({ id, name })) },
      ...Object.fromEntries(SECTIONS.map(([part]) => [part, parts[part]])),
    },
    footer: footerOf(version),
  };
}

/** In the order of the page. */
const SECTIONS = [
  ['progress', 'now', 'Now'],
  ['problems', 'problems', 'Problems'],
  ['members', 'overview', 'Overview'],
  ['gates', 'gates', 'Gates'],
  ['timeline', 'timeline', 'Timeline'],
  ['matrix', 'fields', 'Changed fields'],
  ['groups', 'changes', 'Changes'],
  ['census', 'census', 'Census'],
  ['certificates', 'certificates', 'Certificates'],
  ['rows', 'hosts', 'Hosts'],
] as const;

/** The parts of a page that have a template each. */
export const PARTS = ['head', 'links', ...SECTIONS.map(([part]) => part)] as const;

type Part = (typeof PARTS)[number];

const VERDICT_SIGNS = { ok: '✓', warning: '!', error: '✗', active: '▸' } as const;

/** A verdict with its sign, which says the same without colour. */
export function verdictView(verdict: Verdict): object {
  return { ...verdict, sign: VERDICT_SIGNS[verdict.level] };
}

export function footerOf(version: string): string {
  return `Created by kubeletadm ${version}. The page loads nothing from other servers and contains no secrets.`;
}

function factsOf(model: ReportModel): readonly object[] {
  const { cluster, facts, startedAt, endedAt } = model;
  const took = durationText(endedAt.getTime() - startedAt.getTime());
  const next = model.certificates.find(({ notAfter }) => notAfter !== null && notAfter >= endedAt);
  const texts = [
    ['Cluster', cluster === null ? null : formatClusterName(cluster)],
    ['Operator', facts.operator],
    ['Reason', facts.reason],
    ['Plan', facts.plan],
    ['Signed by', facts.signer],
    ['Started', timeText(startedAt)],
    [facts.exitCode === null ? 'Running for' : 'Took', took],
    ['Exit code', facts.exitCode === null ? null : String(facts.exitCode)],
    ['Next expiration', next?.notAfter == null ? null : `${dateText(next.notAfter)}, ${next.role} on ${next.host}`],
    ['Command', facts.commandLine],
  ] as const;
  return texts.flatMap(([name, text]) =>
    text === null ? [] : [{ name, text, isCode: name === 'Command' || name === 'Plan', isWide: name === 'Command' || name === 'Cluster' }],
  );
}

function orNull<T>(items: readonly T[]): readonly T[] | null {
  return items.length === 0 ? null : items;
}

function progressView({ done, restMs, startedAt, notes, next, active }: LiveView, total: number, now: number): object {
  const rest = restMs === null || restMs <= 0 ? '' : `, about ${durationText(Math.ceil(restMs / 5_000) * 5_000)} left`;
  const { names, isLong } = hostList(next?.names ?? []);
  return {
    total,
    done,
    label: `${done} of ${total} done`,
    times: `${durationText(now - startedAt)}${rest}`,
    notes: orNull([
      ...notes.filter(Boolean),
      ...(names.length === 0 ? [] : [`next, if those in progress succeed: ${isLong ? `${next?.names.length} hosts` : names.join(' ')}`]),
    ]),
    active: orNull(
      foldRows(active, now).map((row) => ({
        hosts: namesText(row.hosts),
        activity: row.activity,
        isBad: row.isRollingBack,
        note: noteOf(row, now).trim() || null,
        kind: row.isSlow ? 'warning' : 'info',
        since: durationText(now - row.since),
      })),
    ),
  };
}

function gateView({ gate, kind, batch, isPassed, attempts, durationMs, answer, output }: GateRecord): object {
  const state = kind === 'window' ? (isPassed ? 'ignored' : 'closed') : isPassed ? 'passed' : 'failed';
  const tag = kind === 'window' && isPassed ? 'warning' : isPassed ? 'ok' : 'error';
  return {
    gate,
    kind,
    batch,
    state,
    tag,
    answer,
    output: output ?? null,
    took: `${durationText(durationMs)}${attempts > 1 ? `, ${attempts} attempts` : ''}`,
  };
}

/** Problems as rows; null: none. @param empty shown instead of names for a problem without hosts */
export function problemsView(problems: readonly SharedProblem[], noun: ReportModel['noun'], empty = 'all'): object | null {
  const rows = problems.map(({ severity: given, hosts, problem }) => {
    const { code, message, hint = null } = problem;
    // The end of a rollback is no further error.
    const severity = code === 'ROLLED_BACK' ? 'info' : given;
    const list = hosts.length === 0 ? { names: [empty], isLong: false } : hostList(hosts);
    return { severity, ...list, size: hostCount(hosts.length, noun), place: placeOf(problem), message, hint, code };
  });
  return rows.length === 0 ? null : { column: noun === 'host' ? 'Hosts' : 'Nodes', hasCode: rows.some(({ code }) => code !== null), rows };
}

/** Position and field path. */
function placeOf({ position, path }: SharedProblem['problem']): string {
  const place = position === undefined ? '' : formatPosition(position);
  return [place, path].filter(Boolean).join(' ');
}

function matrixView({ fields, rows }: FieldMatrix, states: Parameters<typeof resultTags>[1]): object {
  return {
    // A long name may be broken before a separator.
    fields: fields.map((field) => field.split(/(?=[.[])/)),
    rows: rows.map(({ hosts, changes }) => ({
      hosts: namesText(hosts),
      size: hostCount(hosts.length),
      results: resultTags(hosts, states),
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

function groupViews(groups: readonly HostGroup[], states: Parameters<typeof resultTags>[1]): readonly object[] {
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
      results: resultTags(hosts, states),
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

/** More different values are counted together. */
const MOST_VALUES = 10;

function censusView({ title, entries, levelOf }: ValueDistribution): object {
  const total = entries.reduce((sum, { hosts }) => sum + hosts.length, 0);
  const rest = entries.length <= MOST_VALUES ? [] : entries.slice(MOST_VALUES - 1);
  const others = { value: `${rest.length} other values`, hosts: rest.flatMap(({ hosts }) => hosts) };
  const shown = rest.length === 0 ? entries : [...entries.slice(0, MOST_VALUES - 1), others];
  return {
    title,
    entries: shown.map(({ value, hosts }) => {
      const share = Math.round((hosts.length / total) * 1000);
      return { value, kind: levelOf?.(value) ?? null, size: hosts.length, share, ...hostList(hosts) };
    }),
  };
}

function rowsView(rows: ReportModel['rows']): object {
  const nodes = nodeColumn(rows.map(({ host, nodeName }) => ({ host, node: nodeName })));
  const names = nodes.header.map(() => 'Node');
  return {
    columns: ['Host', ...names, 'Reachable', 'Kubelet', 'Configuration', 'Source', 'Health', 'Status', 'Drift'],
    hosts: rows.map((row) => {
      const { host, reachable, kubelet, config, source, health, node, drift } = row;
      return {
        host,
        cells: [
          ...nodes.cells(host).map((name) => cell(name, null)),
          cell(reachable ? 'yes' : 'no', STATUS_LEVELS.reachable(row)),
          cell(kubelet, null),
          cell(config, null),
          cell(source === null ? null : describeNodeSource(source), null),
          cell(health, STATUS_LEVELS.health(row)),
          cell(node, STATUS_LEVELS.node(row)),
          cell(drift, STATUS_LEVELS.drift(row)),
        ],
      };
    }),
  };
}

function cell(text: string | null, tag: Tag['kind'] | null): object {
  return { text: text ?? '-', tag };
}

/** The expiration dates of all certificates, equal ones in one row. */
function certificatesView(certificates: readonly HostCertificate[], now: Date): object {
  const hosts = new Set(certificates.map(({ host }) => host)).size;
  const bad = certificates.filter((each) => certificateState(each, now) !== 'ok').length;
  return {
    summary: `${certificates.length} certificates of ${hostCount(hosts)}; ${bad} of them expired, not valid or about to expire within ${SOON_DAYS} days.`,
    dates: datesOf(certificates, now),
  };
}

function datesOf(certificates: readonly HostCertificate[], now: Date): readonly object[] {
  const dateOf = ({ notAfter }: HostCertificate): string => (notAfter === null ? 'unknown' : dateText(notAfter));
  const keyOf = (each: HostCertificate): string => JSON.stringify([dateOf(each), each.role, certificateState(each, now), each.notes]);
  return [...groupBy(certificates, keyOf).values()].map((same) => {
    const [first] = same as [HostCertificate];
    return {
      date: dateOf(first),
      role: first.role,
      tag: TAGS[certificateState(first, now)],
      hosts: namesText(same.map(({ host }) => host)),
      notes: first.notes.join('; '),
    };
  });
}

const TAGS: Readonly<Record<ReturnType<typeof certificateState>, Tag>> = {
  expired: { kind: 'error', text: 'expired or not valid' },
  soon: { kind: 'warning', text: `within ${SOON_DAYS} days` },
  ok: { kind: 'ok', text: 'valid' },
};
