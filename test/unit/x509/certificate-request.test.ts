import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readCertificateRequest } from '../../../src/core/x509/certificate-request.ts';
import { createCertificateRequest, parseCertificateRequest } from '../../../src/lab/api-server/pki.ts';

describe('readCertificateRequest', () => {
  it.each([
    [{ commonName: 'system:node:w1', organizations: ['system:nodes'] }, []],
    [{ commonName: 'system:node:w1', organizations: ['system:nodes'] }, ['w1', 'w1.example.org', '10.0.0.4', 'fd00::4', '::ffff:1.2.3.4']],
    [{ commonName: 'ü', organizations: ['a', 'b'] }, ['0.0.0.0', '::']],
    [
      { commonName: `system:node:${'x'.repeat(240)}`, organizations: ['system:nodes'] },
      Array.from({ length: 60 }, (_, i) => `n${i}.example.org`),
    ],
  ])('reads what a library writes: %j %j', async (subject, names) => {
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

  it('has nothing to say of anything else', async () => {
    const { requestPem } = await createCertificateRequest({ commonName: 'x' });
    expect(readCertificateRequest('')).toBeNull();
    expect(readCertificateRequest(requestPem.replaceAll('REQUEST', ''))).toBeNull();
    const lines = requestPem.split('\n');
    expect(readCertificateRequest([lines[0], lines[1], lines.at(-2)].join('\n'))).toBeNull();
  });

  it('never throws, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const pem = `-----BEGIN CERTIFICATE REQUEST-----\n${Buffer.from(bytes).toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
        readCertificateRequest(pem);
      }),
      { numRuns: 500 },
    );
  });
});
