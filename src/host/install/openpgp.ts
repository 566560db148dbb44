import { createHash } from 'node:crypto';
import { pemBlocks, pemBody } from '../../x509/pem-blocks.ts';

/**
 * The fingerprints of the primary keys of an ASCII-armored file, in upper-case hexadecimal digits: 40 of version 4, 64 of
 * version 6. Null: another format. Signatures and expiration times are left to the package manager: a pinned
 * fingerprint pins the key.
 * @see RFC 9580, sections 4 to 6; RFC 4880
 */
export function readKeyFingerprints(text: string): readonly string[] | null {
  const blocks = pemBlocks(text).filter(({ label }) => label === 'PGP PUBLIC KEY BLOCK');
  const fingerprints = blocks.flatMap((block) => fingerprintsOf(unarmoured(pemBody(block))));
  return fingerprints.length > 0 && fingerprints.every((each) => each !== null) ? fingerprints : null;
}

/** The headers end with an empty line, the data with a checksum. */
function unarmoured(block: string): Buffer {
  const lines = block.split(/\r?\n/).slice(1);
  const body = lines.slice(lines.findIndex((line) => line.trim() === '') + 1);
  const end = body.findIndex((line) => line.startsWith('='));
  return Buffer.from((end < 0 ? body : body.slice(0, end)).join(''), 'base64');
}

const PRIMARY_KEY = 6;

/** Of each primary key in a sequence of packets; null: it cannot be read. */
function fingerprintsOf(bytes: Buffer): readonly (string | null)[] {
  const found: (string | null)[] = [];
  for (let at = 0; at < bytes.length; ) {
    const head = bytes[at] as number;
    const isNew = (head & 0x40) !== 0;
    const length = (head & 0x80) === 0 ? null : isNew ? newLength(bytes, at + 1) : oldLength(bytes, at + 1, head & 3);
    if (length === null || length.start + length.size > bytes.length) return [null];
    at = length.start + length.size;
    if ((isNew ? head & 0x3f : (head >> 2) & 0xf) === PRIMARY_KEY) found.push(fingerprintOf(bytes.subarray(length.start, at)));
  }
  return found;
}

function oldLength(bytes: Buffer, at: number, type: number): ReturnType<typeof newLength> {
  const width = [1, 2, 4][type];
  if (width === undefined || at + width > bytes.length) return null;
  return { start: at + width, size: bytes.readUIntBE(at, width) };
}

/** Keys do not use partial lengths. */
function newLength(bytes: Buffer, at: number): { readonly start: number; readonly size: number } | null {
  const first = bytes[at];
  if (first === undefined) return null;
  if (first < 192) return { start: at + 1, size: first };
  if (first < 224) return at + 2 > bytes.length ? null : { start: at + 2, size: ((first - 192) << 8) + (bytes[at + 1] as number) + 192 };
  return first === 255 && at + 5 <= bytes.length ? { start: at + 5, size: bytes.readUInt32BE(at + 1) } : null;
}

function fingerprintOf(body: Buffer): string | null {
  if (body.length < 6) return null;
  const hashed = (algorithm: string, head: Buffer): string => createHash(algorithm).update(head).update(body).digest('hex').toUpperCase();
  if (body[0] === 4) {
    const head = Buffer.from([0x99, 0, 0]);
    head.writeUInt16BE(body.length, 1);
    return hashed('sha1', head);
  }
  if (body[0] !== 6) return null;
  const head = Buffer.from([0x9b, 0, 0, 0, 0]);
  head.writeUInt32BE(body.length, 1);
  return hashed('sha256', head);
}
