import type { Clock } from '../../base/clock.ts';
import { formatGoDuration } from '../../base/text/go-duration.ts';
import { nameRanges, sortedNames } from '../../base/text/name-ranges.ts';
import { escapeUnprintableInLine } from '../../base/text/printable.ts';
import { type Style, type StyledPart, styled, type Text } from '../../base/text/styled.ts';
import { truncate } from '../../base/text/table.ts';
import type { NextMembers } from '../../maintenance/next-step.ts';
import type { Output, TerminalSize } from './services.ts';

/** A command that ends earlier shows no display. */
const FIRST_MS = 1_500;
const EVERY_MS = 500;

/**
 * Shows a live display on a terminal while a command runs, and redraws it twice a second. Without a terminal,
 * nothing is shown.
 * @param view gives the present state
 */
export function liveDisplay(
  { clock, output }: { readonly clock: Clock; readonly output: Pick<Output, 'status'> },
  view: () => LiveView,
): {
  /** Erases the display. */
  close(): void;
} {
  const { status } = output;
  if (status === undefined) return { close: () => undefined };
  const stop = new AbortController();
  const draw = async (): Promise<void> => {
    await clock.sleep(FIRST_MS, stop.signal);
    for (;;) {
      status((size) => renderLive(view(), size, clock.now().getTime()));
      await clock.sleep(EVERY_MS, stop.signal);
    }
  };
  draw().catch((error: unknown) => {
    if (!stop.signal.aborted) throw error;
  });
  return {
    close: () => {
      stop.abort();
      status(null);
    },
  };
}

/** State of a run as its live display shows it. Times are milliseconds since the epoch. */
export interface LiveView {
  /** The command: `apply fleet.yaml`. */
  readonly title: string;
  readonly startedAt: number;
  readonly total: number;
  readonly done: number;
  /** Estimated rest in milliseconds; null: unknown. */
  readonly restMs: number | null;
  /** Results so far: `changed 110 · ok 6`. */
  readonly counts: readonly LiveCount[];
  /** The part of the rollout that is in progress: `canary`, `batch 3`. */
  readonly notes: readonly string[];
  readonly active: readonly LiveRow[];
  /** Absent or null: unknown. */
  readonly next?: NextMembers | null;
  readonly failures: readonly LiveFailure[];
}

export interface LiveCount {
  readonly word: string;
  readonly count: number;
  readonly style?: Style | undefined;
}

/** A host in progress. */
export interface LiveRow {
  readonly name: string;
  readonly activity: string;
  /** Its change has failed. */
  readonly isRollingBack?: boolean;
  /** Start of the activity. */
  readonly since: number;
  /** Median duration of the activity on the other hosts; null: unknown. */
  readonly medianMs: number | null;
  /** The end of the activity, with a verb: `rolls back`, unless `confirmed`. */
  readonly deadline: { readonly what: string; readonly at: number; readonly unless?: string } | null;
}

interface LiveFailure {
  readonly name: string;
  /** `rolled back: the kubelet exited`. */
  readonly text: string;
}

const MAX_BAR = 20;
const MIN_BAR = 6;
/** Share of the height for failed hosts while hosts in progress need the rest. */
const FAILURE_SHARE = 2;
const MAX_NAME = 32;
const SLOW_FACTOR = 3;
const SLOW_MS = 5_000;

/**
 * Renders the live display of a run: a line with the progress, then the hosts in progress and the failed ones.
 * Hosts with the same activity share a line. Names and messages are sanitised.
 * @param size of the terminal: no line reaches the last column, and one line below the display remains free
 * @param now milliseconds since the epoch
 */
export function renderLive(view: LiveView, size: TerminalSize, now: number): readonly Text[] {
  const width = Math.max(size.width - 1, 1);
  const head = headLines(view, width, now);
  const room = Math.max(size.height - 1 - head.length, 0);
  const rows = foldRows(view.active, now);
  const failures = foldFailures(view.failures);
  const forFailures = Math.min(failures.length, Math.max(room - rows.length, Math.ceil(room / FAILURE_SHARE)));
  const lines = [
    ...head,
    ...limited(rows, room - forFailures, { more: 'in progress', line: (row, shown) => rowLine(row, shown, { width, now }) }, width),
    ...limited(failures, forFailures, { more: 'failed', line: (failure) => failureLine(failure, width) }, width),
  ];
  return lines.slice(0, Math.max(size.height - 1, 1));
}

