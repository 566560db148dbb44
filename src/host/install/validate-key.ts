import { readPublicKeys } from './openpgp.ts';

/**
 * Whether a key file may be trusted with packages: it holds pinned keys and no other, for a single foreign key in it could sign anything.
 * @param pins fingerprints in upper case
 * @returns why not, as a clause; null: it may
 */
export function validateKeyFile(text: string, pins: readonly string[], now: Date): string | null {
  const keys = readPublicKeys(text);
  if (keys === null) return 'not a file of ASCII-armored OpenPGP public keys';
  const foreign = keys.find(({ fingerprint }) => !pins.includes(fingerprint));
  if (foreign !== undefined) return `contains the key ${foreign.fingerprint}; expected only ${pins.join(', ')}`;
  const [first] = keys;
  if (keys.some(({ expiresAt }) => expiresAt === null || expiresAt > now)) return null;
  return `the key ${first?.fingerprint} expired on ${first?.expiresAt?.toISOString().slice(0, 10)}`;
}
