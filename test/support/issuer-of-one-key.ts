import { certificateIssuer } from '../../src/x509/adapters/certificate-issuer.ts';
import type { CertificateIssuer, Signer } from '../../src/x509/certificate-issuer.ts';

/**
 * Generates one key per algorithm, and one certificate per content, key and signer, and reuses them: both take most of
 * the time of tests that create or renew the certificates of a control plane again and again.
 */
export function issuerOfOneKey(): CertificateIssuer {
  return {
    ...certificateIssuer,
    generateKey: reuse(certificateIssuer.generateKey, (algorithm) => algorithm),
    issue: reuse(certificateIssuer.issue, (spec, keyPem, signer) => JSON.stringify([spec, keyPem.reveal(), signerKey(signer)])),
  };
}

function signerKey(signer: Signer): readonly string[] {
  return signer === 'self' ? [] : [signer.certificatePem, signer.keyPem.reveal()];
}

function reuse<A extends readonly unknown[], T>(make: (...args: A) => T, keyOf: (...args: A) => string): (...args: A) => T {
  const made = new Map<string, T>();
  return (...args) => {
    const key = keyOf(...args);
    const existing = made.get(key) ?? make(...args);
    made.set(key, existing);
    return existing;
  };
}
