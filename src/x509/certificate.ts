import { createHash, type X509Certificate } from 'node:crypto';
import { publicKeyInfoOf } from './public-key-info.ts';
import { x509CertificatesIn } from './x509-certificates.ts';

/** What is said of a certificate, and what it is recognised by. */
export interface Certificate {
  /** In one line: `CN=kubernetes`; empty when it names nobody. */
  readonly subject: string;
  readonly issuer: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** Its basic constraints say that it may sign others. */
  readonly isAuthority: boolean;
  /** SHA-256 of the DER bytes of its SubjectPublicKeyInfo, in lower-case hex. */
  readonly publicKeySha256: string;
  readonly pem: string;
}

/** More than any bundle of a cluster has; a hostile one does not keep us busy. */
const MAX_CERTIFICATES = 1_000;

/**
 * The certificates of a PEM text, in its order. Blocks of other kinds are passed over.
 * @returns an empty list when there is none; null when a block says CERTIFICATE and is none
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

/** Node gives a line for each part of a name. */
function oneLine(name: string | undefined): string {
  return (name ?? '')
    .split('\n')
    .filter((part) => part !== '')
    .join(', ');
}
