import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unifiedDiff } from '../../../../src/host/plan/text-diff.ts';
import { applyDiff } from '../../../support/apply-diff.ts';

const NAMES = { before: 'a', after: 'b' };
const diff = (before: string, after: string): string => unifiedDiff(before, after, NAMES);
const numbered = (from: number, to: number): string => Array.from({ length: to - from + 1 }, (_, i) => `${from + i}\n`).join('');

describe('unifiedDiff', () => {
  /** As GNU diff 3.8 prints them. */
  it.each([
    ['equal texts', 'a\n', 'a\n', ''],
    ['a new file', '', 'a\nb\n', '--- a\n+++ b\n@@ -0,0 +1,2 @@\n+a\n+b\n'],
    ['a file that becomes empty', 'a\nb\n', '', '--- a\n+++ b\n@@ -1,2 +0,0 @@\n-a\n-b\n'],
    ['one line of one', 'a\n', 'b\n', '--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n'],
    ['a line in the middle', 'a\nb\nc\n', 'a\nx\nc\n', '--- a\n+++ b\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n'],
    ['a newline that is lost', 'a\nb\n', 'a\nb', '--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n'],
    ['a newline that is gained', 'a', 'a\n', '--- a\n+++ b\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n'],
    ['no newline on both sides', 'a\nz', 'b\nz', '--- a\n+++ b\n@@ -1,2 +1,2 @@\n-a\n+b\n z\n\\ No newline at end of file\n'],
    ['an empty line', 'a\n\nb\n', 'a\nb\n', '--- a\n+++ b\n@@ -1,3 +1,2 @@\n a\n-\n b\n'],
    ['only a newline', '', '\n', '--- a\n+++ b\n@@ -0,0 +1 @@\n+\n'],
    [
      'three lines of context',
      numbered(1, 9),
      numbered(1, 4) + numbered(6, 9),
      '--- a\n+++ b\n@@ -2,7 +2,6 @@\n 2\n 3\n 4\n-5\n 6\n 7\n 8\n',
    ],
    [
      'changes six lines apart, which share a hunk',
      numbered(1, 8),
      `x\n${numbered(2, 7)}y\n`,
      '--- a\n+++ b\n@@ -1,8 +1,8 @@\n-1\n+x\n 2\n 3\n 4\n 5\n 6\n 7\n-8\n+y\n',
    ],
    [
      'changes seven lines apart, which do not',
      numbered(1, 9),
      `x\n${numbered(2, 8)}y\n`,
      '--- a\n+++ b\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n',
    ],
  ])('%s', (_, before, after, expected) => {
    expect(diff(before, after)).toBe(expected);
    expect(applyDiff(before, expected)).toBe(after);
  });

  it('puts the names into the heading', () => {
    expect(unifiedDiff('', 'x\n', { before: '/dev/null', after: '/etc/x' })).toMatch(/^--- \/dev\/null\n\+\+\+ \/etc\/x\n/);
  });

  const text = fc
    .tuple(fc.array(fc.constantFrom('a', 'b', 'c', '', '\\', '@@ -1 +1 @@', '--- a'), { maxLength: 25 }), fc.boolean())
    .map(([lines, newline]) => lines.join('\n') + (newline ? '\n' : ''));

  it('is what leads from the old text to the new one', () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        expect(applyDiff(before, diff(before, after))).toBe(after);
      }),
      { numRuns: 500 },
    );
  });

  it('touches no line that both texts begin or end with', () => {
    fc.assert(
      fc.property(text, fc.constantFrom('x', 'y'), fc.constantFrom('p', 'q'), (around, x, p) => {
        const changed = diff(`${around}\n${x}\n${around}\n`, `${around}\n${p}\n${around}\n`)
          .split('\n')
          .filter((line) => /^[-+](?!--|\+\+)/.test(line));
        expect(changed).toEqual([`-${x}`, `+${p}`]);
      }),
    );
  });

  it('takes out and puts in no more than the longest common part allows', () => {
    const word = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 10 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        const lines = diff(a.map((line) => `${line}\n`).join(''), b.map((line) => `${line}\n`).join(''))
          .split('\n')
          .slice(2);
        const kept = a.length - lines.filter((line) => line.startsWith('-')).length;
        expect(kept).toBe(longestCommon(a, b));
      }),
    );
  });

  it('stays quick and right on texts too big to compare line by line', () => {
    const before = Array.from({ length: 3000 }, (_, i) => `a${i}\n`).join('');
    const after = Array.from({ length: 3000 }, (_, i) => `b${i}\n`).join('');
    expect(applyDiff(`x\n${before}y\n`, diff(`x\n${before}y\n`, `x\n${after}y\n`))).toBe(`x\n${after}y\n`);
  });
});

function longestCommon(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return 0;
  const row = new Array<number>(b.length + 1).fill(0);
  for (const item of a) {
    let diagonal = 0;
    b.forEach((other, j) => {
      const above = row[j + 1] as number;
      row[j + 1] = item === other ? diagonal + 1 : Math.max(above, row[j] as number);
      diagonal = above;
    });
  }
  return row[b.length] as number;
}
