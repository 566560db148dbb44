import type { Secret } from '../base/text/secret.ts';
import type { CertificateSpec, EncryptionAlgorithm } from './certificate-spec.ts';

/** Who signs a certificate: another certificate, or by itself. */
export type Signer = { readonly certificatePem: string; readonly keyPem: Secret } | 'self';

/** Makes keys, certificates and what else needs chance. */
export interface CertificateIssuer {
  /** A new private key, PEM: `RSA PRIVATE KEY` (PKCS#1) or `EC PRIVATE KEY` (SEC 1). */
  generateKey(algorithm: EncryptionAlgorithm): Promise<Secret>;
  /** The public part of a private key, PEM: `PUBLIC KEY`. */
  publicKeyOf(keyPem: Secret): string;
  /**
   * Makes a certificate, PEM. Signed with SHA-256, by a P-384 key with SHA-384.
   * @param keyPem the private key whose public part it certifies
   * @throws Error when a key cannot be read
   */
  issue(spec: CertificateSpec, keyPem: Secret, signer: Signer): Promise<string>;
  /** A request for a certificate: `CERTIFICATE REQUEST`. */
  request(spec: Pick<CertificateSpec, 'commonName' | 'organizations' | 'dnsNames' | 'ipAddresses'>, keyPem: Secret): Promise<string>;
  /** Bytes that nobody can foretell. */
  unforeseenBytes(count: number): Uint8Array;
}
