import { decodeStrictBase64 } from '../base/text/base64.ts';
import { pemBody, privateKeyBlock } from '../x509/pem-blocks.ts';

/** What a private key file tells without its passphrase. */
export interface PrivateKeyHeader {
  readonly encrypted: boolean;
  /** Wire form of the public half in base64, where the format keeps it readable. */
  readonly publicBlob: string | null;
}

const MAGIC = 'openssh-key-v1\0';

/**
 * Looks into a private key file: OpenSSH's own format, or PEM.
 * @returns null when the text holds no private key
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

/** Cipher, key derivation and its options; then a count of keys; then the first public key. */
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
 * The wire form, in base64, of the first key in a public key file (`ssh-ed25519 AAAA… comment`); null when there is none.
 */
export function readPublicKeyFile(text: string): string | null {
  const [type, blob] = text.trim().split(/\s+/);
  if (type === undefined || blob === undefined || !/^(ssh-|ecdsa-|sk-)/.test(type)) return null;
  return decodeStrictBase64(blob)?.toString('base64') ?? null;
}
