import { decodeStrictBase64 } from '../base/text/base64.ts';
import { pemBody, privateKeyBlock } from '../x509/pem-blocks.ts';

/** The fields after the type in the wire format of a public key, each with its validation. */
type Part = (bytes: Buffer) => boolean;

const ofLength =
  (length: number): Part =>
  (bytes) =>
    bytes.length === length;
const text =
  (expected: string): Part =>
  (bytes) =>
    bytes.toString('latin1') === expected;
/** A positive number without redundant leading zeros. */
const number: Part = (bytes) => bytes.length > 0 && (bytes[0] as number) < 0x80 && !(bytes[0] === 0 && ((bytes[1] ?? 0) & 0x80) === 0);
/** OpenSSH rejects RSA keys below 1024 bits. */
const modulus: Part = (bytes) => number(bytes) && bytes.length - (bytes[0] === 0 ? 1 : 0) >= 128;
/** An uncompressed point. */
const point =
  (fieldBytes: number): Part =>
  (bytes) =>
    bytes.length === 1 + 2 * fieldBytes && bytes[0] === 4;
const anything: Part = () => true;

/** @see RFC 4253 6.6, RFC 5656 3.1, RFC 8709 4, openssh PROTOCOL.u2f */
const FORMS: Readonly<Record<string, readonly Part[]>> = {
  'ssh-ed25519': [ofLength(32)],
  'ssh-rsa': [number, modulus],
  'ssh-dss': [number, number, number, number],
  'ecdsa-sha2-nistp256': [text('nistp256'), point(32)],
  'ecdsa-sha2-nistp384': [text('nistp384'), point(48)],
  'ecdsa-sha2-nistp521': [text('nistp521'), point(66)],
  'sk-ssh-ed25519@openssh.com': [ofLength(32), anything],
  'sk-ecdsa-sha2-nistp256@openssh.com': [text('nistp256'), point(32), anything],
};

/**
 * Whether the bytes are the complete wire format of a public key of a type that OpenSSH supports. Only
 * signature verification validates the numbers.
 */
export function isPublicKeyForm(bytes: Uint8Array): boolean {
  const strings = readStrings(bytes);
  const [type, ...rest] = strings ?? [];
  if (type === undefined) return false;
  const name = type.toString('latin1');
  const form = Object.hasOwn(FORMS, name) ? FORMS[name] : undefined;
  return form !== undefined && rest.length === form.length && form.every((part, i) => part(rest[i] as Buffer));
}

/** The length of an RSA key's modulus; null for other key types. */
export function rsaBits(bytes: Uint8Array): number | null {
  const [type, , modulusBytes] = readStrings(bytes) ?? [];
  if (type?.toString('latin1') !== 'ssh-rsa' || modulusBytes === undefined) return null;
  const at = modulusBytes.findIndex((byte) => byte !== 0);
  return at < 0 ? 0 : (modulusBytes.length - at) * 8 - Math.clz32(modulusBytes[at] ?? 0) + 24;
}

/** Splits the bytes into strings; null when bytes are left over. */
function readStrings(bytes: Uint8Array): readonly Buffer[] | null {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const strings: Buffer[] = [];
  for (let at = 0; at < buffer.length; ) {
    const found = stringAt(buffer, at);
    if (found === null) return null;
    strings.push(found);
    at += 4 + found.length;
  }
  return strings;
}

/** The string with its length before it; null: incomplete. */
function stringAt(bytes: Buffer, at: number): Buffer | null {
  if (at + 4 > bytes.length) return null;
  const end = at + 4 + bytes.readUInt32BE(at);
  return end > bytes.length ? null : bytes.subarray(at + 4, end);
}

const MAGIC = 'openssh-key-v1\0';

/**
 * Reads the header of a private key file: OpenSSH's own format, or PEM.
 * @returns `publicBlob`: the wire format of the public key in base64, if the format stores it unencrypted; null when the text is not a
 *   private key
 * @see openssh PROTOCOL.key
 */
export function readPrivateKeyHeader(text: string): { readonly encrypted: boolean; readonly publicBlob: string | null } | null {
  const block = privateKeyBlock(text);
  if (block === null) return null;
  const { label } = block;
  const body = pemBody(block);
  if (label !== 'OPENSSH PRIVATE KEY')
    return { encrypted: label === 'ENCRYPTED PRIVATE KEY' || /Proc-Type: *4,ENCRYPTED/.test(body), publicBlob: null };
  const bytes = Buffer.from(body, 'base64');
  if (bytes.toString('latin1', 0, MAGIC.length) !== MAGIC) return null;
  let at = MAGIC.length;
  const next = (): Buffer | null => {
    const found = stringAt(bytes, at);
    at += 4 + (found?.length ?? 0);
    return found;
  };
  const [cipher, kdf, kdfOptions] = [next(), next(), next()];
  if (cipher === null || kdf === null) return null;
  // The number of keys.
  at += 4;
  const publicKey = kdfOptions === null ? null : next();
  return { encrypted: cipher.toString('latin1') !== 'none', publicBlob: publicKey?.toString('base64') ?? null };
}

/**
 * The wire format, in base64, of the first key in a public key file (`ssh-ed25519 AAAA… comment`); null when
 * the file contains none.
 */
export function readPublicKeyFile(text: string): string | null {
  const [type, blob] = text.trim().split(/\s+/);
  if (type === undefined || blob === undefined || !/^(ssh-|ecdsa-|sk-)/.test(type)) return null;
  return decodeStrictBase64(blob)?.toString('base64') ?? null;
}
