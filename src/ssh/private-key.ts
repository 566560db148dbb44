import { decodeStrictBase64 } from '../base/text/base64.ts';
import { pemBody, privateKeyBlock } from '../x509/pem-blocks.ts';

/** The readable header of a private key file. */
interface PrivateKeyHeader {
  readonly encrypted: boolean;
  /** Wire format of the public key in base64, if the format stores it unencrypted. */
  readonly publicBlob: string | null;
}

const MAGIC = 'openssh-key-v1\0';

/**
 * Reads the header of a private key file: OpenSSH's own format, or PEM.
 * @returns null when the text is not a private key
 * @see openssh PROTOCOL.key
 */
export function readPrivateKeyHeader(text: string): PrivateKeyHeader | null {
  const block = privateKeyBlock(text);
  if (block === null) return null;
  const { label } = block;
  const body = pemBody(block);
  if (label !== 'OPENSSH PRIVATE KEY')
    return { encrypted: label === 'ENCRYPTED PRIVATE KEY' || /Proc-Type: *4,ENCRYPTED/.test(body), publicBlob: null };
  const bytes = Buffer.from(body, 'base64');
  if (bytes.toString('latin1', 0, MAGIC.length) !== MAGIC) return null;
  const [cipher, kdf, , publicKey] = readStrings(bytes, MAGIC.length, 4);
  if (cipher === undefined || kdf === undefined) return null;
  return { encrypted: cipher.toString('latin1') !== 'none', publicBlob: publicKey?.toString('base64') ?? null };
}

/** Cipher, key derivation function and its options; then the number of keys; then the first public key. */
function readStrings(bytes: Buffer, start: number, count: number): Buffer[] {
  const strings: Buffer[] = [];
  let at = start;
  while (strings.length < count) {
    if (strings.length === 3) at += 4;
    if (at + 4 > bytes.length) break;
    const length = bytes.readUInt32BE(at);
    if (at + 4 + length > bytes.length) break;
    strings.push(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return strings;
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
