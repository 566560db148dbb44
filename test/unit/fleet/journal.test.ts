import { describe, expect, it } from 'vitest';
import { encodeEntry, hostsToRetry, type JournalEntry, readJournal } from '../../../src/fleet/journal.ts';

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
    expect(run && hostsToRetry(run)).toEqual(['c', 'd', 'e']);
  });

  it.each(['unreachable', 'refused', 'reverted', 'stopped', 'interrupted', 'failed'])('retries hosts that are %s', (status) => {
    const run = readJournal(textOf(STARTED, ended('a', status)));
    expect(run && hostsToRetry(run)).toContain('a');
  });

  it('retries hosts of an earlier run that the last run did not include', () => {
    const run = readJournal(
      textOf({ ...STARTED, hosts: ['a', 'b'], remaining: ['x', 'y'] }, began('a'), ended('a', 'changed'), began('b')),
    );
    expect(run && hostsToRetry(run)).toEqual(['b', 'x', 'y']);
  });

  it('is read up to a truncated entry', () => {
    const whole = textOf(STARTED, began('a'), ended('a', 'changed'));
    for (let length = encodeEntry(STARTED).length; length < whole.length - 1; length++) {
      const run = readJournal(whole.slice(0, length));
      expect(run && hostsToRetry(run)[0]).toBe('a');
    }
    expect(readJournal(`${whole}{"event":"run-en`)).toMatchObject({ isFinished: false });
    expect(readJournal(`${whole}${encodeEntry({ event: 'run-ended', time, exitCode: 0 })}`)).toMatchObject({ isFinished: true });
  });

  it.each(['', '\n', 'nonsense\n', encodeEntry(began('a')), '{"event":"run-started"}\n'])('is invalid: %j', (text) => {
    expect(readJournal(text)).toBeNull();
  });
});
