import { groupBy } from '../../base/group-by.ts';
import { namesText } from '../../base/text/name-ranges.ts';
import type { ReportModel } from '../../fleet/report/report-model.ts';
import { type HostPhase, medianOf } from '../../fleet/run/run-steps.ts';
import { changeMsOf, type HostTimeline, isRollingBack, type TimedPhase } from '../../fleet/run/run-timeline.ts';
import { outcomeText } from '../../maintenance/member-outcome.ts';
import { durationText, hostCount } from './report-words.ts';

/** A short text in a coloured frame. */
export interface Tag {
  readonly kind: 'error' | 'warning' | 'info' | 'ok';
  readonly text: string;
}

/** The name of each phase, and its class in the page, which is repeated for every host. */
export const PHASES: Readonly<Record<HostPhase, { readonly words: string; readonly phase: string }>> = {
  planning: { words: 'planning', phase: 'p' },
  queued: { words: 'queued', phase: 'q' },
  changing: { words: 'changing files and objects', phase: 'c' },
  restarting: { words: 'restarting the kubelet', phase: 'r' },
  verifying: { words: 'waiting for Ready', phase: 'v' },
  confirming: { words: 'confirming', phase: 'f' },
  finishing: { words: 'finishing (labels, taints)', phase: 'n' },
  'rolling-back': { words: 'rolling back', phase: 'b' },
};
const CONFIRMED = { words: 'confirmed', phase: 'd' };

/** Larger runs fold all batches, and list the hosts that need attention before them. */
const MOST_OPEN_HOSTS = 60;
const TICKS = 4;
/** Width of a drawn run. */
const WIDTH = 1000;
/** A narrower bar is invisible. */
const LEAST_WIDTH = 4;

/** The Gantt chart of a run: a table of hosts for each batch. */
export function timelineView({ totalMs, hosts, slowLimitMs }: NonNullable<ReportModel['timeline']>, noun: ReportModel['noun']): object {
  const phases = new Set(hosts.flatMap((host) => host.phases.map(({ phase }) => phase)));
  const changed = hosts.filter(({ status }) => status === 'changed');
  const durations = changed.flatMap((host) => changeMsOf(host) ?? []);
  const others = groupBy(hosts.filter(isBad), ({ status }) => status);
  const scale = { totalMs, slowLimitMs };
  const isSmall = hosts.length <= MOST_OPEN_HOSTS;
  const attention = hosts.filter((host) => isSlow(host, scale) || isBad(host));
  const times = [
    ...(durations.length === 0 ? [] : [`median ${durationText(medianOf(durations))}`]),
    ...(Number.isFinite(slowLimitMs) ? [`slow: longer than ${durationText(slowLimitMs)}`] : []),
  ];
  const parts = [
    `${hostCount(changed.length, noun)} changed${times.length === 0 ? '' : ` (${times.join(', ')})`}`,
    ...[...others].map(([status, { length }]) => `${length} ${status === null ? 'rolling back' : outcomeText(status)}`),
  ];
  return {
    summary: `In ${durationText(totalMs)}: ${parts.join(', ')}. A batch has the ${noun}s that were changed at the same time.`,
    legend: [
      ...(Object.keys(PHASES) as HostPhase[]).filter((phase) => phases.has(phase)).map((phase) => PHASES[phase]),
      ...(hosts.some(({ confirmedMs }) => confirmedMs !== null) ? [CONFIRMED] : []),
    ],
    ticks: Array.from({ length: TICKS + 1 }, (_, i) => durationText((totalMs * i) / TICKS)),
    batches: [
      ...(isSmall || attention.length === 0
        ? []
        : [{ ...batchView({ name: 'Slow or not ok', hosts: attention, isOpen: true }, scale), slow: null, bad: null }]),
      ...batchesOf(hosts).map((batch) => batchView({ ...batch, isOpen: isSmall }, scale)),
    ],
  };
}

interface Batch {
  readonly name: string;
  readonly hosts: readonly HostTimeline[];
}