/** `1m30s`; below a second `0s`. */
export function formatSeconds(ms: number): string {
  return formatGoDuration(BigInt(Math.max(0, Math.floor(ms / 1000))) * 1_000_000_000n);
}

function headLines(view: LiveView, width: number, now: number): readonly Text[] {
  const { total, done, restMs } = view;
  const title = truncate(escapeUnprintableInLine(view.title), width);
  const rest = restMs === null || restMs <= 0 ? [] : [`~${roughly(restMs)} left`];
  const times = [formatSeconds(now - view.startedAt), ...rest].join('  ');
  const progress = total === 1 ? times : `${done}/${total}  ${times}`;
  const counts = view.counts.filter(({ count }) => count > 0);
  const notes = view.notes.map(escapeUnprintableInLine).filter(Boolean);
  const countText = counts.map(({ word, count }) => `${word} ${count}`).join(' · ');
  const short = title.length + 2 + progress.length;
  const long = short + (countText === '' ? 0 : 5 + countText.length);
  const isOneLine = long + MIN_BAR + 3 <= width;
  const space = width - (isOneLine ? long : short) - 3;
  const bar = total > 1 && space >= MIN_BAR ? [styled('cyan', barOf(done / total, Math.min(space, MAX_BAR))), ' '] : [];
  const first: Text = [styled('bold', title), '  ', ...bar, progress];
  const parts = counts.flatMap(({ word, count, style }, i): readonly (string | StyledPart)[] => {
    const text = `${word} ${count}`;
    return [i === 0 ? '' : ' · ', style === undefined ? text : styled(style, text)];
  });
  const note = notes.length === 0 ? [] : [truncate(`  ${notes.join(' · ')}`, width)];
  if (isOneLine) return [counts.length === 0 ? first : [...first, '     ', ...parts], ...note];
  const second = countText === '' ? [] : countText.length + 2 > width ? [truncate(`  ${countText}`, width)] : [['  ', ...parts]];
  return [short > width ? truncate(`${title}  ${progress}`, width) : first, ...second, ...note];
}

function barOf(share: number, width: number): string {
  const filled = Math.floor(Math.min(Math.max(share, 0), 1) * width);
  return `▕${'█'.repeat(filled)}${'░'.repeat(width - filled)}▏`;
}

/** `~3m`, `~40s`: an estimate is not exact to the second. */
function roughly(ms: number): string {
  if (ms >= 3_600_000) return `${Math.floor(ms / 3_600_000)}h${Math.round((ms % 3_600_000) / 60_000)}m`;
  return ms >= 90_000 ? `${Math.round(ms / 60_000)}m` : `${Math.max(5, Math.ceil(ms / 5_000) * 5)}s`;
}

/** Hosts that share a line. */
interface FoldedRow extends LiveRow {
  readonly hosts: readonly string[];
  readonly isSlow: boolean;
}

/** Hosts with the same activity share a line with the longest duration; above are those that roll back, then slow ones, each with its line. */
export function foldRows(rows: readonly LiveRow[], now: number): readonly FoldedRow[] {
  const slow: FoldedRow[] = [];
  const folded = new Map<string, FoldedRow>();
  for (const row of rows) {
    const elapsed = now - row.since;
    if (row.medianMs !== null && elapsed > SLOW_FACTOR * row.medianMs && elapsed > row.medianMs + SLOW_MS) {
      slow.push({ ...row, hosts: [row.name], isSlow: true });
      continue;
    }
    const key = `${row.activity}\0${row.deadline?.what ?? ''}`;
    const same = folded.get(key);
    folded.set(key, same === undefined ? { ...row, hosts: [row.name], isSlow: false } : merged(same, row));
  }
  const bySince = (a: LiveRow, b: LiveRow): number => a.since - b.since;
  const sorted = [...slow.toSorted(bySince), ...[...folded.values()].toSorted(bySince)];
  return sorted.toSorted((a, b) => Number(b.isRollingBack ?? false) - Number(a.isRollingBack ?? false));
}

