import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { x509CertificateOf, x509CertificatesIn } from '../../../src/x509/read-certificate.ts';

const SRC = path.join(import.meta.dirname, '..', '..', '..', 'src');

describe('x509CertificatesIn', () => {
  const damaged = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

  it('has a place for every block, damaged or not, and a limit', () => {
    expect(x509CertificatesIn(`text\n${damaged}${damaged}`, 2)).toEqual([null, null]);
    expect(x509CertificatesIn(`${damaged}${damaged}`, 1)).toBeNull();
    expect(x509CertificatesIn('no certificate', 1)).toEqual([]);
    expect(x509CertificateOf(Buffer.from([0x30, 0x00]))).toBeNull();
  });

  it('is the only reader of certificates', () => {
    const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts') && !file.startsWith('lab'));
    const readers = files.filter((file) =>
      /^import \{[^}]*(?<!type )\bX509Certificate\b[^}]*\} from 'node:crypto';$/m.test(readFileSync(path.join(SRC, file), 'utf8')),
    );
    expect(readers).toEqual(['x509/read-certificate.ts']);
  });
});
