import { Secret } from '../../base/text/secret.ts';

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';

/**
 * Generates a bootstrap token.
 * @param randomInt returns uniformly distributed, unpredictable integers from 0 to below `limit` (no modulo
 *   bias)
 */
export function generateToken(randomInt: (limit: number) => number): Secret {
  const characters = (count: number): string => Array.from({ length: count }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('');
  return new Secret(`${characters(6)}.${characters(16)}`);
}
