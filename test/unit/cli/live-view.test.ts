import { describe, expect, it } from 'vitest';
import { renderText, type Text } from '../../../src/base/text/styled.ts';
import { formatSeconds, type LiveRow, type LiveView, renderLive } from '../../../src/cli/output/live-view.ts';
import { HOSTILE, UNSAFE } from '../../support/hostile-text.ts';

const NOW = 1_000_000;
const EMPTY: LiveView = {
  title: 'apply fleet.yaml',
  startedAt: NOW - 252_000,
  total: 200,
  done: 118,
  restMs: 175_000,
  counts: [
    { word: 'changed', count: 110, style: 'green' },
    { word: 'ok', count: 6 },
    { word: 'failed', count: 1, style: 'red' },
    { word: 'unreachable', count: 1 },
    { word: 'not started', count: 0 },
  ],
  notes: ['up to 20 at once', '62 not started'],
  active: [],
  failures: [],
};

function row(name: string, activity: string, seconds: number, more: Partial<LiveRow> = {}): LiveRow {
  return { name, activity, since: NOW - seconds * 1000, medianMs: null, deadline: null, ...more };
}
const edge = (number: number): string => `edge-${String(number).padStart(3, '0')}`;
const linesOf = (view: LiveView, width = 110, height = 24): readonly string[] =>
  renderLive(view, { width, height }, NOW).map((line: Text) => renderText(line, false));

const BUSY: LiveView = {
  ...EMPTY,
  active: [
    row(edge(31), 'restart kubelet', 12),
    row(edge(32), 'waiting for Ready', 48, { medianMs: 9_000 }),
    ...Array.from({ length: 18 }, (_, i) => row(edge(33 + i), 'uploading files', i % 3)),
  ],
  failures: [{ name: edge(17), text: 'rolled back: kubelet exited: open /no/such.crt' }],
};

