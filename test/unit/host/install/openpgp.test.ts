import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readPublicKeys } from '../../../../src/host/install/openpgp.ts';
import { validateKeyFile } from '../../../../src/host/install/plan-packages.ts';

const file = (name: string): string => readFileSync(new URL(`./fixtures/${name}.asc`, import.meta.url), 'utf8');

// Fingerprints and expiration times as printed by gpg --with-colons --fingerprint.
const ED25519 = { fingerprint: '1B2F41208366FFA1AB29264A993911C9808C95AA', expiresAt: new Date(2110661626_000) };
const EXPIRED = { fingerprint: 'D1CAB36BEF6E9257B13E9E98E9ED7258A55D4538', expiresAt: new Date(1795301631_000) };
const NO_EXPIRY = { fingerprint: '6B1BB40B01B84DB4FED188ECAC54F86189240365', expiresAt: null };
const NOW = new Date('2030-01-01T00:00:00Z');

describe('readPublicKeys', () => {
  it.each([
    ['ed25519-until-2036', ED25519],
    ['rsa-expired', EXPIRED],
    ['rsa-forever', NO_EXPIRY],
  ])('reads %s like gpg', (name, key) => {
    expect(readPublicKeys(file(name))).toEqual([key]);
    expect(readPublicKeys(`Some words.\r\n${file(name).replaceAll('\n', '\r\n')}`)).toEqual([key]);
  });

  it('reads all blocks of a file', () => {
    expect(readPublicKeys(file('rsa-forever') + file('ed25519-until-2036'))).toEqual([NO_EXPIRY, ED25519]);
  });

  it('returns null for a file without valid keys', () => {
    for (const text of ['', '<html>', '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n'])
      expect(readPublicKeys(text)).toBeNull();
  });

  it('never throws on truncated or changed bytes', () => {
    const bytes = Buffer.from(file('rsa-forever').split('\n').slice(2, -3).join(''), 'base64');
    for (let at = 0; at < bytes.length; at++)
      for (const changed of [bytes.subarray(0, at), Buffer.from(bytes.map((byte, i) => (i === at ? byte ^ 0xff : byte)))]) {
        const text = `-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n${changed.toString('base64')}\n-----END PGP PUBLIC KEY BLOCK-----\n`;
        const found = readPublicKeys(text);
        if (found !== null) expect(found.every(({ fingerprint }) => /^[0-9A-F]{40}$|^[0-9A-F]{64}$/.test(fingerprint))).toBe(true);
      }
  });
});

describe('validateKeyFile', () => {
  it.each([
    ['the pinned key', file('rsa-forever'), [NO_EXPIRY.fingerprint], null],
    ['one of several pins', file('rsa-forever'), [ED25519.fingerprint, NO_EXPIRY.fingerprint], null],
    ['both pinned keys, one expired', file('rsa-expired') + file('rsa-forever'), [EXPIRED.fingerprint, NO_EXPIRY.fingerprint], null],
    [
      'a foreign key in addition to the pinned key',
      file('rsa-forever') + file('ed25519-until-2036'),
      [NO_EXPIRY.fingerprint],
      `contains the key ${ED25519.fingerprint}; expected only ${NO_EXPIRY.fingerprint}`,
    ],
    ['an expired key', file('rsa-expired'), [EXPIRED.fingerprint], `the key ${EXPIRED.fingerprint} expired on 2026-11-21`],
    ['no key', 'not found', [NO_EXPIRY.fingerprint], 'not a file of ASCII-armored OpenPGP public keys'],
  ])('%s', (_, text, pins, why) => {
    expect(validateKeyFile(text, pins, NOW)).toBe(why);
  });
});
