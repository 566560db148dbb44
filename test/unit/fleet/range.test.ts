import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expandRanges, MAX_HOSTS } from '../../../src/fleet/file/range.ts';

function texts(pattern: string): readonly string[] | string {
  const expansion = expandRanges(pattern);
  return 'items' in expansion ? expansion.items.map(({ text }) => text) : expansion.fault.message;
}

describe('expandRanges', () => {
  it.each<[string, readonly string[]]>([
    ['node', ['node']],
    ['n[1:3]', ['n1', 'n2', 'n3']],
    ['n[01:03].lan', ['n01.lan', 'n02.lan', 'n03.lan']],
    ['n[8:10]', ['n8', 'n9', 'n10']],
    ['n[1:9:3]', ['n1', 'n4', 'n7']],
    ['n[:2]', ['n0', 'n1', 'n2']],
    ['n[0:1]', ['n0', 'n1']],
    ['[a:c]', ['a', 'b', 'c']],
    ['r[a:b]n[1:2]', ['ran1', 'ran2', 'rbn1', 'rbn2']],
    ['[Y:Z]', ['Y', 'Z']],
    ['n[5:5]', ['n5']],
  ])('%s', (pattern, expected) => {
    expect(texts(pattern)).toEqual(expected);
  });

  it.each([
    ['n[3:1]', '[3:1] has an end below its start'],
    ['n[c:a]', '[c:a] has an end below its start'],
    ['n[001:20]', '[001:20] has a start and an end with different numbers of digits'],
    ['n[1:]', '[1:] must have two numbers or two letters'],
    ['n[a:5]', '[a:5] must have two numbers or two letters'],
    ['n[1:5:0]', '[1:5:0] has a step that is not a positive number'],
    ['n[1:5:x]', '[1:5:x] has a step that is not a positive number'],
    ['n[1-5]', '[1-5] is not a range'],
    ['n[1:2:3:4]', '[1:2:3:4] is not a range'],
    ['n[]', '[] is not a range'],
    ['n[1:3', 'unmatched "["'],
    ['n1:3]', 'unmatched "]"'],
    ['n[[1:3]]', 'unmatched "["'],
    ['n[1:999999999999]', `[1:999999999999] has more than ${MAX_HOSTS} hosts`],
    ['n[1:1000][1:1000]', `[1:1000] has more than ${MAX_HOSTS} hosts`],
  ])('refuses %s', (pattern, message) => {
    expect(texts(pattern)).toBe(message);
  });

  it('returns the values of the brackets', () => {
    expect(expandRanges('r[a:a]n[07:07]')).toEqual({ items: [{ text: 'ran07', indexes: ['a', '07'] }] });
  });

  it('returns each element of any valid range exactly once', () => {
    fc.assert(
      fc.property(fc.nat(500), fc.nat(500), fc.integer({ min: 1, max: 50 }), (from, length, step) => {
        const names = texts(`n[${from}:${from + length}:${step}]`);
        expect(new Set(names).size).toBe(Math.floor(length / step) + 1);
      }),
    );
  });

  it('never throws another error on any text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('[', ']', ':', '0', '1', '9', 'a', 'Z', '-', ' ') }),
        (text) => void expandRanges(text),
      ),
    );
  });
});
