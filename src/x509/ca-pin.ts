import { createHash } from 'node:crypto';
import { type CertificateContent, parseCertificates, tbsCertificateElements } from './read-certificate.ts';

/**
 * Reads a pin of a CA public key, as in `--discovery-token-ca-cert-hash`: `sha256:` and 64 hexadecimal digits
 * in any case.
 * @returns the pin in lower case; null when it is not valid
 * @see kubeadm 1.36 util/pubkeypin
 */
export function parseCaPin(text: string): string | null {
  return /^sha256:[0-9a-f]{64}$/i.test(text) ? text.toLowerCase() : null;
}

/** The pin of a certificate: SHA-256 of its SubjectPublicKeyInfo. Certificates with the same key have the same pin. */
export function caPinOf({ x509 }: Pick<CertificateContent, 'x509'>): string {
  return `sha256:${createHash('sha256').update(publicKeyInfoOf(x509.raw)).digest('hex')}`;
}

const SEQUENCE = 0x30;

/**
 * The original bytes of a certificate's SubjectPublicKeyInfo. (Node can only encode the key again, which may
 * yield other bytes and does not support all key types.)
 * @param certificate DER
 * @throws Error when the bytes are not a certificate
 * @see RFC 5280 section 4.1
 */
export function publicKeyInfoOf(certificate: Uint8Array): Uint8Array {
  const [, , , , , found] = tbsCertificateElements(certificate);
  if (found?.tag !== SEQUENCE) throw new Error('no public key found');
  return found.whole;
}

/**
 * The pins of a PEM bundle, without duplicates.
 * @returns null when the bundle contains no certificate, or one that cannot be read
 */
export function caPinsOf(pem: string): readonly string[] | null {
  const certificates = parseCertificates(pem);
  return certificates === null || certificates.length === 0 ? null : [...new Set(certificates.map(caPinOf))];
}
