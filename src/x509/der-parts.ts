import { formatIp } from '../base/text/ip.ts';
import { BOOLEAN, type DerElement, derElements, derOid, OCTET_STRING } from './der.ts';

/** Elements of certificates and CSRs (RFC 5280, RFC 2986). All functions throw an Error for invalid bytes. */

export const DNS_NAME = 0x82;
export const IP_ADDRESS = 0x87;

/** Returns the elements if their number is as expected. */
export function expectCount<T>(count: number, elements: readonly T[]): readonly T[] {
  if (elements.length !== count) throw new Error(`expected ${count} elements, found ${elements.length}`);
  return elements;
}

/** The elements inside an element. */
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

/** Whether an element is this object identifier. */
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

/** Whether an element is plain text. */
export function isText(element: DerElement | undefined): boolean {
  return element !== undefined && TEXTS.has(element.tag);
}

/** The text of an element. A byte order mark is kept, as in the API server's parser. */
export function decodeText(element: DerElement | undefined): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(element?.bytes ?? new Uint8Array());
}
