import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { diffEqualTextsOnce, unifiedDiff } from '../../../../src/host/plan/text-diff.ts';
import { applyDiff } from '../../../support/apply-diff.ts';
import { numberOfRuns } from '../../../support/thorough.ts';

const NAMES = { before: 'a', after: 'b' };
const diff = (before: string, after: string): string => unifiedDiff(before, after, NAMES);
const numbered = (from: number, to: number): string => Array.from({ length: to - from + 1 }, (_, i) => `${from + i}\n`).join('');

describe('unifiedDiff', () => {
  /** Expected texts as printed by GNU diff 3.8. */
  it.each([
    ['equal texts', 'a\n', 'a\n', ''],
    ['a new file', '', 'a\nb\n', '--- a\n+++ b\n@@ -0,0 +1,2 @@\n+a\n+b\n'],
    ['a file that becomes empty', 'a\nb\n', '', '--- a\n+++ b\n@@ -1,2 +0,0 @@\n-a\n-b\n'],
    ['one changed line of one', 'a\n', 'b\n', '--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n'],
    ['a line in the middle', 'a\nb\nc\n', 'a\nx\nc\n', '--- a\n+++ b\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n'],
    ['a removed trailing newline', 'a\nb\n', 'a\nb', '--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n'],
    ['an added trailing newline', 'a', 'a\n', '--- a\n+++ b\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n'],
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
      'changes seven lines apart, in separate hunks',
      numbered(1, 9),
      `x\n${numbered(2, 8)}y\n`,
      '--- a\n+++ b\n@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n',
    ],
  ])('%s', (_, before, after, expected) => {
    expect(diff(before, after)).toBe(expected);
    expect(applyDiff(before, expected)).toBe(after);
  });

  it('prints the names in the header', () => {
    expect(unifiedDiff('', 'x\n', { before: '/dev/null', after: '/etc/x' })).toMatch(/^--- \/dev\/null\n\+\+\+ \/etc\/x\n/);
  });

  const text = fc
    .tuple(fc.array(fc.constantFrom('a', 'b', 'c', '', '\\', '@@ -1 +1 @@', '--- a'), { maxLength: 25 }), fc.boolean())
    .map(([lines, newline]) => lines.join('\n') + (newline ? '\n' : ''));

  it('turns the old text into the new text', () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        expect(applyDiff(before, diff(before, after))).toBe(after);
      }),
      { numRuns: numberOfRuns(500) },
    );
  });

  it('changes no line of a common prefix or suffix', () => {
    fc.assert(
      fc.property(text, fc.constantFrom('x', 'y'), fc.constantFrom('p', 'q'), (around, x, p) => {
        const changed = diff(`${around}\n${x}\n${around}\n`, `${around}\n${p}\n${around}\n`)
          .split('\n')
          .filter((line) => /^[-+](?!--|\+\+)/.test(line));
        expect(changed).toEqual([`-${x}`, `+${p}`]);
      }),
    );
  });

  it('removes and adds only lines outside a longest common subsequence', () => {
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

  it('is fast and correct for texts that are too large for a line comparison', () => {
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

describe('diffEqualTextsOnce', () => {
  const [a, b] = [
    { before: 'a', after: 'a' },
    { before: 'b', after: 'b' },
  ];

  it('returns the diff of these texts and names, regardless of the ones before', () => {
    const diffTexts = diffEqualTextsOnce(3);
    const cases = ['', 'x\n', 'x\ny\n'].flatMap((before) =>
      ['', 'x\n', 'z\n'].flatMap((after) => [a, b].map((names) => ({ before, after, names }))),
    );
    for (const { before, after, names } of [...cases, ...cases])
      expect(diffTexts(before, after, names)).toBe(unifiedDiff(before, after, names));
  });

  it('distinguishes where the first text ends', () => {
    const diffTexts = diffEqualTextsOnce();
    expect(diffTexts('x\ny\n', 'z\n', a)).not.toBe(diffTexts('x\n', 'y\nz\n', a));
  });
});
