import { describe, expect, it } from 'vitest';
import { appendHistory, type HistoryEntry, historyEntry, parseHistory } from '../../../src/fleet/host-history.ts';

const ENTRY: HistoryEntry = {
  time: '2026-03-01T12:00:00.000Z',
  operator: 'alice@laptop',
  command: 'apply',
  result: 'changed',
  fields: [],
  changes: [],
};

function append(times: number, entry: (index: number) => HistoryEntry): string {
  let content = '';
  for (let index = 0; index < times; index++) content = appendHistory(content, entry(index));
  return content;
}

describe('the journal of a host', () => {
  it('keeps the 200 newest entries', () => {
    const content = append(203, (index) => ({ ...ENTRY, reason: `ticket ${index}` }));
    const reasons = parseHistory(content).map(({ reason }) => reason);
    expect(reasons).toHaveLength(200);
    expect([reasons[0], reasons.at(-1)]).toEqual(['ticket 3', 'ticket 202']);
  });

  it('keeps at most 64 KiB, the newest entries', () => {
    const content = append(30, (index) => ({ ...ENTRY, reason: `${index}`, changes: ['é'.repeat(2_000)] }));
    expect(Buffer.byteLength(content)).toBeLessThanOrEqual(64 * 1024);
    const reasons = parseHistory(content).map(({ reason }) => Number(reason));
    expect(reasons).toEqual(Array.from({ length: reasons.length }, (_, i) => 30 - reasons.length + i));
    expect(reasons.length).toBeGreaterThan(10);
  });

  it('drops truncated lines and lines of others', () => {
    const content = appendHistory(`{"time":"2026\nnull\n[]\n${JSON.stringify({ ...ENTRY, result: 'perfect' })}\n`, ENTRY);
    expect(content).toBe(`${JSON.stringify(ENTRY)}\n`);
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
    const entry = historyEntry({
      time: new Date(0),
      operator: 'alice@laptop',
      login: null,
      note: { command: 'apply', reason: 'r'.repeat(10_000) },
      result: 'failed',
      problems: ['KUBELET_UNHEALTHY'],
      plan: { name: 'n1', phases: [{ phase: 'kubelet-start', plan: { changes: [write] } }] },
    });
    expect(JSON.stringify(entry).length).toBeLessThan(24_000);
    expect(entry.changes).toEqual(['kubelet-start write-file /x']);
    expect(entry.fields).toHaveLength(40);
    expect(entry).not.toHaveProperty('login');
  });
});
