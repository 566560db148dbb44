import { describe, expect, it } from 'vitest';
import type { HistoryEntry } from '../../../src/fleet/history/host-history.ts';
import { encodeEntry, type JournalEntry, type JournaledRun, readJournal } from '../../../src/fleet/history/journal.ts';
import { mergeHistory } from '../../../src/fleet/history/merge-history.ts';

const RUN = '0123456789abcdef';
const BASE = { operator: 'alice@laptop', command: 'apply', changes: [], fields: [{ field: 'maxPods', before: 110, after: 60 }] };
const entry = (more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  ...BASE,
  id: 'f00f-1',
  run: RUN,
  time: '2026-03-01T12:00:30.000Z',
  result: 'changed',
  ...more,
});

function journal(
  id: string | null,
  ...ends: readonly Omit<Extract<JournalEntry, { event: 'host-ended' }>, 'event' | 'time'>[]
): JournaledRun {
  const hosts = ['n1', 'n2'];
  const start = { event: 'run-started', time: '2026-03-01T12:00:00.000Z', command: 'apply', subject: '/srv/fleet.yaml', hosts } as const;
  const lines: readonly JournalEntry[] = [
    { ...start, ...(id === null ? {} : { id, operator: 'alice@laptop', reason: 'ticket 7' }) },
    ...hosts.map((host) => ({ event: 'host-began', time: '2026-03-01T12:00:10.000Z', host }) as const),
    ...ends.map((end) => ({ event: 'host-ended', time: '2026-03-01T12:01:00.000Z', ...end }) as const),
  ];
  return readJournal(lines.map(encodeEntry).join('')) as JournaledRun;
}

describe('the merged history of a host', () => {
  it('has a run once that both the host and the journal have recorded', () => {
    const runs = [journal(RUN, { host: 'n1', status: 'changed', change: entry({ id: `${RUN}-n1` }) })];
    expect(mergeHistory('n1', [entry()], runs)).toEqual([{ ...entry(), recordedIn: ['host', 'journal'] }]);
  });

  it('has the change of a run from the journal if the host is unreachable, with its fields', () => {
    const change = entry({ id: `${RUN}-n1` });
    expect(mergeHistory('n1', [], [journal(RUN, { host: 'n1', status: 'changed', change })])).toEqual([
      { ...change, recordedIn: ['journal'] },
    ]);
  });

  it('has the change from another machine, which has the journal', () => {
    expect(mergeHistory('n1', [entry()], [])).toEqual([{ ...entry(), recordedIn: ['host'] }]);
    const other = journal('fedcba9876543210', { host: 'n1', status: 'unchanged' });
    expect(mergeHistory('n1', [entry()], [other])).toHaveLength(1);
  });

  it('has the result of the journal for a run that left no end on the host', () => {
    const failed = { host: 'n1', status: 'failed', change: entry({ result: 'failed' }) };
    expect(mergeHistory('n1', [entry({ result: 'started' })], [journal(RUN, failed)])[0]).toMatchObject({ result: 'failed' });
    expect(mergeHistory('n1', [entry({ result: 'rolled-back' })], [journal(RUN)])[0]).toMatchObject({ result: 'rolled-back' });
  });

  it('has hosts that a run did not reach, and a run that was killed', () => {
    const [unreachable] = mergeHistory('n1', [], [journal(RUN, { host: 'n1', status: 'unreachable' })]);
    expect(unreachable).toMatchObject({ run: RUN, reason: 'ticket 7', operator: 'alice@laptop', result: 'unreachable', changes: [] });
    expect(mergeHistory('n2', [], [journal(RUN)])).toMatchObject([{ result: 'started' }]);
    expect(mergeHistory('n3', [], [journal(RUN)])).toEqual([]);
  });

  it('merges a run of an earlier version, without ids, by command and time', () => {
    const { run: _, ...old } = entry();
    const runs = [journal(null, { host: 'n1', status: 'changed' })];
    expect(mergeHistory('n1', [old], runs)).toEqual([{ ...old, recordedIn: ['host', 'journal'] }]);
    const later = { ...old, time: '2026-03-01T12:01:01.000Z' };
    expect(mergeHistory('n1', [later], runs).map(({ recordedIn }) => recordedIn)).toEqual([['journal'], ['host']]);
    expect(mergeHistory('n1', [{ ...old, command: 'reset' }], runs)).toHaveLength(2);
  });

  it('is sorted by time', () => {
    const history = [entry({ run: 'b', time: '2026-03-01T13:00:00.000Z' }), entry({ run: 'a', time: '2026-03-01T11:00:00.000Z' })];
    const runs = mergeHistory('n1', history, [journal(RUN, { host: 'n1', status: 'unreachable' })]);
    expect(runs.map(({ run }) => run)).toEqual(['a', RUN, 'b']);
  });
});
