export type EncryptionAlgorithm = 'RSA-2048' | 'RSA-3072' | 'RSA-4096' | 'ECDSA-P256' | 'ECDSA-P384';

export type ExtendedUsage = 'serverAuth' | 'clientAuth';

/** A certificate that is to be made. Key usages follow: digital signature and key encipherment, for an authority signing of certificates too. */
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

/** What certificates have in common. */
export interface CertificateTerms {
  readonly keyAlgorithm: EncryptionAlgorithm;
  /** When they are made. */
  readonly now: Date;
  readonly validMs: number;
  readonly authorityValidMs: number;
}

/** Certificates begin before they are made, for peers whose clocks are behind. */
export const BACKDATE_MS = 5 * 60_000;
