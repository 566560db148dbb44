import { X509Certificate } from 'node:crypto';
import { certificateBlocks } from './pem-blocks.ts';

/**
 * The certificates of a PEM text in their order, read as OpenSSL does. Only this function parses the text of
 * certificates. Blocks of other kinds are ignored.
 * @param most maximum number of blocks, so that a hostile text causes little work
 * @returns null for a damaged block; null for all if the text has more than `most`
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
