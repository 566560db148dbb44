import { describe, expect, it } from 'vitest';
import { hostsOf, parseAmount } from '../../../src/fleet/amount.ts';

describe('amounts', () => {
  it.each([
    ['5', 200, 5],
    ['20%', 200, 40],
    ['33%', 10, 3],
    ['5%', 10, 0],
    ['100%', 7, 7],
    ['0', 7, 0],
  ])('%s of %d hosts are %d', (text, total, hosts) => {
    const amount = parseAmount(text);
    expect(amount === null ? null : hostsOf(amount, total)).toBe(hosts);
  });

  it.each(['', '-1', '1.5', '101%', '%', '5 %', 'all', '1e3'])('%j is invalid', (text) => {
    expect(parseAmount(text)).toBeNull();
  });
});
