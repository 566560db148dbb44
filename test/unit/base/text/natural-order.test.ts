import { describe, expect, it } from 'vitest';
import { sortKeysNaturally } from '../../../../src/base/text/natural-order.ts';

describe('sortKeysNaturally', () => {
  it.each([
    ['numbers by value', ['a1', 'a01', 'a2', 'a10', 'a100']],
    ['letters after all other characters', ['', '-', '_', '1', '10', 'A', 'Z', 'a', 'a-b', 'a.b', 'aB', 'ab', '\u00e9']],
    ['a shorter key first', ['maxPods', 'maxPodsPerCore']],
    ['zeros inside a number', ['v1', 'v10', 'v010', 'v11', 'v100', 'v101']],
  ])('%s', (_, keys) => {
    expect(sortKeysNaturally(keys.toReversed())).toEqual(keys);
  });

  it('does not change its input and does not depend on its order', () => {
    const keys = ['9yes', '02?', '0x1\r', 'a1'] as const;
    const sorted = sortKeysNaturally(keys);
    expect(sortKeysNaturally([...keys].reverse())).toEqual(sorted);
    expect(keys).toEqual(['9yes', '02?', '0x1\r', 'a1']);
  });
});
