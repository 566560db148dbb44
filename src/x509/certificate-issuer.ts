import type { Secret } from '../base/text/secret.ts';

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
  secureRandomBytes(count: number): Uint8Array;
}

export type EncryptionAlgorithm = 'RSA-2048' | 'RSA-3072' | 'RSA-4096' | 'ECDSA-P256' | 'ECDSA-P384';

export type ExtendedUsage = 'serverAuth' | 'clientAuth';

/**
 * A certificate to create. Key usages are fixed: digital signature and key encipherment, for a CA also
 * certificate signing.
 */
export interface CertificateSpec {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly usages: readonly ExtendedUsage[];
  readonly isCa: boolean;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Properties shared by all certificates of a run. */
export interface CertificateParameters {
  readonly keyAlgorithm: EncryptionAlgorithm;
  /** Time of creation. */
  readonly now: Date;
  readonly validMs: number;
  readonly caValidMs: number;
}

/** Certificates are valid from this time before their creation, for peers whose clocks are slow. */
export const BACKDATE_MS = 5 * 60_000;
