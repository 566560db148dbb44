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
  readonly isAuthority: boolean;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Properties shared by all certificates of a run. */
export interface CertificateTerms {
  readonly keyAlgorithm: EncryptionAlgorithm;
  /** Time of creation. */
  readonly now: Date;
  readonly validMs: number;
  readonly authorityValidMs: number;
}

/** Certificates are valid from this time before their creation, for peers whose clocks are slow. */
export const BACKDATE_MS = 5 * 60_000;