/** The batches in order of time, then the hosts that were not changed. */
function batchesOf(hosts: readonly HostTimeline[]): readonly Batch[] {
  const byNumber = groupBy(hosts, ({ batch }) => batch);
  const numbers = [...byNumber.keys()].sort((a, b) => (a ?? Number.POSITIVE_INFINITY) - (b ?? Number.POSITIVE_INFINITY));
  return numbers.map((number) => {
    const members = byNumber.get(number) ?? [];
    if (number === null) return { name: members.some(({ status }) => status === null) ? 'Not changed yet' : 'Not changed', hosts: members };
    return { name: `Batch ${number}${members.every((host) => host.isCanary) ? ' (canary)' : ''}`, hosts: members };
  });
}

interface Scale {
  readonly totalMs: number;
  readonly slowLimitMs: number;
}

function batchView({ name, hosts, isOpen }: Batch & { readonly isOpen: boolean }, scale: Scale): object {
  const changeMs = hosts.flatMap((host) => changeMsOf(host) ?? []);
  const slow = hosts.filter((host) => isSlow(host, scale));
  const bad = hosts.filter(isBad);
  return {
    name,
    summary: [hostCount(hosts.length), ...(changeMs.length === 0 ? [] : [`longest ${durationText(Math.max(...changeMs))}`])].join(', '),
    slow: slow.length === 0 ? null : `${slow.length} slow`,
    bad: bad.length === 0 ? null : `${bad.length} not ok: ${namesText(bad.map(({ host }) => host))}`,
    isOpen,
    hosts: hosts.map((host) => hostView(host, scale)),
  };
}

function isSlow(host: HostTimeline, { slowLimitMs }: Pick<Scale, 'slowLimitMs'>): boolean {
  return (changeMsOf(host) ?? 0) > slowLimitMs;
}

const GOOD: ReadonlySet<HostTimeline['status']> = new Set([null, 'changed', 'unchanged', 'pending']);
/** The run left these hosts as they were; none of them failed. */
const UNTOUCHED: ReadonlySet<HostTimeline['status']> = new Set(['not-started', 'skipped', 'interrupted']);

function isBad(host: HostTimeline): boolean {
  return isRollingBack(host) || (!GOOD.has(host.status) && !UNTOUCHED.has(host.status));
}

function hostView(timeline: HostTimeline, scale: Scale): object {
  const { host, status, phases, confirmedMs, isCanary } = timeline;
  const changeMs = changeMsOf(timeline);
  const [slow, bad] = [isSlow(timeline, scale), isBad(timeline)];
  const words = status !== null ? outcomeText(status) : isRollingBack(timeline) ? 'rolling back' : 'in progress';
  return {
    host,
    canary: isCanary,
    style: [slow ? 'slow' : '', bad ? 'bad' : ''].filter(Boolean).join(' '),
    took: changeMs === null ? '' : durationText(changeMs),
    tag: tagOf(timeline, { bad, slow, words }),
    words: `${words}: ${phases.map(phaseText).join(', ')}${confirmedMs === null ? '' : `; confirmed at ${durationText(confirmedMs)}`}`,
    bars: [
      // The shortest last, which have a visible width.
      ...phases
        .toSorted((a, b) => b.endMs - b.startMs - (a.endMs - a.startMs))
        .map(({ phase, startMs, endMs }) => barOf(PHASES[phase].phase, at(startMs, scale), at(endMs - startMs, scale))),
      ...(confirmedMs === null ? [] : [barOf(CONFIRMED.phase, at(confirmedMs, scale), 0)]),
    ],
  };
}

function tagOf({ status }: HostTimeline, { bad, slow, words }: { readonly bad: boolean; readonly slow: boolean; readonly words: string }) {
  if (bad) return { kind: 'error', text: words };
  if (UNTOUCHED.has(status)) return { kind: 'warning', text: words };
  return slow ? { kind: 'warning', text: 'slow' } : null;
}

function barOf(phase: string, x: number, width: number): object {
  const shown = Math.max(width, LEAST_WIDTH);
  return { phase, x: String(Math.min(x, WIDTH - shown)), width: String(shown) };
}

function phaseText({ phase, startMs, endMs }: TimedPhase): string {
  return `${PHASES[phase].words} ${durationText(endMs - startMs)}`;
}

/** A position in the drawing, without needless digits. */
function at(ms: number, { totalMs }: Pick<Scale, 'totalMs'>): number {
  return Math.round((ms / totalMs) * WIDTH * 10) / 10;
}
