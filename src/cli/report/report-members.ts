import type { ReportModel } from '../../fleet/report/report-model.ts';
import type { ReportMember } from '../../fleet/report/run-verdict.ts';
import { STATUS_LEVELS } from '../../fleet/report/status-verdict.ts';
import { changeMsOf, isRollingBack } from '../../fleet/run/run-timeline.ts';
import type { HostStatusRow } from '../../fleet/use-cases/fleet-status.ts';
import type { MemberState } from '../../maintenance/next-step.ts';
import { PHASES } from './report-timeline.ts';
import { durationText } from './report-words.ts';

/** The colour of a state as a class of the page, and its sign, which says the same without colour. */
export interface Look {
  readonly kind: 'wait' | 'active' | 'plan' | 'ok' | 'same' | 'warning' | 'error';
  readonly sign: string;
}

const LOOKS: Readonly<Record<MemberState, Look>> = {
  waiting: { kind: 'wait', sign: '·' },
  inspecting: { kind: 'active', sign: '…' },
  queued: { kind: 'wait', sign: '·' },
  'in-progress': { kind: 'active', sign: '▸' },
  pending: { kind: 'plan', sign: '~' },
  changed: { kind: 'ok', sign: '✓' },
  unchanged: { kind: 'same', sign: '=' },
  failed: { kind: 'error', sign: '✗' },
  'not-rolled-back': { kind: 'error', sign: '✗' },
  'rolled-back': { kind: 'error', sign: '↩' },
  refused: { kind: 'error', sign: '⊘' },
  skipped: { kind: 'warning', sign: '–' },
  unreachable: { kind: 'error', sign: '?' },
  replaced: { kind: 'error', sign: '⇄' },
  interrupted: { kind: 'warning', sign: '–' },
  'not-started': { kind: 'warning', sign: '–' },
};

const LOOKS_OF_TEXT = new Map(Object.entries(LOOKS).map(([state, look]) => [state.replaceAll('-', ' '), look]));
const STATUS_LOOKS: Readonly<Record<string, Look>> = {
  reachable: { kind: 'ok', sign: '✓' },
  ok: { kind: 'ok', sign: '✓' },
  warning: { kind: 'warning', sign: '!' },
  error: { kind: 'error', sign: '✗' },
};

/** More hosts are squares without names. */
export const MOST_NAMED = 80;

/** The number of hosts per state, with the look of the state; the total first. */
export function countViews({ counts, noun }: ReportModel): readonly object[] {
  const total = counts.reduce((sum, { hosts }) => sum + hosts.length, 0);
  const words = `${noun}${total === 1 ? '' : 's'}`;
  return [
    { isTotal: true, size: total, words },
    ...counts.map(({ value, hosts }) => {
      const look = LOOKS_OF_TEXT.get(value) ?? STATUS_LOOKS[value] ?? LOOKS.waiting;
      // The word of the terminal; "queued" is the name of the phase in the timeline.
      const shown = value === 'queued' ? 'not started yet' : value;
      return { isTotal: false, size: hosts.length, words: shown, ...look };
    }),
  ];
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
  return { name, isCanary, words: words.join(', '), ...LOOKS[timeline !== null && isRollingBack(timeline) ? 'rolled-back' : state] };
}

function statusCell(row: HostStatusRow) {
  const levels = Object.values(STATUS_LEVELS).map((levelOf) => levelOf(row));
  const look = levels.includes('error') ? 'error' : levels.includes('warning') ? 'warning' : 'ok';
  const { host, reachable, node, health, drift } = row;
  const words = reachable ? [node ?? 'Node unknown', `kubelet ${health ?? 'unknown'}`, `drift: ${drift ?? 'unknown'}`] : ['unreachable'];
  return { name: host, isCanary: false, words: `${host}: ${words.join(', ')}`, ...(STATUS_LOOKS[look] as Look) };
}
