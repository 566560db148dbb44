import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatGoDuration, parseGoDuration } from '../../../../src/base/text/go-duration.ts';

describe('parseGoDuration and formatGoDuration', () => {
  // Recorded from Go 1.26.
  it.each<[text: string, nanoseconds: bigint, printed: string]>([
    ['0', 0n, '0s'],
    ['+0', 0n, '0s'],
    ['-0', 0n, '0s'],
    ['1s', 1_000_000_000n, '1s'],
    ['60s', 60_000_000_000n, '1m0s'],
    ['90s', 90_000_000_000n, '1m30s'],
    ['1.5s', 1_500_000_000n, '1.5s'],
    ['.5m', 30_000_000_000n, '30s'],
    ['5.s', 5_000_000_000n, '5s'],
    ['+10s', 10_000_000_000n, '10s'],
    ['-10s', -10_000_000_000n, '-10s'],
    ['1h30m', 5_400_000_000_000n, '1h30m0s'],
    ['1h1ns', 3_600_000_000_001n, '1h0m0.000000001s'],
    ['100ms', 100_000_000n, '100ms'],
    ['1500us', 1_500_000n, '1.5ms'],
    ['1500\u00b5s', 1_500_000n, '1.5ms'],
    ['1500\u03bcs', 1_500_000n, '1.5ms'],
    ['1.5us', 1_500n, '1.5\u00b5s'],
    ['-1ns', -1n, '-1ns'],
    ['3000h', 10_800_000_000_000_000n, '3000h0m0s'],
    ['1m1m', 120_000_000_000n, '2m0s'],
    ['39h9m14.425s', 140_954_425_000_000n, '39h9m14.425s'],
    ['2562047h47m16.854775807s', 9_223_372_036_854_775_807n, '2562047h47m16.854775807s'],
    ['-2562047h47m16.854775808s', -9_223_372_036_854_775_808n, '-2562047h47m16.854775808s'],
    ['0.3333333333333333333h', 1_200_000_000_000n, '20m0s'],
    ['0.9223372036854775807h', 3_320_413_933_267n, '55m20.413933267s'],
    ['0.100000000000000000000h', 360_000_000_000n, '6m0s'],
  ])('%s is %s ns, printed as %s', (text, nanoseconds, printed) => {
    expect(parseGoDuration(text)).toBe(nanoseconds);
    expect(formatGoDuration(nanoseconds)).toBe(printed);
  });

  it.each([
    ...['', '1', '10', '1d', 's', '.s', '-', '+', '--1s', '1s ', ' 1s', '1h 1m', 'PT1S', '1S', '1.2.3s', '1e3s', '0x1s', '1sh', '\u221es'],
    ...['2562047h47m16.854775808s', '9223372036854775808ns', '3000000h', `${'9'.repeat(100_000)}s`],
  ])('refuses %s', (text) => {
    expect(parseGoDuration(text)).toBeNull();
  });

  it('parses its own output', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 53n), max: 2n ** 53n }), (nanoseconds) => {
        expect(parseGoDuration(formatGoDuration(nanoseconds))).toBe(nanoseconds);
      }),
    );
  });
});
