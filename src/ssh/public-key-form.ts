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
  let at = 0;
  while (at < buffer.length) {
    if (at + 4 > buffer.length) return null;
    const end = at + 4 + buffer.readUInt32BE(at);
    if (end > buffer.length) return null;
    strings.push(buffer.subarray(at + 4, end));
    at = end;
  }
  return strings;
}
