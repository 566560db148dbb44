import { describe, expect, it } from 'vitest';
import { journalCommand, oldestFirst } from '../../../../src/host/access/journal.ts';

describe('the journal of a unit', () => {
  it('is asked for its last lines, which journalctl 252 prints with --reverse only', () => {
    const argv = journalCommand({ unit: 'kubelet', since: '-25s', lines: 500, bootOnly: true });
    expect(argv).toEqual(expect.arrayContaining(['--since=-25s', '--lines=500', '--reverse', '--boot']));
  });

  it('is read oldest line first', () => expect(oldestFirst('last\nmiddle\nfirst\n')).toBe('first\nmiddle\nlast'));
});
