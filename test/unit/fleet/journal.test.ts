import { describe, expect, it } from 'vitest';
import { encodeEntry, hostsToRetry, type JournalEntry, readJournal } from '../../../src/fleet/history/journal.ts';

const time = '2030-01-01T00:00:00.000Z';
const STARTED: JournalEntry = {
  event: 'run-started',
  time,
  command: 'apply',
  subject: '/srv/fleet.yaml',
  hosts: ['a', 'b', 'c', 'd', 'e'],
};
const began = (host: string): JournalEntry => ({ event: 'host-began', time, host });
const ended = (host: string, status: string): JournalEntry => ({ event: 'host-ended', time, host, status });
const textOf = (...entries: JournalEntry[]): string => entries.map(encodeEntry).join('');

describe('the journal of a run', () => {
  it('lists unfinished hosts for a retry', () => {
    const run = readJournal(
      textOf(STARTED, began('a'), ended('a', 'changed'), ended('b', 'unchanged'), began('c'), began('d'), ended('d', 'failed')),
    );
    expect(run).toMatchObject({ subject: '/srv/fleet.yaml', startedAt: time, isFinished: false });
    expect(run && hostsToRetry([run], 'apply')).toEqual(['c', 'd', 'e']);
  });

  it.each(['unreachable', 'refused', 'reverted', 'stopped', 'interrupted', 'failed'])('retries hosts that are %s', (status) => {
    const run = readJournal(textOf(STARTED, ended('a', status)));
    expect(run && hostsToRetry([run], 'apply')).toContain('a');
  });

  const runOver = (hosts: readonly string[], results: Readonly<Record<string, string>>, command = 'apply') => {
    const ends = Object.entries(results).map(([host, status]) => ended(host, status));
    const run = readJournal(textOf({ ...STARTED, command, hosts }, ...ends));
    if (run === null) throw new Error('not a journal');
    return run;
  };

  it('retries a host that failed in an earlier run and was not part of later ones', () => {
    const runs = [
      runOver(['a', 'b', 'c'], { a: 'changed', b: 'failed', c: 'unreachable' }),
      runOver(['a'], { a: 'reverted' }),
      runOver(['c'], { c: 'refused' }),
    ];
    expect(hostsToRetry(runs, 'apply')).toEqual(['b', 'c', 'a']);
  });

  it.each(['changed', 'unchanged'])('a later success (%s) clears a host, a later failure selects the host again', (status) => {
    const failed = runOver(['a', 'b'], { a: 'failed', b: 'failed' });
    const later = runOver(['a'], { a: status });
    expect(hostsToRetry([failed, later], 'apply')).toEqual(['b']);
    expect(hostsToRetry([failed, later, failed], 'apply')).toEqual(['b', 'a']);
  });

  it('a successful reset clears the failure of apply, an unsuccessful one does not', () => {
    const applied = runOver(['a', 'b'], { a: 'failed', b: 'failed' });
    const reset = runOver(['a', 'b'], { a: 'changed', b: 'unreachable' }, 'reset');
    expect(hostsToRetry([applied, reset], 'apply')).toEqual(['b']);
    expect(hostsToRetry([applied, reset], 'reset')).toEqual(['b']);
    expect(hostsToRetry([applied], 'reset')).toEqual([]);
  });

  it('is read up to a truncated entry', () => {
    const whole = textOf(STARTED, began('a'), ended('a', 'changed'));
    for (let length = encodeEntry(STARTED).length; length < whole.length - 1; length++) {
      const run = readJournal(whole.slice(0, length));
      expect(run && hostsToRetry([run], 'apply')[0]).toBe('a');
    }
    expect(readJournal(`${whole}{"event":"run-en`)).toMatchObject({ isFinished: false });
    expect(readJournal(`${whole}${encodeEntry({ event: 'run-ended', time, exitCode: 0 })}`)).toMatchObject({ isFinished: true });
  });

  it.each(['', '\n', 'nonsense\n', encodeEntry(began('a')), '{"event":"run-started"}\n'])('is invalid: %j', (text) => {
    expect(readJournal(text)).toBeNull();
  });
});
