import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { certificateIssuer } from '../../../../src/x509/adapters/certificate-issuer.ts';
import type { EncryptionAlgorithm } from '../../../../src/x509/certificate-issuer.ts';
import { publicKeyFits, readPrivateKey } from '../../../../src/x509/private-key.ts';

const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pem = (type: 'pkcs8' | 'sec1'): string => String(ec.privateKey.export({ format: 'pem', type }));
const publicPem = String(ec.publicKey.export({ format: 'pem', type: 'spki' }));

describe('reading a private key', () => {
  it.each<EncryptionAlgorithm>(['RSA-2048', 'ECDSA-P256', 'ECDSA-P384'])('supports a generated key of %s', async (algorithm) => {
    const key = await certificateIssuer.generateKey(algorithm);
    const read = readPrivateKey(key);
    expect(read?.asymmetricKeyType).toBe(algorithm.startsWith('RSA') ? 'rsa' : 'ec');
    expect(publicKeyFits(certificateIssuer.publicKeyOf(key), read as NonNullable<typeof read>)).toBe(true);
    expect(publicKeyFits(publicPem, read as NonNullable<typeof read>)).toBe(false);
  });

  it('supports PKCS#8, and other blocks and text before the key', () => {
    const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n';
    for (const text of [pem('pkcs8'), pem('sec1'), `text\n${parameters}${pem('sec1')}`, pem('sec1').replaceAll('\n', '\r\n')]) {
      expect(readPrivateKey(text)?.asymmetricKeyType).toBe('ec');
    }
  });

  it('rejects keys that are encrypted, of another type, damaged or endless', () => {
    const encrypted = ec.privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' });
    const old = ec.privateKey.export({ format: 'pem', type: 'sec1', cipher: 'aes-256-cbc', passphrase: 'x' });
    const edwards = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' });
    const endless = '-----BEGIN PRIVATE KEY-----\n'.repeat(150_000);
    for (const text of ['', publicPem, String(encrypted), String(old), String(edwards), pem('sec1').replace('END', 'FIN'), endless]) {
      expect(readPrivateKey(text)).toBeNull();
    }
  });

  it('matches one of several public keys', () => {
    const other = String(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'pem', type: 'spki' }));
    expect(publicKeyFits(`${other}${publicPem}`, ec.privateKey)).toBe(true);
    expect(publicKeyFits(`${other}-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n`, ec.privateKey)).toBe(false);
    expect(publicKeyFits('-----BEGIN PUBLIC KEY-----\n'.repeat(150_000), ec.privateKey)).toBe(false);
  });
});
