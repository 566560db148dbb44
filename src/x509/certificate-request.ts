import {
  children,
  type DerElement,
  DNS_NAME,
  decodeText,
  derElements,
  derOid,
  expectCount,
  IP_ADDRESS,
  isOid,
  isText,
  readAddress,
  readExtension,
} from './der.ts';

/** The requested subject and names of a CSR. */
export interface CertificateRequest {
  readonly commonNames: readonly string[];
  readonly organizations: readonly string[];
  /** Object identifiers of other subject parts, and of CN and O that are not plain text; a kubelet sends none. */
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

/** Exactly one block in canonical encoding: with additional text, another parser could read another part. */
const PEM =
  /^-----BEGIN CERTIFICATE REQUEST-----\r?\n((?:[A-Za-z0-9+/]+\r?\n)*[A-Za-z0-9+/]+={0,2}\r?\n)-----END CERTIFICATE REQUEST-----\s*$/;

/**
 * Parses a PKCS#10 CSR. The signature is not verified, because the API server rejects an invalid one.
 *
 * The signer parses the same text with another parser. Ambiguous encodings are therefore rejected, so that both see the
 * same CSR: text around the block, base64 with other characters, duplicate or additional elements.
 * @param pem `CERTIFICATE REQUEST`
 * @returns null when the text is not a CSR, is damaged or ambiguous
 * @see RFC 2986; RFC 5280 section 4.2.1.6; RFC 7468 section 3
 */
export function readCertificateRequest(pem: string): CertificateRequest | null {
  const base64 = PEM.exec(pem)?.[1];
  if (base64 === undefined) return null;
  try {
    const [request] = expectCount(1, derElements(Buffer.from(base64, 'base64')));
    const [info] = expectCount(3, children(request));
    const [, subject, , attributes] = expectCount(4, children(info));
    if (attributes?.tag !== ATTRIBUTES) throw new Error('missing attributes');
    return { ...readSubject(subject), ...readNames(children(attributes)) };
  } catch {
    return null;
  }
}

function readSubject(subject: DerElement | undefined): Pick<CertificateRequest, 'commonNames' | 'organizations' | 'otherSubject'> {
  const parts = children(subject).flatMap((set) =>
    children(set).map((part) => {
      const [oid, value] = expectCount(2, children(part));
      return { oid: derOid(oid?.bytes ?? new Uint8Array()), plain: isText(value), value: decodeText(value) };
    }),
  );
  const isNamed = ({ oid, plain }: (typeof parts)[number]): boolean => plain && (oid === COMMON_NAME || oid === ORGANIZATION);
  const of = (oid: string): readonly string[] => parts.filter((part) => isNamed(part) && part.oid === oid).map(({ value }) => value);
  return {
    commonNames: of(COMMON_NAME),
    organizations: of(ORGANIZATION),
    otherSubject: parts.filter((part) => !isNamed(part)).map(({ oid }) => oid),
  };
}

function readNames(attributes: readonly DerElement[]): Pick<CertificateRequest, 'dnsNames' | 'ipAddresses' | 'otherNames'> {
  const requested = attributes.map((attribute) => expectCount(2, children(attribute))).filter(([oid]) => isOid(oid, EXTENSION_REQUEST));
  const extensions = requested.flatMap(([, values]) => children(expectCount(1, children(values))[0]).map(readExtension));
  const [alternatives, another] = extensions.filter(({ oid }) => isOid(oid, ALTERNATIVE_NAMES));
  if (requested.length > 1 || another !== undefined) throw new Error('duplicate extension request or subject alternative names');
  const found = alternatives === undefined ? [] : children(expectCount(1, children(alternatives.value))[0]);
  const dnsNames: string[] = [];
  const ipAddresses: string[] = [];
  const otherNames: string[] = [];
  for (const name of found) {
    const address = name.tag === IP_ADDRESS ? readAddress(name.bytes) : null;
    if (name.tag === DNS_NAME) dnsNames.push(decodeText(name));
    else if (address !== null) ipAddresses.push(address);
    else otherNames.push(nameOfOtherKind(name));
  }
  return { dnsNames, ipAddresses, otherNames };
}

const KINDS: Readonly<Record<number, string>> = { 0: 'other', 1: 'email', 4: 'directory', 6: 'URI', 7: 'IP', 8: 'OID' };

function nameOfOtherKind({ tag, bytes }: DerElement): string {
  const kind = tag & 0x1f;
  return `${KINDS[kind] ?? kind}:${kind === 1 || kind === 6 ? new TextDecoder().decode(bytes) : Buffer.from(bytes).toString('hex')}`;
}
