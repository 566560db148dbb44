import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readKeyFingerprints } from '../../../../src/host/install/openpgp.ts';
import { validateKeyFile } from '../../../../src/host/install/plan-packages.ts';

const file = (name: string): string => readFileSync(new URL(`./fixtures/${name}.asc`, import.meta.url), 'utf8');

// Fingerprints as printed by gpg --with-colons --fingerprint.
const ED25519 = '1B2F41208366FFA1AB29264A993911C9808C95AA';
const EXPIRED = 'D1CAB36BEF6E9257B13E9E98E9ED7258A55D4538';
const NO_EXPIRY = '6B1BB40B01B84DB4FED188ECAC54F86189240365';

describe('readKeyFingerprints', () => {
  it.each([
    ['ed25519-until-2036', ED25519],
    ['rsa-expired', EXPIRED],
    ['rsa-forever', NO_EXPIRY],
  ])('reads %s like gpg', (name, key) => {
    expect(readKeyFingerprints(file(name))).toEqual([key]);
    expect(readKeyFingerprints(`Some words.\r\n${file(name).replaceAll('\n', '\r\n')}`)).toEqual([key]);
  });

  it('reads all blocks of a file', () => {
    expect(readKeyFingerprints(file('rsa-forever') + file('ed25519-until-2036'))).toEqual([NO_EXPIRY, ED25519]);
  });

  it('returns null for a file without valid keys', () => {
    for (const text of ['', '<html>', '-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n'])
      expect(readKeyFingerprints(text)).toBeNull();
  });

  it('never throws on truncated or changed bytes', () => {
    const bytes = Buffer.from(file('rsa-forever').split('\n').slice(2, -3).join(''), 'base64');
    for (let at = 0; at < bytes.length; at++)
      for (const changed of [bytes.subarray(0, at), Buffer.from(bytes.map((byte, i) => (i === at ? byte ^ 0xff : byte)))]) {
        const text = `-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n${changed.toString('base64')}\n-----END PGP PUBLIC KEY BLOCK-----\n`;
        const found = readKeyFingerprints(text);
        if (found !== null) expect(found.every((key) => /^[0-9A-F]{40}$|^[0-9A-F]{64}$/.test(key))).toBe(true);
      }
  });
});

describe('validateKeyFile', () => {
  it.each([
    ['the pinned key', file('rsa-forever'), [NO_EXPIRY], null],
    ['one of several pins', file('rsa-forever'), [ED25519, NO_EXPIRY], null],
    ['both pinned keys', file('rsa-expired') + file('rsa-forever'), [EXPIRED, NO_EXPIRY], null],
    [
      'a foreign key in addition to the pinned key',
      file('rsa-forever') + file('ed25519-until-2036'),
      [NO_EXPIRY],
      `contains the key ${ED25519}; expected only ${NO_EXPIRY}`,
    ],
    ['no key', 'not found', [NO_EXPIRY], 'not a file of ASCII-armored OpenPGP public keys'],
  ])('%s', (_, text, pins, why) => {
    expect(validateKeyFile(text, pins)).toBe(why);
  });
});
