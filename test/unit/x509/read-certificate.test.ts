import { describe, expect, it } from 'vitest';
import type { Secret } from '../../../src/base/text/secret.ts';
import { certificateIssuer } from '../../../src/x509/adapters/certificate-issuer.ts';
import { chainsTo, isSameCertificate, missingNames } from '../../../src/x509/certificate-checks.ts';
import type { CertificateSpec } from '../../../src/x509/certificate-issuer.ts';
import { describeCertificate } from '../../../src/x509/describe-certificate.ts';
import {
  type CertificateContent,
  parseCertificates,
  readCertificate,
  readCertificateChain,
  readCertificateHead,
} from '../../../src/x509/read-certificate.ts';
import { patched } from '../../support/patched-certificate.ts';

const NOW = new Date('2030-01-01T00:00:00Z');
const SPEC: CertificateSpec = {
  commonName: 'x',
  organizations: [],
  dnsNames: [],
  ipAddresses: [],
  usages: [],
  isCa: false,
  notBefore: NOW,
  notAfter: new Date('2060-01-01T00:00:00Z'),
};
const key = await certificateIssuer.generateKey('ECDSA-P256');

async function made(spec: Partial<CertificateSpec>, by: { readonly certificatePem: string; readonly keyPem: Secret } | 'self' = 'self') {
  const pem = await certificateIssuer.issue({ ...SPEC, ...spec }, key, by);
  return { pem, read: readCertificate(pem) as CertificateContent };
}

describe('readCertificate', () => {
  it('returns the properties of the certificate', async () => {
    const { pem, read } = await made({
      commonName: 'Zoë & Co *',
      organizations: ['long:organization', 'o#1', 'short'],
      dnsNames: ['a.example', '*.b.example'],
      ipAddresses: ['10.0.0.1', 'fd00::10:1'],
      usages: ['clientAuth', 'serverAuth'],
    });
    // In DER order, as required for the parts of a set.
    expect(read.subject.map(({ type, value }) => `${type}=${value}`)).toEqual(['O=o#1', 'O=short', 'O=long:organization', 'CN=Zoë & Co *']);
    expect(read).toMatchObject({ dnsNames: ['a.example', '*.b.example'], ipAddresses: ['10.0.0.1', 'fd00::10:1'], isCa: false });
    expect(read.notAfter).toEqual(SPEC.notAfter);
    expect(describeCertificate(pem)).toMatchObject({
      subject: 'CN=Zoë & Co *,O=long:organization,O=short,O=o#1',
      san: ['DNS:*.b.example', 'DNS:a.example', 'IP Address:10.0.0.1', 'IP Address:FD00:0:0:0:0:0:10:1'],
      extKeyUsage: ['TLS Web Client Authentication', 'TLS Web Server Authentication'],
      notAfter: '2060-01-01T00:00:00Z',
    });
  });

  it('returns null for any damage, and never throws', async () => {
    const { pem } = await made({ dnsNames: ['a'], ipAddresses: ['10.0.0.1'], usages: ['clientAuth'], isCa: true });
    const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
    const asPem = (bytes: Uint8Array) =>
      `-----BEGIN CERTIFICATE-----\n${Buffer.from(bytes).toString('base64')}\n-----END CERTIFICATE-----\n`;
    let refused = 0;
    for (let i = 0; i < der.length; i++) {
      for (const value of [0x00, 0xff, (der[i] as number) ^ 0x20]) {
        const bytes = Buffer.from(der);
        bytes[i] = value;
        if (readCertificateChain(asPem(bytes)) === null) refused++;
      }
      expect(readCertificateChain(asPem(der.subarray(0, i)))).toBeNull();
    }
    expect(refused).toBeGreaterThan(der.length / 2);
    for (const text of ['', 'x', '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n', pem.repeat(101)]) {
      expect(readCertificateChain(text)).toBeNull();
    }
    expect(readCertificateChain(`text\n${pem}\r\n${pem.replaceAll('\n', '\r\n')}`)).toHaveLength(2);
  });
});

