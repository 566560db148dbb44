import { derElements } from './der.ts';

const SEQUENCE = 0x30;
const VERSION = 0xa0;

/**
 * The bytes of a certificate's SubjectPublicKeyInfo as they stand in it. (Node can only encode the key anew, which may give other bytes, and not for every
 * kind of key.)
 * @param certificate DER
 * @returns null when it is no certificate
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
