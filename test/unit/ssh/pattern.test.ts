import { describe, expect, it } from 'vitest';
import { matchPattern, matchPatternList } from '../../../src/ssh/pattern.ts';

describe('matchPattern', () => {
  it.each([
    ['node1', 'node1', true],
    ['node1', 'node?', true],
    ['node10', 'node?', false],
    ['node', 'node?', false],
    ['node1', '*', true],
    ['', '*', true],
    ['', '', true],
    ['', '?', false],
    ['a.b.example.com', '*.example.com', true],
    ['example.com', '*.example.com', false],
    ['aXbXc', 'a*b*c', true],
    ['abcbd', 'a*bd', true],
    ['a[1]', 'a[1]', true],
    ['a1', 'a[1]', false],
    ['Node', 'node', false],
    ['a', 'a**', true],
  ])('%j against %j: %s', (text, pattern, expected) => expect(matchPattern(text, pattern)).toBe(expected));

  it('matches a hostile pattern quickly', () => {
    expect(matchPattern('a'.repeat(5000), `${'a*'.repeat(200)}b`)).toBe(false);
  });
});

describe('matchPatternList', () => {
  it.each([
    ['n1', ['n1', 'n2'], true],
    ['n3', ['n1', 'n2'], false],
    ['n1', ['*', '!n1'], false],
    ['n1', ['!n1', '*'], false],
    ['n2', ['!n1'], false],
    ['n2', ['*', '!n1'], true],
  ])('%j against %j: %s', (text, patterns, expected) => expect(matchPatternList(text, patterns)).toBe(expected));
});
