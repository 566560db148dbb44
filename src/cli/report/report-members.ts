import { groupBy } from '../../base/group-by.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import type { ReportModel } from '../../fleet/report/report-model.ts';
import type { ReportMember } from '../../fleet/report/run-verdict.ts';
import { STATUS_LEVELS } from '../../fleet/report/status-verdict.ts';
import { changeMsOf } from '../../fleet/run/run-timeline.ts';
import type { HostStatusRow } from '../../fleet/use-cases/fleet-status.ts';
import { PHASES, type Tag } from './report-timeline.ts';
import { durationText } from './report-words.ts';

/** The colour of a state as a class of the page, and its sign, which says the same without colour. */
export interface Look {
  readonly kind: 'wait' | 'active' | 'plan' | 'ok' | 'same' | 'warning' | 'error';
  readonly sign: string;
}

const LOOKS: Readonly<Record<ReportMember['state'], Look>> = {
  waiting: { kind: 'wait', sign: '·' },
  inspecting: { kind: 'active', sign: '…' },
  queued: { kind: 'wait', sign: '·' },
  'in-progress': { kind: 'active', sign: '▸' },
  pending: { kind: 'plan', sign: '~' },
  changed: { kind: 'ok', sign: '✓' },
  unchanged: { kind: 'same', sign: '=' },
  failed: { kind: 'error', sign: '✗' },
  'not-rolled-back': { kind: 'error', sign: '✗' },
  'rolling-back': { kind: 'error', sign: '↩' },
  'rolled-back': { kind: 'error', sign: '↩' },
  refused: { kind: 'error', sign: '⊘' },
  skipped: { kind: 'warning', sign: '–' },
  unreachable: { kind: 'error', sign: '?' },
  replaced: { kind: 'error', sign: '⇄' },
  interrupted: { kind: 'warning', sign: '–' },
  'not-started': { kind: 'warning', sign: '–' },
};

/** The worst first. */
const KINDS: readonly (Look['kind'] | Tag['kind'])[] = ['error', 'warning', 'active', 'info', 'plan', 'ok', 'same', 'wait'];
const LOOKS_OF_TEXT = new Map(Object.entries(LOOKS).map(([state, look]) => [state.replaceAll('-', ' '), look]));
const STATUS_LOOKS: Readonly<Record<string, Look>> = {
  reachable: { kind: 'ok', sign: '✓' },
  ok: { kind: 'ok', sign: '✓' },
  warning: { kind: 'warning', sign: '!' },
  error: { kind: 'error', sign: '✗' },
};

/** More hosts are squares without names. */
export const MOST_NAMED = 80;

/** The number of hosts per state, with the look of the state; the total first, then the worst. */
export function countViews({ counts, noun }: ReportModel): readonly object[] {
  const total = counts.reduce((sum, { hosts }) => sum + hosts.length, 0);
  const words = `${noun}${total === 1 ? '' : 's'}`;
  const shown = counts.map(({ value, hosts }) => {
    const look = LOOKS_OF_TEXT.get(value) ?? STATUS_LOOKS[value] ?? LOOKS.waiting;
    // The word of the terminal; "queued" is the name of the phase in the timeline.
    return { isTotal: false, size: hosts.length, words: value === 'queued' ? 'not started yet' : value, ...look };
  });
  return [{ isTotal: true, size: total, words }, ...shown.toSorted((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))];
}

/** A cell for each host; null: at most one host. */
export function membersView({ members, rows, noun }: ReportModel): object | null {
  const cells = members.length > 0 ? members.map(memberCell) : rows.map(statusCell);
  if (cells.length <= 1) return null;
  return {
    title: noun === 'host' ? 'Overview of the hosts' : 'Overview of the nodes',
    isDense: cells.length > MOST_NAMED,
    hasCanary: cells.some(({ isCanary }) => isCanary),
    cells,
  };
}

type State = ReportMember['state'];

/** The states whose changes need no explanation. */
const PLAIN: ReadonlySet<State> = new Set(['changed', 'pending']);

/** What became of the changes of hosts with equal changes, the worst first; with names, if not all hosts have the same result. */
export function resultTags(hosts: readonly string[], states: ReadonlyMap<string, State>): readonly Tag[] {
  const byState = [...groupBy(hosts, (host) => stateToShow(states.get(host) ?? 'changed'))];
  const tags = byState.flatMap(([state, same]): readonly Tag[] => {
    const words = state === 'waiting' ? 'not changed yet' : state.replaceAll('-', ' ');
    const { kind } = LOOKS[state];
    const text = byState.length === 1 ? words : `${same.length} ${words}: ${namesText(same)}`;
    return PLAIN.has(state) ? [] : [{ kind: kind === 'error' || kind === 'warning' ? kind : 'info', text }];
  });
  return tags.toSorted((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind));
}

/** The states before a change are one: their hosts have the previous configuration. */
function stateToShow(state: State): State {
  return state === 'inspecting' || state === 'queued' ? 'waiting' : state;
}

function memberCell({ name, state, timeline }: ReportMember) {
  const changeMs = timeline === null ? null : changeMsOf(timeline);
  const present = timeline?.phases.at(-1)?.phase;
  const doing = state === 'in-progress' && present !== undefined ? `: ${PHASES[present].words}` : '';
  const isCanary = timeline?.isCanary === true;
  const words = [
    `${name}: ${state.replaceAll('-', ' ')}${doing}`,
    ...(isCanary ? ['canary'] : timeline === null || timeline.batch === null ? [] : [`batch ${timeline.batch}`]),
    ...(changeMs === null ? [] : [durationText(changeMs)]),
  ];
  return { name, isCanary, words: words.join(', '), ...LOOKS[state] };
}

function statusCell(row: HostStatusRow) {
  const levels = Object.values(STATUS_LEVELS).map((levelOf) => levelOf(row));
  const look = levels.includes('error') ? 'error' : levels.includes('warning') ? 'warning' : 'ok';
  const { host, reachable, node, health, drift } = row;
  const words = reachable ? [node ?? 'Node unknown', `kubelet ${health ?? 'unknown'}`, `drift: ${drift ?? 'unknown'}`] : ['unreachable'];
  return { name: host, isCanary: false, words: `${host}: ${words.join(', ')}`, ...(STATUS_LOOKS[look] as Look) };
}
