import { createHash, type X509Certificate } from 'node:crypto';
import { publicKeyInfoOf } from './public-key-info.ts';
import { x509CertificatesIn } from './x509-certificates.ts';

/** A parsed certificate with its identifying data. */
export interface Certificate {
  /** In one line: `CN=kubernetes`; empty for an empty subject. */
  readonly subject: string;
  readonly issuer: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** The basic constraints allow it to sign certificates. */
  readonly isAuthority: boolean;
  /** SHA-256 of the DER bytes of its SubjectPublicKeyInfo, in lower-case hex. */
  readonly publicKeySha256: string;
  readonly pem: string;
}

/** Limits the work for hostile input; bundles of clusters are far smaller. */
const MAX_CERTIFICATES = 1_000;

/**
 * Parses the certificates of a PEM text, in order. Blocks of other types are ignored.
 * @returns an empty list for a text without certificates; null when a CERTIFICATE block is invalid
 * @see client-go util/cert ParseCertsPEM (1.36)
 */
export function parseCertificates(pem: string): readonly Certificate[] | null {
  const certificates = x509CertificatesIn(pem, MAX_CERTIFICATES)?.map((read) => (read === null ? null : describe(read)));
  return certificates?.every((certificate) => certificate !== null) ? certificates : null;
}

function describe(read: X509Certificate): Certificate | null {
  try {
    const publicKey = publicKeyInfoOf(read.raw);
    const [notBefore, notAfter] = [new Date(read.validFrom), new Date(read.validTo)];
    if (publicKey === null || Number.isNaN(notBefore.getTime() + notAfter.getTime())) return null;
    return {
      subject: oneLine(read.subject),
      issuer: oneLine(read.issuer),
      notBefore,
      notAfter,
      isAuthority: read.ca,
      publicKeySha256: createHash('sha256').update(publicKey).digest('hex'),
      pem: read.toString(),
    };
  } catch {
    return null;
  }
}

/** Node returns one line per part of a name. */
function oneLine(name: string | undefined): string {
  return (name ?? '')
    .split('\n')
    .filter((part) => part !== '')
    .join(', ');
}
