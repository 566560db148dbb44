import { readPublicKeys } from './openpgp.ts';

/**
 * Whether a key file can be trusted for packages: it must contain only pinned keys, because one foreign key
 * could sign any package.
 * @param pins fingerprints in upper case
 * @returns the reason for a rejection, as a clause; null: trusted
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
