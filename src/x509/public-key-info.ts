import { derElements } from './der.ts';

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
