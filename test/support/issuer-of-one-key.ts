import type { Secret } from '../../src/base/text/secret.ts';
import { certificateIssuer } from '../../src/x509/adapters/certificate-issuer.ts';
import type { CertificateIssuer } from '../../src/x509/certificate-issuer.ts';

/** Makes one key of each algorithm, for all: RSA keys take a while. */
export function issuerOfOneKey(): CertificateIssuer {
  const keys = new Map<string, Promise<Secret>>();
  const generateKey: CertificateIssuer['generateKey'] = (algorithm) => {
    const key = keys.get(algorithm) ?? certificateIssuer.generateKey(algorithm);
    keys.set(algorithm, key);
    return key;
  };
  return { ...certificateIssuer, generateKey };
}
