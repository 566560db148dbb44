import { generateKeyPairSync } from 'node:crypto';
import ssh2 from 'ssh2';
import { describe, expect, it } from 'vitest';
import { newSshKey } from '../../../lab/hosts/ssh-key.ts';
import { readPrivateKeyHeader, readPublicKeyFile } from '../../../src/ssh/key-format.ts';

const plain = newSshKey('me');
const locked = ssh2.utils.generateKeyPairSync('ed25519', { passphrase: 'x', cipher: 'aes256-ctr', rounds: 2 });
const blobOf = (publicKey: string): string => publicKey.split(' ')[1] ?? '';
const pem = (passphrase?: string): string =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem', ...(passphrase ? { cipher: 'aes-256-cbc', passphrase } : {}) },
  }).privateKey;

describe('readPrivateKeyHeader', () => {
  it.each([
    ['OpenSSH format', plain.private, { encrypted: false, publicBlob: blobOf(plain.public) }],
    ['OpenSSH format with passphrase', locked.private, { encrypted: true, publicBlob: blobOf(locked.public) }],
    ['PKCS#8', pem(), { encrypted: false, publicBlob: null }],
    ['PKCS#8 with passphrase', pem('x'), { encrypted: true, publicBlob: null }],
    ['a public key', plain.public, null],
    ['nothing', '', null],
    ['a broken body', '-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----', null],
  ])('reads the header of %s', (_, text, expected) => expect(readPrivateKeyHeader(text)).toEqual(expected));
});

describe('readPublicKeyFile', () => {
  it('returns the wire format', () => expect(readPublicKeyFile(`${plain.public}\n`)).toBe(blobOf(plain.public)));
  it('returns null for a private key', () => expect(readPublicKeyFile(plain.private)).toBeNull());
});
