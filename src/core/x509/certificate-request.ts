import { formatIp } from '../text/ip.ts';
import { type DerElement, derElements, derOid, OCTET_STRING } from './der.ts';

/** What a certificate signing request asks for. */
export interface CertificateRequest {
  readonly commonNames: readonly string[];
  readonly organizations: readonly string[];
  /** Other parts of the subject, by object identifier: a kubelet has none. */
  readonly otherSubject: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  /** Subject alternative names of other kinds, as `kind:value`. */
  readonly otherNames: readonly string[];
}

const COMMON_NAME = '2.5.4.3';
const ORGANIZATION = '2.5.4.10';
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const ALTERNATIVE_NAMES = '2.5.29.17';
const ATTRIBUTES = 0xa0;

/**
 * Takes a PKCS#10 request apart. Its signature is not looked at: the API server refuses one that was not made with the key in it.
 * @param pem `CERTIFICATE REQUEST`
 * @returns null when it is none, or is damaged
 * @see RFC 2986; RFC 5280 section 4.2.1.6
 */
export function readCertificateRequest(pem: string): CertificateRequest | null {
  const base64 = /-----BEGIN (?:NEW )?CERTIFICATE REQUEST-----([A-Za-z0-9+/=\s]+)-----END (?:NEW )?CERTIFICATE REQUEST-----/.exec(pem)?.[1];
  if (base64 === undefined) return null;
  try {
    const [request] = derElements(Buffer.from(base64, 'base64'));
    const [info] = children(request);
    const [, subject, , ...more] = children(info);
    const attributes = more.find(({ tag }) => tag === ATTRIBUTES);
    return { ...readSubject(subject), ...readNames(attributes === undefined ? [] : children(attributes)) };
  } catch {
    return null;
  }
}

function children(element: DerElement | undefined): readonly DerElement[] {
  if (element === undefined) throw new Error('an element is missing');
  return derElements(element.bytes);
}

function readSubject(subject: DerElement | undefined): Pick<CertificateRequest, 'commonNames' | 'organizations' | 'otherSubject'> {
  const parts = children(subject).flatMap((set) =>
    children(set).map((part) => {
      const [oid, value] = children(part);
      return { oid: derOid(oid?.bytes ?? new Uint8Array()), value: decodeText(value) };
    }),
  );
  const of = (oid: string): readonly string[] => parts.filter((part) => part.oid === oid).map(({ value }) => value);
  return {
    commonNames: of(COMMON_NAME),
    organizations: of(ORGANIZATION),
    otherSubject: parts.filter(({ oid }) => oid !== COMMON_NAME && oid !== ORGANIZATION).map(({ oid }) => oid),
  };
}

function readNames(attributes: readonly DerElement[]): Pick<CertificateRequest, 'dnsNames' | 'ipAddresses' | 'otherNames'> {
  const names = attributes.filter((attribute) => derOid(children(attribute)[0]?.bytes ?? new Uint8Array()) === EXTENSION_REQUEST);
  const extensions = names.flatMap((attribute) => children(children(attribute)[1]).flatMap(children));
  const alternatives = extensions.filter((extension) => derOid(children(extension)[0]?.bytes ?? new Uint8Array()) === ALTERNATIVE_NAMES);
  const found = alternatives.flatMap((extension) => {
    const value = children(extension).findLast(({ tag }) => tag === OCTET_STRING);
    return children(derElements(value?.bytes ?? new Uint8Array())[0]);
  });
  const dnsNames: string[] = [];
  const ipAddresses: string[] = [];
  const otherNames: string[] = [];
  for (const name of found) {
    const kind = name.tag & 0x1f;
    const address = kind === 7 ? readAddress(name.bytes) : null;
    if (kind === 2) dnsNames.push(decodeText(name));
    else if (address !== null) ipAddresses.push(address);
    else otherNames.push(`${KINDS[kind] ?? kind}:${kind === 1 || kind === 6 ? decodeText(name) : Buffer.from(name.bytes).toString('hex')}`);
  }
  return { dnsNames, ipAddresses, otherNames };
}

const KINDS: Readonly<Record<number, string>> = { 0: 'other', 1: 'email', 4: 'directory', 6: 'URI', 7: 'IP', 8: 'OID' };

function readAddress(bytes: Uint8Array): string | null {
  if (bytes.length !== 4 && bytes.length !== 16) return null;
  const value = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  return formatIp({ family: bytes.length === 4 ? 4 : 6, value });
}

/** UTF8String, PrintableString, IA5String: what Kubernetes writes. */
function decodeText(element: DerElement | undefined): string {
  return new TextDecoder().decode(element?.bytes ?? new Uint8Array());
}
