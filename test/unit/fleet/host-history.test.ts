import { describe, expect, it } from 'vitest';
import { type HistoryEntry, historyEntry, parseHistory } from '../../../src/fleet/history/host-history.ts';

const ENTRY: HistoryEntry = {
  time: '2026-03-01T12:00:00.000Z',
  operator: 'alice@laptop',
  command: 'apply',
  result: 'changed',
  fields: [],
  changes: [],
};

describe('the journal of a host', () => {
  it('ignores truncated lines and lines of others', () => {
    const lines = ['{"time":"2026', 'null', '[]', JSON.stringify({ ...ENTRY, result: 'perfect' }), JSON.stringify(ENTRY)];
    expect(parseHistory(`${lines.join('\n')}\n`)).toEqual([ENTRY]);
  });

  it('has no login if the host does not know it', () => {
    expect(parseHistory(JSON.stringify({ login: '', ...ENTRY }))).toEqual([ENTRY]);
  });

  it('has entries of bounded length', () => {
    const fields = Array.from({ length: 100 }, (_, i) => ({
      field: `f${i}`,
      before: null,
      after: 'x'.repeat(5_000),
      impact: 'safe' as const,
    }));
    const write = {
      kind: 'write-file',
      path: '/x',
      mode: 0o644,
      owner: 'root:root',
      action: 'update',
      content: '',
      before: null,
      reason: '',
      fields,
    } as const;
    const plan = { name: 'n1', phases: [{ phase: 'kubelet-start', plan: { changes: [write] } }] };
    const note = { command: 'apply', reason: 'r'.repeat(10_000) };
    const start = { id: 'a', time: new Date(0), operator: 'alice@laptop', note, plan };
    const entry = historyEntry(start, 'failed', ['KUBELET_UNHEALTHY']);
    expect(JSON.stringify(entry).length).toBeLessThan(24_000);
    expect(entry.changes).toEqual(['kubelet-start write-file /x']);
    expect(entry.fields).toHaveLength(40);
  });
});
