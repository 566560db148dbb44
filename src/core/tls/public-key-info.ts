/** A DER value: its tag and where its content and the whole of it lie. */
interface DerValue {
  readonly tag: number;
  readonly start: number;
  readonly contentStart: number;
  readonly end: number;
}

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
  const outer = readValue(certificate, 0, certificate.length);
  const body = outer?.tag === SEQUENCE ? readValue(certificate, outer.contentStart, outer.end) : null;
  if (body?.tag !== SEQUENCE) return null;
  let next = readValue(certificate, body.contentStart, body.end);
  if (next?.tag === VERSION) next = readValue(certificate, next.end, body.end);
  // serialNumber, signature, issuer, validity, subject
  for (let skipped = 0; skipped < 5 && next !== null; skipped++) next = readValue(certificate, next.end, body.end);
  return next?.tag === SEQUENCE ? certificate.subarray(next.start, next.end) : null;
}

function readValue(bytes: Uint8Array, start: number, limit: number): DerValue | null {
  const [tag, first] = [bytes[start], bytes[start + 1]];
  if (tag === undefined || first === undefined || start + 2 > limit) return null;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  if (first === 0x80 || lengthBytes > 4 || start + 2 + lengthBytes > limit) return null;
  let length = first;
  if (lengthBytes > 0) {
    length = 0;
    for (const byte of bytes.subarray(start + 2, start + 2 + lengthBytes)) length = length * 256 + byte;
  }
  const contentStart = start + 2 + lengthBytes;
  const end = contentStart + length;
  return end > limit ? null : { tag, start, contentStart, end };
}
