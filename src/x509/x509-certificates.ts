import { X509Certificate } from 'node:crypto';
import { certificateBlocks } from './pem-blocks.ts';

/**
 * The certificates of a PEM text as OpenSSL reads them, in its order: the one place where a certificate's text is read. Blocks of other kinds
 * are passed over.
 * @param most blocks; a hostile text with more does not keep the program busy
 * @returns null for a damaged block; null for all when there are more than `most`
 */
export function x509CertificatesIn(pem: string, most: number): readonly (X509Certificate | null)[] | null {
  const blocks = certificateBlocks(pem);
  return blocks.length > most ? null : blocks.map((block) => x509CertificateOf(block.pem));
}

/** One certificate of PEM or DER; null when it is damaged. */
export function x509CertificateOf(certificate: string | Buffer): X509Certificate | null {
  try {
    return new X509Certificate(certificate);
  } catch {
    return null;
  }
}
