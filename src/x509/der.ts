import { formatIp } from '../base/text/ip.ts';

/** One DER element: its tag and content, and all its bytes. */
export interface DerElement {
  readonly tag: number;
  readonly bytes: Uint8Array;
  readonly whole: Uint8Array;
}

export const BOOLEAN = 0x01;
const OCTET_STRING = 0x04;

/**
 * Splits DER bytes into consecutive elements.
 * @throws Error when the elements do not fill the bytes exactly, or are not valid DER
 * @see ITU-T X.690 clauses 8.1 and 10.1
 */
export function derElements(bytes: Uint8Array): readonly DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at] as number;
    if ((tag & 0x1f) === 0x1f) throw new Error('multi-byte tags are not supported');
    const { length, start } = readLength(bytes, at + 1);
    const end = start + length;
    if (end > bytes.length) throw new Error('truncated element');
    elements.push({ tag, bytes: bytes.subarray(start, end), whole: bytes.subarray(at, end) });
    at = end;
  }
  return elements;
}

function readLength(bytes: Uint8Array, at: number): { readonly length: number; readonly start: number } {
  const first = bytes[at];
  if (first === undefined) throw new Error('truncated element');
  if (first < 0x80) return { length: first, start: at + 1 };
  const count = first & 0x7f;
  if (count === 0 || count > 4 || at + count >= bytes.length) throw new Error('invalid length');
  let length = 0;
  for (let i = 1; i <= count; i++) length = length * 256 + (bytes[at + i] as number);
  return { length, start: at + 1 + count };
}

/** An object identifier in dotted notation. */
export function derOid(bytes: Uint8Array): string {
  const numbers: number[] = [];
  let value = 0;
  for (const byte of bytes) {
    value = value * 128 + (byte & 0x7f);
    if ((byte & 0x80) !== 0) continue;
    numbers.push(value);
    value = 0;
  }
  const [first = 0, ...rest] = numbers;
  const root = Math.min(Math.floor(first / 40), 2);
  return [root, first - root * 40, ...rest].join('.');
}

/** Elements of certificates and CSRs (RFC 5280, RFC 2986). All functions throw an Error for invalid bytes. */

export const DNS_NAME = 0x82;
export const IP_ADDRESS = 0x87;

/** Returns the elements if their number is as expected. */
export function expectCount<T>(count: number, elements: readonly T[]): readonly T[] {
  if (elements.length !== count) throw new Error(`expected ${count} elements, found ${elements.length}`);
  return elements;
}

export function children(element: DerElement | undefined): readonly DerElement[] {
  if (element === undefined) throw new Error('missing element');
  return derElements(element.bytes);
}

export interface Extension {
  readonly oid: DerElement;
  readonly critical: boolean;
  readonly value: DerElement;
}

/** `SEQUENCE { extnID, critical BOOLEAN DEFAULT FALSE, extnValue OCTET STRING }` */
export function readExtension(element: DerElement): Extension {
  const [oid, ...rest] = children(element);
  const flag = rest[0]?.tag === BOOLEAN ? rest[0] : undefined;
  const [value] = expectCount(1, flag === undefined ? rest : rest.slice(1));
  if (oid === undefined || value?.tag !== OCTET_STRING) throw new Error('not a valid extension');
  return { oid, critical: flag !== undefined && flag.bytes[0] !== 0, value };
}

export function isOid(element: DerElement | undefined, oid: string): boolean {
  return element !== undefined && derOid(element.bytes) === oid;
}

/** An address in Go's notation; null unless it has 4 or 16 bytes. */
export function readAddress(bytes: Uint8Array): string | null {
  if (bytes.length !== 4 && bytes.length !== 16) return null;
  const value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  return formatIp({ family: bytes.length === 4 ? 4 : 6, value });
}

/** UTF8String, PrintableString, IA5String: the types that Kubernetes uses. */
const TEXTS: ReadonlySet<number> = new Set([0x0c, 0x13, 0x16]);

export function isText(element: DerElement | undefined): boolean {
  return element !== undefined && TEXTS.has(element.tag);
}

const T61_STRING = 0x14;
const BMP_STRING = 0x1e;

/**
 * The text of an element. A byte order mark is kept, as in the API server's parser. T61String is read as Latin-1, as in
 * OpenSSL.
 */
export function decodeText(element: DerElement | undefined): string {
  const bytes = element?.bytes ?? new Uint8Array();
  if (element?.tag === T61_STRING) return Buffer.from(bytes).toString('latin1');
  if (element?.tag === BMP_STRING) return Buffer.from(bytes).swap16().toString('utf16le');
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
}
