import { describe, expect, it } from 'vitest';
import { parseLabelSelector } from '../../../src/kube/label-selector.ts';

describe('parseLabelSelector', () => {
  it.each<[string, Record<string, string>, boolean]>([
    ['', {}, true],
    ['a', { a: '' }, true],
    ['a', {}, false],
    ['!a', {}, true],
    ['!a', { a: 'x' }, false],
    ['a=b', { a: 'b' }, true],
    ['a==b', { a: 'c' }, false],
    ['a = b', { a: 'b' }, true],
    ['a=', { a: '' }, true],
    ['a=,b', { a: '', b: 'x' }, true],
    ['a!=b', { a: 'c' }, true],
    ['a!=b', {}, true],
    ['a!=b', { a: 'b' }, false],
    ['a in (b,c)', { a: 'c' }, true],
    ['a in (b, c)', {}, false],
    ['a in (b,)', { a: '' }, true],
    ['a notin (b,c)', { a: 'c' }, false],
    ['a notin (b,c)', {}, true],
    ['a,b=c,!d', { a: '1', b: 'c' }, true],
    ['a,b=c,!d', { a: '1', b: 'c', d: '' }, false],
    ['n>5', { n: '10' }, true],
    ['n>5', { n: '5' }, false],
    ['n<5', { n: 'x' }, false],
    ['n<-1', { n: '-20' }, true],
    // Operators are keywords only in operator position.
    ['in in (in)', { in: 'in' }, true],
    ['notin', { notin: 'x' }, true],
    ['example.com/a-b_c.d=1', { 'example.com/a-b_c.d': '1' }, true],
    ['constructor', {}, false],
    ['!toString', {}, true],
  ])('%j on %j: %s', (text, labels, expected) => {
    expect(parseLabelSelector(text).matches(labels)).toBe(expected);
  });

  it.each([
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['a in x', "unable to parse requirement: found 'x' expected: '('"],
    ['a in (x', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['=x', "found '=', expected: !, identifier, or 'end of string'"],
    ['a,', "found '', expected: identifier after ','"],
    ['a=b=c', "found '=', expected: ',' or 'end of string'"],
    ['n>x', "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"],
  ])('refuses %j', (text, message) => {
    expect(() => parseLabelSelector(text)).toThrow(message);
  });

  it('parses long invalid input quickly', () => {
    expect(() => parseLabelSelector(`${'a,'.repeat(50_000)}=`)).toThrow();
  });
});
