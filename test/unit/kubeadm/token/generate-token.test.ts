import { randomBytes, randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { generateToken } from '../../../../src/kubeadm/token/token-secret.ts';

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';
const TOKENS = 10_000;

/** Pearson's chi-squared statistic of token characters against a uniform distribution; 35 degrees of freedom. */
function chiSquare(random: (limit: number) => number, at: (token: string) => string = (token) => token.replace('.', '')): number {
  const counts = new Map([...ALPHABET].map((character) => [character, 0]));
  let total = 0;
  for (let i = 0; i < TOKENS; i++) {
    for (const character of at(generateToken(random).reveal())) {
      counts.set(character, (counts.get(character) ?? 0) + 1);
      total++;
    }
  }
  const expected = total / ALPHABET.length;
  return [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

/** Exceeded by chance once in 10^9 runs. */
const LIMIT = 107;

describe('generateToken', () => {
  it('generates valid and unique tokens', () => {
    const tokens = Array.from({ length: 1000 }, () => generateToken(randomInt).reveal());
    for (const token of tokens) expect(token).toMatch(/^[a-z0-9]{6}\.[a-z0-9]{16}$/);
    expect(new Set(tokens.map((token) => token.slice(0, 6))).size).toBeGreaterThan(995);
    expect(new Set(tokens).size).toBe(1000);
  });

  it('uses every character equally often, overall and at each position', () => {
    expect(chiSquare(randomInt)).toBeLessThan(LIMIT);
    for (const place of [0, 5, 7, 22]) expect(chiSquare(randomInt, (token) => token.charAt(place))).toBeLessThan(LIMIT);
  });

  it('would exceed the limit with remainders of bytes', () => {
    const bytes = randomBytes(22 * TOKENS).values();
    expect(chiSquare((limit) => (bytes.next().value ?? 0) % limit)).toBeGreaterThan(LIMIT);
  });

  it('requests numbers below the size of the alphabet, and uses both ends', () => {
    expect(generateToken(() => 0).reveal()).toBe('000000.0000000000000000');
    expect(generateToken((limit) => limit - 1).reveal()).toBe('zzzzzz.zzzzzzzzzzzzzzzz');
  });

  it('prints masked', () => {
    expect(String(generateToken(randomInt))).toBe('[secret]');
  });
});
