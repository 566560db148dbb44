import { describe, expect, it } from 'vitest';
import { decideUndo, entriesToUndo } from '../../../src/fleet/history/decide-undo.ts';
import type { HistoryEntry } from '../../../src/fleet/history/host-history.ts';
import type { UndoRecord } from '../../../src/fleet/history/undo-record.ts';

const CONFIG = '/var/lib/kubelet/config.yaml';
const state = (maxPods: number) => ({ content: `maxPods: ${maxPods}\n`, mode: 0o644, owner: 'root:root' });
const entry = (n: number, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  id: `${n}${n}${n}${n}-1`,
  run: `${n}000${n}`,
  time: `2026-03-0${n}T12:00:00.000Z`,
  operator: 'alice@laptop',
  command: 'apply',
  result: 'changed',
  fields: [],
  changes: [`kubelet-start write-file ${CONFIG}`],
  ...more,
});
const record = (before: number | null, after: number | null, more: Partial<UndoRecord> = {}): UndoRecord => ({
  files: [{ path: CONFIG, before: before === null ? null : state(before), after: after === null ? null : state(after) }],
  left: [],
  ...more,
});

/** Changes 1, 2, 3 that set maxPods to 10, 20, 30. */
const HISTORY = [entry(1), entry(2), entry(3)];
const RECORDS = new Map([
  [entry(1).id, record(null, 10)],
  [entry(2).id, record(10, 20)],
  [entry(3).id, record(20, 30)],
]);

function undo(
  maxPods: number | null,
  {
    to,
    history = HISTORY,
    records = RECORDS,
  }: {
    readonly to?: string;
    readonly history?: readonly HistoryEntry[];
    readonly records?: ReadonlyMap<string | undefined, UndoRecord>;
  } = {},
) {
  const entries = entriesToUndo('n1', history, to);
  const present = new Map(maxPods === null ? [] : [[CONFIG, { content: state(maxPods).content, modifiedAt: 1_772_000_000 }] as const]);
  const { undone, restore, left } = decideUndo({
    host: 'n1',
    entries,
    history,
    to,
    recordOf: ({ id }) => records.get(id) ?? null,
    present,
  });
  return { undone: undone.map(({ run }) => run), config: restore.get(CONFIG)?.content ?? null, left };
}

describe('the changes to undo', () => {
  it('are the last one, or all after the named one', () => {
    expect(undo(30)).toEqual({ undone: ['30003'], config: 'maxPods: 20\n', left: [] });
    expect(undo(30, { to: '1000' })).toMatchObject({ undone: ['30003', '20002'], config: 'maxPods: 10\n' });
    expect(undo(30, { to: '1111' })).toMatchObject({ config: 'maxPods: 10\n' });
    expect(undo(30, { to: '30003' })).toMatchObject({ undone: [], config: null });
  });

  it('may remove a file that the first change created', () => {
    expect(undo(30, { to: 'oldest' })).toMatchObject({ undone: ['30003', '20002', '10001'], config: null });
  });

  it('end with the oldest that can be undone', () => {
    const records = new Map([...RECORDS, [entry(2).id, { files: [], obstacle: 'it wrote a certificate', left: [] }]]);
    expect(undo(30, { to: 'oldest', records })).toMatchObject({ undone: ['30003'], config: 'maxPods: 20\n' });
    expect(() => undo(30, { to: '1000', records })).toThrow(/apply of alice@laptop .* is not undone: it wrote a certificate/);
  });

  it.each([
    ['a host without changes', [], undefined, /the history of the host has no change/],
    ['an unknown id', HISTORY, 'ffff', /no change with the id ffff/],
    ['an ambiguous id', [entry(1), entry(1, { run: '1000f', id: 'x' })], '1000', /--to 1000 is the beginning of several ids/],
  ] as const)('are refused for %s', (_, history, to, message) => {
    expect(() => undo(30, { history, ...(to === undefined ? {} : { to }) })).toThrow(message);
  });

  it('are refused if a file was changed since, with its fields and who changed it', () => {
    expect(() => undo(31)).toThrow(
      `${CONFIG} was changed since apply of alice@laptop at 2026-03-03T12:00:00Z (30003), not by kubeletadm at 2026-02-25T06:13:20Z: maxPods: 30 → 31`,
    );
    expect(() => undo(null)).toThrow('it does not exist any more');
    const history = [...HISTORY, entry(4, { command: 'upgrade node', operator: 'bob@ci', result: 'started' })];
    const records = new Map([...RECORDS, [entry(4).id, record(30, 40)]]);
    expect(() => undo(35, { history, records })).toThrow(
      /upgrade node of bob@ci .* was changed since|was changed since upgrade node of bob@ci/,
    );
  });

  it('are refused without a record of the files', () => {
    expect(() => undo(30, { records: new Map() })).toThrow(/the host has no copy of the previous files/);
  });

  it('do not include a change that was rolled back', () => {
    const history = [...HISTORY, entry(4, { result: 'rolled-back' })];
    const records = new Map([...RECORDS, [entry(4).id, record(30, 40)]]);
    expect(() => undo(30, { history, records })).toThrow(/nothing to undo: apply .*\(40004\) was rolled back already/);
    expect(undo(30, { history, records, to: '20002' })).toMatchObject({ undone: ['30003'], config: 'maxPods: 20\n' });
  });

  it.each(['started', 'failed'] as const)('include one that %s if the files are as after it', (result) => {
    const history = [...HISTORY, entry(4, { result })];
    const records = new Map([...RECORDS, [entry(4).id, record(30, 40)]]);
    expect(undo(40, { history, records })).toMatchObject({ undone: ['40004'], config: 'maxPods: 30\n' });
    expect(() => undo(30, { history, records })).toThrow(/had no effect on the files of the host/);
  });

  it('read no older records than those that the last change needs', () => {
    const ids = (history: readonly HistoryEntry[], to?: string) => entriesToUndo('n1', history, to).map(({ run }) => run);
    expect(ids(HISTORY)).toEqual(['30003']);
    expect(ids([...HISTORY, entry(4, { result: 'refused' })])).toEqual(['40004', '30003']);
    expect(ids([entry(4, { result: 'refused' })])).toEqual(['40004']);
    expect(ids(HISTORY, 'oldest')).toEqual(['30003', '20002', '10001']);
  });

  it('leave the hook of a refused change out', () => {
    const history = [...HISTORY, entry(4, { result: 'refused' })];
    expect(undo(30, { history })).toMatchObject({ undone: ['30003'] });
  });

  it('propose no id that a host has made up', () => {
    const history = [entry(1, { run: ';reboot;' }), ...HISTORY];
    expect(() => undo(30, { history, to: 'ffff' })).toThrow(/no change with the id ffff\. The newest ids are 30003, 20002, 10001\. \[/);
  });

  it('name what stays', () => {
    const records = new Map([...RECORDS, [entry(3).id, record(20, 30, { left: ['the labels and taints of Node n1'] })]]);
    expect(undo(30, { records }).left).toEqual(['the labels and taints of Node n1']);
  });
});