function merged(row: FoldedRow, other: LiveRow): FoldedRow {
  const deadline = row.deadline === null || other.deadline === null || row.deadline.at <= other.deadline.at ? row.deadline : other.deadline;
  return { ...row, hosts: [...row.hosts, other.name], since: Math.min(row.since, other.since), deadline };
}

interface FoldedFailure {
  readonly hosts: readonly string[];
  readonly text: string;
}

function foldFailures(failures: readonly LiveFailure[]): readonly FoldedFailure[] {
  const folded = new Map<string, string[]>();
  for (const { name, text } of failures) {
    const same = folded.get(text);
    if (same === undefined) folded.set(text, [name]);
    else same.push(name);
  }
  return [...folded].map(([text, hosts]) => ({ text, hosts }));
}

/** The lines of the first rows; if not all fit, the last line counts the hosts of the others. */
function limited<Row extends { readonly hosts: readonly string[] }>(
  rows: readonly Row[],
  room: number,
  { more, line }: { readonly more: string; readonly line: (row: Row, shown: readonly Row[]) => Text },
  width: number,
): readonly Text[] {
  if (room <= 0) return [];
  const shown = rows.length <= room ? rows : rows.slice(0, room - 1);
  const others = rows.slice(shown.length).reduce((sum, { hosts }) => sum + hosts.length, 0);
  const rest =
    others === 0 ? [] : [truncate(`  … ${shown.length === 0 ? '' : 'and '}${others} ${shown.length === 0 ? '' : 'more '}${more}`, width)];
  return [...shown.map((row) => line(row, shown)), ...rest];
}

/** `edge-031`, `edge-[033:050] (18)`; a long list is truncated, but not its number. */
function namesOf(hosts: readonly string[]): string {
  const names = escapeUnprintableInLine(nameRanges(sortedNames(hosts)).join(', '));
  return hosts.length === 1 ? truncate(names, MAX_NAME) : `${truncate(names, MAX_NAME - 6)} (${hosts.length})`;
}

function rowLine(row: FoldedRow, shown: readonly FoldedRow[], { width, now }: { readonly width: number; readonly now: number }): Text {
  const seconds = formatSeconds(now - row.since).padStart(SECONDS);
  const names = namesOf(row.hosts).padEnd(Math.max(...shown.map(({ hosts }) => namesOf(hosts).length)));
  const notes = Math.max(...shown.map((each) => noteOf(each, now).length));
  const room = Math.max(width - names.length - seconds.length - notes - 6, LEAST_ACTIVITY);
  const activity = Math.min(room, Math.max(...shown.map((each) => escapeUnprintableInLine(each.activity).length)));
  const text = truncate(escapeUnprintableInLine(row.activity), activity).padEnd(activity);
  const line = `  ${names}  ${text}  ${seconds}`;
  const note = truncate(noteOf(row, now), width - line.length);
  if (row.isRollingBack === true) return [styled('red', truncate(`${line}${note}`, width))];
  return line.length >= width ? truncate(line, width) : [line, row.isSlow ? styled('yellow', note) : note];
}

/** `  rolls back in 4m12s  ← slow (median 9s)`; empty: none. */
export function noteOf({ deadline, isSlow, medianMs }: FoldedRow, now: number): string {
  const left =
    deadline === null || deadline.at <= now
      ? ''
      : `  ${deadline.what} in ${formatSeconds(deadline.at - now)}${deadline.unless === undefined ? '' : ` unless ${deadline.unless}`}`;
  return isSlow && medianMs !== null ? `${left}  ← slow (median ${formatSeconds(medianMs)})` : left;
}

/** Width of the column of durations: `12m30s`. */
const SECONDS = 6;
/** An activity keeps this width if the terminal is narrow. */
const LEAST_ACTIVITY = 12;

function failureLine({ hosts, text }: FoldedFailure, width: number): Text {
  const line = truncate(`  ✗ ${namesOf(hosts)} ${escapeUnprintableInLine(text)}`, width);
  return [styled('red', line)];
}
