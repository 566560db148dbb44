import { createHash, type X509Certificate } from 'node:crypto';
import { derElements } from './der.ts';
import { x509CertificatesIn } from './x509-certificates.ts';

/** A parsed certificate with its identifying data. */
export interface Certificate {
  /** In one line: `CN=kubernetes`; empty for an empty subject. */
  readonly subject: string;
  readonly issuer: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** The basic constraints allow it to sign certificates. */
  readonly isCa: boolean;
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
      isCa: read.ca,
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

const SEQUENCE = 0x30;
const VERSION = 0xa0;

/**
 * The original bytes of a certificate's SubjectPublicKeyInfo. (Node can only encode the key again, which may
 * yield other bytes and does not support all key types.)
 * @param certificate DER
 * @returns null when the bytes are not a certificate
 * @see RFC 5280 section 4.1
 */
export function publicKeyInfoOf(certificate: Uint8Array): Uint8Array | null {
  try {
    const [body] = derElements(derElements(certificate)[0]?.bytes ?? new Uint8Array());
    const parts = derElements(body?.bytes ?? new Uint8Array()).filter(({ tag }, i) => i > 0 || tag !== VERSION);
    // serialNumber, signature, issuer, validity, subject
    const found = parts[5];
    return found?.tag === SEQUENCE ? found.whole : null;
  } catch {
    return null;
  }
}
