import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type HistoryEntry, journalOperation, parseHistory } from '../../src/fleet/history/host-history.ts';
import { HISTORY_PATH } from '../../src/host/commit/revert-script.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import { shellTransport } from '../support/shell-transport.ts';

const ENTRY = { time: '2026-03-01T12:00:00.000Z', operator: 'alice@laptop', command: 'apply', result: 'changed' as const };

describe('the journal on a host', () => {
  let rootDir: string;
  const file = (): string => join(rootDir, HISTORY_PATH);
  const entries = (): readonly HistoryEntry[] => parseHistory(readFileSync(file(), 'utf8'));
  beforeEach(() => {
    rootDir = mkdtempSync(join(tmpdir(), 'ka-journal-'));
  });
  afterEach(() => rmSync(rootDir, { recursive: true, force: true }));

  const add = (more: Partial<HistoryEntry> & { readonly id: string }, isOptional = false): Promise<void> =>
    hostOverTransport(shellTransport({ shell: ['/bin/sh'] }), { rootDir, nonce: () => 'a'.repeat(32) }).perform([
      journalOperation({ ...ENTRY, fields: [], changes: [], ...more }, isOptional),
    ]);

  it('is created for root alone, with the user of the login in each entry', async () => {
    await add({ id: 'a', reason: 'it\'s "quoted" and $HOME\\n' });
    expect(entries()).toMatchObject([{ id: 'a', login: expect.stringMatching(/^[\w.@+-]+$/), reason: 'it\'s "quoted" and $HOME\\n' }]);
    expect([statSync(file()).mode & 0o777, statSync(dirname(file())).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readdirSync(dirname(file()))).toEqual(['history.jsonl']);
  });

  it('replaces the start of a change by its end, and keeps the start of a run that was killed', async () => {
    await add({ id: 'killed', result: 'started' });
    await add({ id: 'done', result: 'started' });
    await add({ id: 'done', result: 'changed' });
    expect(entries().map(({ id, result }) => [id, result])).toEqual([
      ['killed', 'started'],
      ['done', 'changed'],
    ]);
  });

  it('keeps the 200 newest entries, in at most 64 KiB', async () => {
    await add({ id: 'old' });
    const line = readFileSync(file(), 'utf8');
    writeFileSync(file(), line.repeat(250));
    await add({ id: 'new' });
    expect(entries()).toHaveLength(200);
    expect(entries().at(-1)).toMatchObject({ id: 'new' });
    writeFileSync(file(), `${JSON.stringify({ ...entries()[0], changes: ['é'.repeat(1_000)] })}\n`.repeat(60));
    await add({ id: 'newest', reason: 'é'.repeat(200) });
    expect(statSync(file()).size).toBeLessThanOrEqual(64 * 1024);
    expect(entries().length).toBeGreaterThan(20);
    expect(entries().at(-1)).toMatchObject({ id: 'newest' });
  });

  it('fails if it cannot be written, unless the entry is optional', async () => {
    await add({ id: 'a' });
    rmSync(dirname(file()), { recursive: true });
    writeFileSync(dirname(file()), 'a file in place of the directory');
    await expect(add({ id: 'b' })).rejects.toThrow(`cannot write ${HISTORY_PATH}`);
    await add({ id: 'b' }, true);
    expect(existsSync(file())).toBe(false);
  });
});
