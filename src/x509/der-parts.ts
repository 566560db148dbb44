import { formatIp } from '../base/text/ip.ts';
import { BOOLEAN, type DerElement, derElements, derOid, OCTET_STRING } from './der.ts';

/** What certificates and requests for them are made of (RFC 5280, RFC 2986). All of it throws an Error where the bytes are something else. */

export const DNS_NAME = 0x82;
export const IP_ADDRESS = 0x87;

/** The elements, when there are as many as there must be. */
export function exactly<T>(count: number, elements: readonly T[]): readonly T[] {
  if (elements.length !== count) throw new Error(`${elements.length} elements in place of ${count}`);
  return elements;
}

/** What is in an element. */
export function children(element: DerElement | undefined): readonly DerElement[] {
  if (element === undefined) throw new Error('an element is missing');
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
  const [value] = exactly(1, flag === undefined ? rest : rest.slice(1));
  if (oid === undefined || value?.tag !== OCTET_STRING) throw new Error('this is no extension');
  return { oid, critical: flag !== undefined && flag.bytes[0] !== 0, value };
}

/** Whether an element is this object identifier. */
export function isOid(element: DerElement | undefined, oid: string): boolean {
  return element !== undefined && derOid(element.bytes) === oid;
}

/** An address as Go writes it; null when it has neither 4 nor 16 bytes. */
export function readAddress(bytes: Uint8Array): string | null {
  if (bytes.length !== 4 && bytes.length !== 16) return null;
  const value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  return formatIp({ family: bytes.length === 4 ? 4 : 6, value });
}

/** UTF8String, PrintableString, IA5String: what Kubernetes writes. */
const TEXTS: ReadonlySet<number> = new Set([0x0c, 0x13, 0x16]);

/** Whether an element is plain text. */
export function isText(element: DerElement | undefined): boolean {
  return element !== undefined && TEXTS.has(element.tag);
}

/** The text of an element. A byte order mark stays: the reader of the API server keeps it as well. */
export function decodeText(element: DerElement | undefined): string {
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(element?.bytes ?? new Uint8Array());
}
