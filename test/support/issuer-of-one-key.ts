import { certificateIssuer } from '../../src/adapters/certificate-issuer.ts';
import type { Secret } from '../../src/core/text/secret.ts';
import type { CertificateIssuer } from '../../src/ports/certificate-issuer.ts';

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
