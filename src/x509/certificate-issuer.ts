import type { Secret } from '../base/text/secret.ts';
import type { CertificateSpec, EncryptionAlgorithm } from './certificate-spec.ts';

/** The signer of a certificate: a CA, or the certificate itself. */
export type Signer = { readonly certificatePem: string; readonly keyPem: Secret } | 'self';

/** Creates keys, certificates, CSRs and random bytes. */
export interface CertificateIssuer {
  /** A new private key, PEM: `RSA PRIVATE KEY` (PKCS#1) or `EC PRIVATE KEY` (SEC 1). */
  generateKey(algorithm: EncryptionAlgorithm): Promise<Secret>;
  /** The public key of a private key, PEM: `PUBLIC KEY`. */
  publicKeyOf(keyPem: Secret): string;
  /**
   * Creates a certificate, PEM. Signed with SHA-256, by a P-384 key with SHA-384.
   * @param keyPem the private key of the certificate
   * @throws Error for an invalid key
   */
  issue(spec: CertificateSpec, keyPem: Secret, signer: Signer): Promise<string>;
  /** A certificate signing request, PEM: `CERTIFICATE REQUEST`. */
  request(spec: Pick<CertificateSpec, 'commonName' | 'organizations' | 'dnsNames' | 'ipAddresses'>, keyPem: Secret): Promise<string>;
  /** Cryptographically secure random bytes. */
  unforeseenBytes(count: number): Uint8Array;
}
