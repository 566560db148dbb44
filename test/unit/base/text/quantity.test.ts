import { describe, expect, it } from 'vitest';
import {
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
  quantitySign,
  quantityValue,
} from '../../../../src/base/text/quantity.ts';

function quantity(text: string): Quantity {
  const parsed = parseQuantity(text);
  if (!parsed) throw new Error(`${text} is not a valid quantity`);
  return parsed;
}

describe('parseQuantity', () => {
  // Recorded from k8s.io/apimachinery 1.36: the printed form of a value just parsed, and its canonical form.
  it.each<[text: string, printed: string, canonical: string]>([
    ['0', '0', '0'],
    ['00', '0', '0'],
    ['1', '1', '1'],
    ['-1', '-1', '-1'],
    ['+1', '+1', '1'],
    ['1.5', '1500m', '1500m'],
    ['1.500', '1.500', '1500m'],
    ['0.5', '500m', '500m'],
    ['.5', '500m', '500m'],
    ['5.', '5.', '5'],
    ['100m', '100m', '100m'],
    ['1500m', '1500m', '1500m'],
    ['1k', '1k', '1k'],
    ['1.5k', '1500', '1500'],
    ['1.500k', '1.500k', '1500'],
    ['1000', '1k', '1k'],
    ['1000k', '1M', '1M'],
    ['1000000', '1M', '1M'],
    ['1024', '1024', '1024'],
    ['1Ki', '1Ki', '1Ki'],
    ['1024Ki', '1Mi', '1Mi'],
    ['1.5Gi', '1536Mi', '1536Mi'],
    ['0.3Mi', '314572800m', '314572800m'],
    ['0.5Ki', '512', '512'],
    ['1023Mi', '1023Mi', '1023Mi'],
    ['1024Mi', '1Gi', '1Gi'],
    ['007', '007', '7'],
    ['1e3', '1e3', '1e3'],
    ['1E3', '1E3', '1e3'],
    ['12e6', '12e6', '12e6'],
    ['100e1', '1e3', '1e3'],
    ['1e-3', '1e-3', '1e-3'],
    ['1e-10', '1e-9', '1e-9'],
    ['0.1n', '1n', '1n'],
    ['-0.1n', '-1n', '-1n'],
    ['1.0000000001', '1000000001n', '1000000001n'],
    ['9223372036854775808', '9223372036854775808', '9223372036854775808'],
    ['8Ei', '9223372036854775807', '9223372036854775807'],
    ['7Ei', '7Ei', '7Ei'],
    ['100E', '100E', '100E'],
    ['1000E', '1', '1'],
    ['9e99', '9e99', '9e99'],
    ['Mi', '0', '0'],
    ['.', '0', '0'],
    ['+', '0', '0'],
    ['1234567890123456789012', '1234567890123456789012', '1234567890123456789012'],
    ['-1.5Gi', '-1536Mi', '-1536Mi'],
    ['16Pi', '16Pi', '16Pi'],
    ['1.1Ti', '1209462790553600m', '1209462790553600m'],
  ])('%s prints as %s, canonically %s', (text, printed, canonical) => {
    expect(quantity(text).text).toBe(printed);
    expect(formatQuantity(quantity(text))).toBe(canonical);
  });

  it.each(['', '1GB', '1 Gi', ' 1', '1e', '1e3.5', '--1', '1..2', '1ki', '1K', 'abc', '1e99999999999999999999', 'Pi', '.Ei'])(
    'refuses %j',
    (text) => {
      expect(parseQuantity(text)).toBeNull();
    },
  );
});

describe('parseQuantity of very long texts', () => {
  it('rejects them immediately', () => {
    for (const text of ['9'.repeat(1_000_000), `1e${'9'.repeat(1_000_000)}`, `0.${'0'.repeat(1_000_000)}1`])
      expect(parseQuantity(text)).toBeNull();
  });
});

describe('compareQuantities', () => {
  it.each<[string, string, number]>([
    ['1Gi', '1024Mi', 0],
    ['1G', '1Gi', -1],
    ['1', '1000m', 0],
    ['1.0000000001', '1', 1],
    ['-1', '0', -1],
    ['-2', '-1', -1],
    ['0', '-0', 0],
    ['1e2000000000', '1e1999999999', 1],
    ['-1e2000000000', '1', -1],
    ['8Ei', '9223372036854775807', 0],
  ])('%s and %s: %i', (a, b, order) => {
    expect(compareQuantities(quantity(a), quantity(b))).toBe(order);
    expect(compareQuantities(quantity(b), quantity(a))).toBe(order === 0 ? 0 : -order);
  });
});

describe('quantityValue and quantitySign', () => {
  it.each<[string, bigint, number]>([
    ['1Gi', 1073741824n, 1],
    ['1500m', 2n, 1],
    ['-1500m', -2n, -1],
    ['1n', 1n, 1],
    ['0', 0n, 0],
    ['1e3', 1000n, 1],
    ['8Ei', 9223372036854775807n, 1],
    ['1e100', 10n ** 64n, 1],
    ['-9e2000000000', -(10n ** 64n), -1],
  ])('%s is %s', (text, value, sign) => {
    expect(quantityValue(quantity(text))).toBe(value);
    expect(quantitySign(quantity(text))).toBe(sign);
  });
});
