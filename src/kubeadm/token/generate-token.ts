import { Secret } from '../../base/text/secret.ts';

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';

/**
 * A new bootstrap token.
 * @param randomInt gives whole numbers from 0 to below `limit`, each as likely as the others and none to be foretold: no remainders of random bytes
 */
export function generateToken(randomInt: (limit: number) => number): Secret {
  const characters = (count: number): string => Array.from({ length: count }, () => ALPHABET.charAt(randomInt(ALPHABET.length))).join('');
  return new Secret(`${characters(6)}.${characters(16)}`);
}