describe('a public key that cannot be decoded', () => {
  it('makes the certificate unreadable, except to those who only compare its bytes', async () => {
    const { pem } = await made({});
    // A point in no known form.
    const damaged = patched(pem, '03420004', '03420009');
    expect([readCertificate(damaged), readCertificateChain(pem + damaged)]).toEqual([null, null]);
    expect(parseCertificates(damaged)?.map(({ subject }) => subject)).toEqual([[{ type: 'CN', value: 'x' }]]);
  });
});

describe('the head of a certificate', () => {
  it('equals the result of OpenSSL, with times in either form', async () => {
    for (const notAfter of ['2031-02-28T23:59:59Z', '2049-12-31T23:59:59Z', '2050-01-01T00:00:00Z', '2060-02-29T12:00:00Z']) {
      const { pem, read } = await made({ commonName: 'system:node:ä', organizations: ['system:nodes'], notAfter: new Date(notAfter) });
      const head = readCertificateHead(`some text\n${pem}`);
      expect(head.subject).toContainEqual({ type: 'CN', value: 'system:node:ä' });
      expect([head.notBefore, head.notAfter]).toEqual([read.x509.validFrom, read.x509.validTo].map((text) => new Date(text)));
      expect(head).toEqual({ subject: read.subject, issuer: read.issuer, notBefore: read.notBefore, notAfter: read.notAfter });
    }
  });

  it('is an error for damaged bytes', async () => {
    const { pem } = await made({});
    const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
    const times = der.indexOf('300101000000Z');
    for (const damaged of ['301301000000Z', '300230000000Z', '30010100000Z0', 'x00101000000Z']) {
      const bytes = Buffer.from(der);
      bytes.write(damaged, times);
      const text = `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64')}\n-----END CERTIFICATE-----\n`;
      expect(() => readCertificateHead(text)).toThrow('invalid time in the certificate');
    }
    expect(() => readCertificateHead('no certificate')).toThrow('no certificate found');
    expect(() => readCertificateHead(pem.replace('MII', 'MIA'))).toThrow();
  });
});

describe('chains', () => {
  it('lead over any number of CAs, in any order, and over no certificate that may not sign', async () => {
    const keys = { keyPem: key };
    const root = await made({ commonName: 'root', isCa: true });
    const upper = await made({ commonName: 'upper', isCa: true }, { certificatePem: root.pem, ...keys });
    const lower = await made({ commonName: 'lower', isCa: true }, { certificatePem: upper.pem, ...keys });
    const none = await made({ commonName: 'none' }, { certificatePem: root.pem, ...keys });
    const leaf = await made({ commonName: 'leaf' }, { certificatePem: lower.pem, ...keys });
    const astray = await made({ commonName: 'astray' }, { certificatePem: none.pem, ...keys });
    expect(chainsTo(leaf.read, [upper.read, lower.read], root.read)).toBe(true);
    expect(chainsTo(leaf.read, [lower.read], root.read)).toBe(false);
    expect(chainsTo(astray.read, [none.read], root.read)).toBe(false);
    expect(isSameCertificate(root.read, readCertificate(root.pem) as CertificateContent)).toBe(true);
    expect(isSameCertificate(root.read, upper.read)).toBe(false);
  });

  it('of CAs that all sign one another terminate', async () => {
    const cas = await Promise.all(Array.from({ length: 60 }, () => made({ commonName: 'same', isCa: true })));
    const [first, ...others] = cas.map(({ read }) => read) as [CertificateContent, ...CertificateContent[]];
    const stranger = await made({ commonName: 'stranger', isCa: true });
    const before = performance.now();
    expect(chainsTo(first, others, stranger.read)).toBe(false);
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});

describe('names of a certificate', () => {
  it('are matched as Go matches them', async () => {
    const { read } = await made({ dnsNames: ['Api.Example', '*.wild.example'], ipAddresses: ['10.0.0.1', '::1'] });
    const missing = (dnsNames: readonly string[], ipAddresses: readonly string[] = []) => missingNames(read, { dnsNames, ipAddresses });
    expect(missing(['api.example', 'a.wild.example', '*.wild.example'], ['10.0.0.1', '0:0:0:0:0:0:0:1'])).toEqual([]);
    expect(missing(['b.a.wild.example', 'wild.example', 'other'], ['10.0.0.2'])).toEqual([
      'DNS:b.a.wild.example',
      'DNS:wild.example',
      'DNS:other',
      'IP:10.0.0.2',
    ]);
  });
});
