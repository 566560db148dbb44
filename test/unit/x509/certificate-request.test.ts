import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createCertificateRequest, parseCertificateRequest } from '../../../lab/api-server/pki.ts';
import { readCertificateRequest } from '../../../src/x509/certificate-request.ts';
import { numberOfRuns } from '../../support/thorough.ts';

const SUBJECT = { commonName: 'system:node:w1', organizations: ['system:nodes'] };
const NAME = der(0x30);
const KEY = der(0x30);
const SAN = der(0x06, Buffer.from('551d11', 'hex'));
const REQUESTED = der(0x06, Buffer.from('2a864886f70d01090e', 'hex'));

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.of(tag, content.length), content]);
}

function pemOf(bytes: Buffer): string {
  return `-----BEGIN CERTIFICATE REQUEST-----\n${bytes.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
}

describe('readCertificateRequest', () => {
  it.each([
    [{ commonName: 'system:node:w1', organizations: ['system:nodes'] }, []],
    [{ commonName: 'system:node:w1', organizations: ['system:nodes'] }, ['w1', 'w1.example.org', '10.0.0.4', 'fd00::4', '::ffff:1.2.3.4']],
    [{ commonName: 'ü', organizations: ['a', 'b'] }, ['0.0.0.0', '::']],
    [
      { commonName: `system:node:${'x'.repeat(240)}`, organizations: ['system:nodes'] },
      Array.from({ length: 60 }, (_, i) => `n${i}.example.org`),
    ],
  ])('parses the CSR of a library: %j %j', async (subject, names) => {
    const { requestPem } = await createCertificateRequest(subject, names);
    const expected = parseCertificateRequest(requestPem);
    const found = readCertificateRequest(requestPem);
    expect(found).toMatchObject({
      commonNames: [expected.commonName],
      organizations: expected.organizations,
      otherSubject: [],
      dnsNames: expected.dnsNames,
      otherNames: [],
    });
    expect(found?.ipAddresses.length).toBe(expected.ipAddresses.length);
    expect([...(found?.dnsNames ?? []), ...(found?.ipAddresses ?? [])]).toHaveLength(names.length);
  });

  it('returns null for other input', async () => {
    const { requestPem } = await createCertificateRequest({ commonName: 'x' });
    expect(readCertificateRequest('')).toBeNull();
    expect(readCertificateRequest(requestPem.replaceAll('REQUEST', ''))).toBeNull();
    const lines = requestPem.split('\n');
    expect(readCertificateRequest([lines[0], lines[1], lines.at(-2)].join('\n'))).toBeNull();
  });

  describe('rejects input that the signer could parse differently', () => {
    const DECOY = createCertificateRequest(SUBJECT, ['w1']);
    const HIDDEN = createCertificateRequest(SUBJECT, ['kubernetes.default.svc']);

    it.each([
      ['a block that does not begin its line, before another', (decoy: string, hidden: string) => ` ${decoy}${hidden}`],
      ['two blocks', (decoy: string, hidden: string) => `${decoy}${hidden}`],
      ['text before the block', (decoy: string) => `text\n${decoy}`],
      ['text after the block', (decoy: string) => `${decoy}text\n`],
      ['a block of another kind before', (decoy: string) => `-----BEGIN X-----\n-----END X-----\n${decoy}`],
      ['a character outside of base64', (decoy: string) => decoy.replace('\n', '\n!')],
      ['an end inside', (decoy: string) => decoy.replace(/\n(.{8})/, '\n$1==')],
      ['a header', (decoy: string) => decoy.replace('\n', '\nA: b\n\n')],
      ['a block label that the API server rejects', (decoy: string) => decoy.replaceAll('CERTIFICATE REQ', 'NEW CERTIFICATE REQ')],
    ])('%s', async (_what, change) => {
      const [{ requestPem: decoy }, { requestPem: hidden }] = await Promise.all([DECOY, HIDDEN]);
      expect(readCertificateRequest(decoy)?.dnsNames).toEqual(['w1']);
      expect(readCertificateRequest(change(decoy, hidden))).toBeNull();
    });

    const value = (name: string) => der(0x04, der(0x30, der(0x82, Buffer.from(name))));
    const extension = (...values: readonly Buffer[]) => der(0x30, SAN, ...values);
    const request = (...attributes: readonly Buffer[]) =>
      pemOf(der(0x30, der(0x30, der(0x02, Buffer.of(0)), NAME, KEY, der(0xa0, ...attributes)), KEY, KEY));
    const asked = (...extensions: readonly Buffer[]) => der(0x30, REQUESTED, der(0x31, der(0x30, ...extensions)));

    it.each([
      ['one value after another', request(asked(extension(value('kubernetes.default.svc'), value('w1'))))],
      ['the extension twice', request(asked(extension(value('kubernetes.default.svc')), extension(value('w1'))))],
      ['the attribute twice', request(asked(extension(value('kubernetes.default.svc'))), asked(extension(value('w1'))))],
      [
        'a second value of the attribute',
        request(der(0x30, REQUESTED, der(0x31, der(0x30, extension(value('a'))), der(0x30, extension(value('w1')))))),
      ],
      ['additional data after the attribute', request(der(0x30, REQUESTED, der(0x31, der(0x30, extension(value('w1')))), KEY))],
    ])('%s', (_what, pem) => {
      expect(readCertificateRequest(request(asked(extension(value('w1')))))?.dnsNames).toEqual(['w1']);
      expect(readCertificateRequest(request(asked(extension(der(0x01, Buffer.of(255)), value('w1')))))?.dnsNames).toEqual(['w1']);
      expect(readCertificateRequest(pem)).toBeNull();
    });

    it('a byte order mark before a name is kept', () => {
      expect(readCertificateRequest(request(asked(extension(value('\ufeffw1')))))?.dnsNames).toEqual(['\ufeffw1']);
    });
  });

  it('never throws for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${Buffer.from(bytes).toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
        readCertificateRequest(pem);
      }),
      { numRuns: numberOfRuns(500) },
    );
  });
});
