import type { Secret } from '../../src/base/text/secret.ts';
import { certificateIssuer } from '../../src/x509/adapters/certificate-issuer.ts';
import type { CertificateIssuer } from '../../src/x509/certificate-issuer.ts';

/** Generates one key per algorithm and reuses it: RSA keys are slow to generate. */
export function issuerOfOneKey(): CertificateIssuer {
  const keys = new Map<string, Promise<Secret>>();
  const generateKey: CertificateIssuer['generateKey'] = (algorithm) => {
    const key = keys.get(algorithm) ?? certificateIssuer.generateKey(algorithm);
    keys.set(algorithm, key);
    return key;
  };
  return { ...certificateIssuer, generateKey };
}