describe('the live display', () => {
  it('has one line for the progress, and one for each activity and each kind of failure', () => {
    expect(linesOf(BUSY, 130)).toEqual([
      'apply fleet.yaml  ▕███████████░░░░░░░░░▏ 118/200  4m12s  ~3m left     changed 110 · ok 6 · failed 1 · unreachable 1',
      '  up to 20 at once · 62 not started',
      '  edge-032             waiting for Ready     48s  ← slow (median 9s)',
      '  edge-031             restart kubelet       12s',
      '  edge-[033:050] (18)  uploading files        2s',
      '  ✗ edge-017 rolled back: kubelet exited: open /no/such.crt',
    ]);
  });

  it('moves the counts to a second line, shortens the bar and then omits it on a narrow terminal', () => {
    const heads = [120, 100, 60, 46, 30].map((width) => linesOf({ ...EMPTY, notes: [] }, width));
    expect(heads).toEqual([
      ['apply fleet.yaml  ▕███████████░░░░░░░░░▏ 118/200  4m12s  ~3m left     changed 110 · ok 6 · failed 1 · unreachable 1'],
      ['apply fleet.yaml  ▕███████████░░░░░░░░░▏ 118/200  4m12s  ~3m left', '  changed 110 · ok 6 · failed 1 · unreachable 1'],
      ['apply fleet.yaml  ▕████████░░░░░░▏ 118/200  4m12s  ~3m left', '  changed 110 · ok 6 · failed 1 · unreachable 1'],
      ['apply fleet.yaml  118/200  4m12s  ~3m left', '  changed 110 · ok 6 · failed 1 · unreachabl…'],
      ['apply fleet.yaml  118/200  4…', '  changed 110 · ok 6 · faile…'],
    ]);
  });

  it.each([
    [110, 24],
    [80, 10],
    [40, 5],
    [12, 3],
    [1, 1],
  ])('fits a terminal of %d columns and %d lines, with 200 different hosts in progress and 50 failures', (width, height) => {
    const active = Array.from({ length: 200 }, (_, i) => row(edge(i), `activity ${i}`, i, { medianMs: 2_000 }));
    const failures = Array.from({ length: 50 }, (_, i) => ({ name: edge(i), text: `failed: reason ${i}` }));
    const lines = linesOf({ ...EMPTY, active, failures }, width, height);
    expect(lines.length).toBeLessThanOrEqual(Math.max(height - 1, 1));
    for (const line of lines) expect([...line].length).toBeLessThanOrEqual(Math.max(width - 1, 1));
  });

  it('counts the hosts that do not fit', () => {
    const active = Array.from({ length: 30 }, (_, i) => row(edge(i), `activity ${i}`, 1));
    const failures = Array.from({ length: 9 }, (_, i) => ({ name: edge(100 + i), text: `failed: reason ${i}` }));
    const lines = linesOf({ ...EMPTY, notes: [], active, failures }, 130, 12);
    expect(lines).toHaveLength(11);
    expect(lines.filter((line) => line.includes('… and'))).toEqual(['  … and 26 more in progress', '  … and 5 more failed']);
  });

  it('gives the space of the failures to the hosts in progress while none has failed, and the reverse', () => {
    const active = Array.from({ length: 9 }, (_, i) => row(edge(i), `activity ${i}`, 1));
    expect(linesOf({ ...EMPTY, notes: [], active }, 130, 11).filter((line) => line.includes('activity'))).toHaveLength(9);
    const failures = Array.from({ length: 9 }, (_, i) => ({ name: edge(i), text: `failed: reason ${i}` }));
    expect(linesOf({ ...EMPTY, notes: [], failures }, 130, 11).filter((line) => line.includes('✗'))).toHaveLength(9);
  });

  it('folds hosts with the same failure', () => {
    const failures = [3, 1, 2].map((i) => ({ name: edge(i), text: 'unreachable: connection refused' }));
    expect(linesOf({ ...EMPTY, failures }).at(-1)).toBe('  ✗ edge-[001:003] (3) unreachable: connection refused');
  });

  it('has a host that rolls back above slow ones', () => {
    const active = [...BUSY.active, row(edge(99), 'rolling back', 1, { isRollingBack: true })];
    expect(linesOf({ ...BUSY, active }, 130)[2]).toBe('  edge-099             rolling back           1s');
  });

  it('marks a host as slow beyond three times the median and five seconds', () => {
    const isSlow = (seconds: number, medianMs: number | null): boolean =>
      linesOf({ ...EMPTY, active: [row('n1', 'restart', seconds, { medianMs })] })
        .at(-1)
        ?.includes('slow') ?? false;
    expect([isSlow(31, 10_000), isSlow(30, 10_000), isSlow(6, 500), isSlow(5, 500), isSlow(600, null)]).toEqual([
      true,
      false,
      true,
      false,
      false,
    ]);
  });

  it('shows how much of a time limit is left, of several hosts the first to end', () => {
    const deadline = (seconds: number) => ({ deadline: { what: 'rolls back', at: NOW + seconds * 1000 } });
    const active = [row('n1', 'confirming', 4, deadline(296)), row('n2', 'confirming', 2, deadline(298)), row('n3', 'inspecting', 1)];
    expect(linesOf({ ...EMPTY, active }).slice(2)).toEqual([
      '  n1, n2 (2)  confirming      4s  rolls back in 4m56s',
      '  n3          inspecting      1s',
    ]);
    expect(linesOf({ ...EMPTY, active: [row('n1', 'confirming', 4, deadline(-1))] }).at(-1)).toBe('  n1  confirming      4s');
  });

  it('of one host has no bar and no count', () => {
    const view = { ...EMPTY, title: 'join node1', total: 1, done: 0, restMs: null, counts: [], notes: [] };
    expect(linesOf({ ...view, active: [row('node1', 'kubelet-start', 3)] })).toEqual([
      'join node1  4m12s',
      '  node1  kubelet-start      3s',
    ]);
  });

  it('never interprets names and messages of hosts', () => {
    const view = {
      ...EMPTY,
      title: HOSTILE,
      notes: [HOSTILE],
      active: [row(HOSTILE, HOSTILE, 1)],
      failures: [{ name: HOSTILE, text: HOSTILE }],
    };
    const lines = linesOf({ ...view, active: [...view.active, row('n1', `a\nb\r${HOSTILE}`, 1)] }, 200);
    expect(lines.join('')).not.toMatch(UNSAFE);
    expect(lines.join('')).not.toContain('\n');
  });
});

it.each([
  [-5, '0s'],
  [999, '0s'],
  [61_500, '1m1s'],
  [3_600_000, '1h0m0s'],
])('formats %d ms as %s', (ms, text) => {
  expect(formatSeconds(ms)).toBe(text);
});
