import { createHash } from 'node:crypto';
import { pemBlocks, pemBody } from '../../x509/pem-blocks.ts';

export interface PublicKey {
  /** Upper-case hexadecimal digits: 40 for version 4, 64 for version 6. */
  readonly fingerprint: string;
  /** From the newest self-signature; null: never expires. */
  readonly expiresAt: Date | null;
}

/**
 * The primary keys of an ASCII-armored file; null: another format. Signatures are not verified: a pinned
 * fingerprint pins the key.
 * @see RFC 9580, sections 4 to 6; RFC 4880
 */
export function readPublicKeys(text: string): readonly PublicKey[] | null {
  const blocks = pemBlocks(text).filter(({ label }) => label === 'PGP PUBLIC KEY BLOCK');
  const keys: PublicKey[] = [];
  for (const block of blocks) {
    const found = keysOf(unarmoured(pemBody(block)));
    if (found === null) return null;
    keys.push(...found);
  }
  return keys.length === 0 ? null : keys;
}

/** The headers end with an empty line, the data with a checksum. */
function unarmoured(block: string): Buffer {
  const lines = block.split(/\r?\n/).slice(1);
  const body = lines.slice(lines.findIndex((line) => line.trim() === '') + 1);
  const end = body.findIndex((line) => line.startsWith('='));
  return Buffer.from((end < 0 ? body : body.slice(0, end)).join(''), 'base64');
}

interface Packet {
  readonly tag: number;
  readonly body: Buffer;
}

const SIGNATURE = 2;
const PRIMARY_KEY = 6;
const SUBKEY = 14;

function keysOf(bytes: Buffer): readonly PublicKey[] | null {
  const packets = packetsOf(bytes);
  if (packets === null) return null;
  const keys: PublicKey[] = [];
  for (const [index, { tag, body }] of packets.entries()) {
    if (tag !== PRIMARY_KEY) continue;
    const fingerprint = fingerprintOf(body);
    if (fingerprint === null) return null;
    const rest = packets.slice(index + 1);
    const end = rest.findIndex((packet) => packet.tag === PRIMARY_KEY || packet.tag === SUBKEY);
    const seconds = expirationOf(rest.slice(0, end < 0 ? undefined : end));
    keys.push({ fingerprint, expiresAt: seconds === null ? null : new Date((body.readUInt32BE(1) + seconds) * 1000) });
  }
  return keys;
}

function packetsOf(bytes: Buffer): readonly Packet[] | null {
  const packets: Packet[] = [];
  for (let at = 0; at < bytes.length; ) {
    const head = bytes[at] as number;
    if ((head & 0x80) === 0) return null;
    const isNew = (head & 0x40) !== 0;
    const length = isNew ? newLength(bytes, at + 1) : oldLength(bytes, at + 1, head & 3);
    if (length === null || length.start + length.size > bytes.length) return null;
    const { start, size } = length;
    packets.push({ tag: isNew ? head & 0x3f : (head >> 2) & 0xf, body: bytes.subarray(start, start + size) });
    at = start + size;
  }
  return packets;
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

const CREATED = 2;
const KEY_EXPIRES = 9;

/** Seconds from key creation to expiration in the newest signature of the key or a user id; null: no expiration. */
function expirationOf(packets: readonly Packet[]): number | null {
  let newest = -1;
  let seconds: number | null = null;
  for (const { tag, body } of packets) {
    if (tag !== SIGNATURE) continue;
    const subpackets = signatureSubpackets(body);
    if (subpackets === null) continue;
    const created = subpackets.get(CREATED)?.readUInt32BE(0) ?? 0;
    if (created <= newest) continue;
    newest = created;
    const expires = subpackets.get(KEY_EXPIRES)?.readUInt32BE(0) ?? 0;
    seconds = expires === 0 ? null : expires;
  }
  return seconds;
}

/** The hashed subpackets; null for other signature types. */
function signatureSubpackets(body: Buffer): ReadonlyMap<number, Buffer> | null {
  const [version = 0, type = 0] = body;
  const isSelf = (type >= 0x10 && type <= 0x13) || type === 0x1f;
  if (!isSelf || (version !== 4 && version !== 6)) return null;
  const width = version === 4 ? 2 : 4;
  if (body.length < 4 + width) return null;
  const end = 4 + width + body.readUIntBE(4, width);
  const found = new Map<number, Buffer>();
  for (let at = 4 + width; at < end && end <= body.length; ) {
    const length = newLength(body, at);
    // Subpacket lengths have no partial form: the same first octets mean a two-octet length.
    const first = body[at] as number;
    const { start, size } =
      first >= 224 && first < 255
        ? { start: at + 2, size: ((first - 192) << 8) + (body[at + 1] ?? 0) + 192 }
        : (length ?? { start: end, size: 1 });
    if (size === 0 || start + size > end) return found;
    const kind = (body[start] as number) & 0x7f;
    const value = body.subarray(start + 1, start + size);
    if ((kind === CREATED || kind === KEY_EXPIRES) && value.length === 4) found.set(kind, value);
    at = start + size;
  }
  return found;
}
