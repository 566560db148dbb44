import { describe, expect, it } from 'vitest';
import type { Secret } from '../../../src/base/text/secret.ts';
import { certificateIssuer } from '../../../src/x509/adapters/certificate-issuer.ts';
import { chainsTo, isSameCertificate, missingNames } from '../../../src/x509/certificate-checks.ts';
import type { CertificateSpec } from '../../../src/x509/certificate-issuer.ts';
import { describeCertificate, formatName, nameInOrder } from '../../../src/x509/describe-certificate.ts';
import {
  type CertificateContent,
  parseCertificates,
  readCertificate,
  readCertificateChain,
  readCertificateHead,
} from '../../../src/x509/read-certificate.ts';
import { patched, pemOf } from '../../support/patched-certificate.ts';

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

const part = (tag: number, ...content: readonly number[]) => [tag, content.length, ...content];

/** The head of a certificate with these elements. */
function headWith({ commonName = part(0x0c), notBefore = time('300101000000Z') }) {
  const name = part(0x30, ...part(0x31, ...part(0x30, ...part(6, 0x55, 4, 3), ...commonName)));
  const validity = part(0x30, ...notBefore, ...time('20600101000000Z'));
  const body = part(0x30, ...part(2, 1), ...part(0x30), ...name, ...validity, ...name, ...part(0x30));
  return readCertificateHead(pemOf(Uint8Array.from(part(0x30, ...body, ...part(0x30), ...part(3)))));
}

/** A UTCTime, or with four digits for the year a GeneralizedTime. */
function time(text: string, tag = /^\d{14}/.test(text) ? 0x18 : 0x17) {
  return part(tag, ...Buffer.from(text));
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

describe('formatted names', () => {
  it('escape as OpenSSL does what could be taken for another part of the name', async () => {
    const values = ['a, O=system:masters', 'b+CN=c', 'd\\', '"<e>;', '#f', ' g ', 'h\n\u007f', 'ä#i j', ''];
    for (const value of values) {
      const { read } = await made({ organizations: ['o'], commonName: value });
      // One part a line.
      const [organization, commonName] = read.x509.subject.split('\n');
      expect([nameInOrder(read.subject), formatName(read.subject)]).toEqual([
        `${organization}, ${commonName}`,
        `${commonName},${organization}`,
      ]);
    }
  });

  it('show texts in the encoding of their type', () => {
    const texts = [
      [0x0c, Buffer.from('ä'), 'ä'],
      [0x13, Buffer.from('a'), 'a'],
      [0x14, Buffer.from('ä', 'latin1'), 'ä'],
      [0x1e, Buffer.from('äb', 'utf16le').swap16(), 'äb'],
    ] as const;
    for (const [tag, bytes, expected] of texts)
      expect(headWith({ commonName: part(tag, ...bytes) }).subject).toEqual([{ type: 'CN', value: expected }]);
    expect(() => headWith({ commonName: part(0x1e, 0x61) })).toThrow();
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

describe('times', () => {
  it.each([
    ['3001020304Z', '2030-01-02T03:04:00Z'],
    ['300102030405Z', '2030-01-02T03:04:05Z'],
    ['300101003000+0100', '2029-12-31T23:30:00Z'],
    ['3001010030-0130', '2030-01-01T02:00:00Z'],
    ['500101000000Z', '1950-01-01T00:00:00Z'],
    ['20300102030405Z', '2030-01-02T03:04:05Z'],
    ['20300102030405+0030', '2030-01-02T02:34:05Z'],
  ])('%s is read as Go reads it', (text, expected) => {
    expect(headWith({ notBefore: time(text) }).notBefore).toEqual(new Date(expected));
  });

  it.each(['300102030405', '203001020304Z', '300102030405+01', '300102036005Z', '300102030405.1Z', '300102030405+2400'])(
    '%s is invalid',
    (text) => {
      expect(() => headWith({ notBefore: time(text, 0x17) })).toThrow('invalid time in the certificate');
    },
  );
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
