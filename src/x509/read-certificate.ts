import { X509Certificate } from 'node:crypto';
import {
  BOOLEAN,
  children,
  type DerElement,
  DNS_NAME,
  decodeText,
  derElements,
  derOid,
  type Extension,
  expectCount,
  IP_ADDRESS,
  readAddress,
  readExtension,
} from './der.ts';
import { certificateBlocks, pemBody } from './pem-blocks.ts';

/** One part of a name, e.g. `CN` and `kubernetes`. */
export interface NamePart {
  /** The short name if defined, else the object identifier. */
  readonly type: string;
  readonly value: string;
}

/** Subject, issuer and validity of a certificate. */
interface CertificateHead {
  /** In the order of the certificate. */
  readonly subject: readonly NamePart[];
  readonly issuer: readonly NamePart[];
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** The parsed content of a certificate. */
export interface CertificateContent extends CertificateHead {
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  /** OpenSSL's names: `Digital Signature`. Null: no such extension. */
  readonly keyUsage: readonly string[] | null;
  /** OpenSSL's names: `TLS Web Server Authentication`; others by object identifier. */
  readonly extKeyUsage: readonly string[];
  /** Has CA:TRUE, and a key usage, if any, that allows it to sign certificates: OpenSSL's and Go's verifiers require both. */
  readonly isCa: boolean;
  readonly basicConstraints: 'CA:TRUE' | 'CA:FALSE';
  readonly basicConstraintsCritical: boolean;
  readonly keyUsageCritical: boolean;
  /** For verifying signatures; DER is in `raw`. */
  readonly x509: X509Certificate;
  readonly pem: string;
}

/**
 * Parses the first certificate of a PEM text.
 * @returns null when the text contains no certificate or a damaged one
 */
export function readCertificate(pem: string): CertificateContent | null {
  return readCertificateChain(pem)?.[0] ?? null;
}

/**
 * Parses all certificates of a PEM text, in order; blocks of other types are ignored.
 * @returns null when the text contains no certificate, a damaged one, one whose public key cannot be decoded, or more
 * than a hundred
 */
export function readCertificateChain(pem: string): readonly [CertificateContent, ...CertificateContent[]] | null {
  const [first, ...rest] = parseCertificates(pem, MOST_IN_CHAIN) ?? [];
  return first === undefined || ![first, ...rest].every(hasPublicKey) ? null : [first, ...rest];
}

/** The first certificate of a PEM text, as `readCertificate`, or why there is none: a clause about the text. */
export function certificateOrWhy(pem: string): CertificateContent | string {
  return readCertificate(pem) ?? whyNoCertificate(pem);
}

/** Why `readCertificateChain` returns null for a text, as a clause about it. */
export function whyNoCertificate(pem: string): string {
  if (certificateBlocks(pem).length > MOST_IN_CHAIN) return `contains more than ${MOST_IN_CHAIN} certificates`;
  return pem.includes('-----BEGIN CERTIFICATE-----') ? 'contains a certificate that cannot be read' : 'contains no certificate';
}

const MOST_IN_CHAIN = 100;

/** OpenSSL decodes the key only when it is read, and throws then. */
function hasPublicKey({ x509 }: CertificateContent): boolean {
  try {
    return x509.publicKey !== undefined;
  } catch {
    return false;
  }
}

/** Limits the work for hostile input; bundles of clusters are far smaller. */
export const MAX_CERTIFICATES = 1_000;

/**
 * Parses the certificates of a PEM text, as `readCertificateChain`. Their public keys may be of a type that OpenSSL cannot
 * decode: `x509.publicKey` may throw.
 * @returns an empty list for a text without certificates; null when one is damaged, or for more than `most`
 * @see client-go util/cert ParseCertsPEM (1.36)
 */
export function parseCertificates(pem: string, most = MAX_CERTIFICATES): readonly CertificateContent[] | null {
  try {
    return x509CertificatesIn(pem, most)?.map(readOne) ?? null;
  } catch {
    return null;
  }
}

const EXTENSIONS = 0xa3;

function readOne(x509: X509Certificate | null): CertificateContent {
  if (x509 === null) throw new Error('it is damaged');
  const parts = tbsCertificateElements(x509.raw);
  const extensions = parts.filter(({ tag }) => tag === EXTENSIONS).flatMap((each) => children(expectCount(1, children(each))[0]));
  const read = new Map(extensions.map(readExtension).map((extension) => [derOid(extension.oid.bytes), extension]));
  const keyUsage = read.get('2.5.29.15');
  return {
    ...readHead(parts),
    ...readAlternativeNames(read.get('2.5.29.17')),
    keyUsage: keyUsage === undefined ? null : readKeyUsage(keyUsage),
    extKeyUsage: readExtKeyUsage(read.get('2.5.29.37')),
    isCa: x509.ca,
    basicConstraints: readBasicConstraints(read.get('2.5.29.19')),
    basicConstraintsCritical: read.get('2.5.29.19')?.critical ?? false,
    keyUsageCritical: keyUsage?.critical ?? false,
    x509,
    pem: x509.toString(),
  };
}

function readAlternativeNames(extension: Extension | undefined): Pick<CertificateContent, 'dnsNames' | 'ipAddresses'> {
  const names = extension === undefined ? [] : children(expectCount(1, children(extension.value))[0]);
  return {
    dnsNames: names.filter(({ tag }) => tag === DNS_NAME).map(decodeText),
    ipAddresses: names.filter(({ tag }) => tag === IP_ADDRESS).flatMap(({ bytes }) => readAddress(bytes) ?? []),
  };
}

/** By bit number. */
const KEY_USAGES = [
  'Digital Signature',
  'Non Repudiation',
  'Key Encipherment',
  'Data Encipherment',
  'Key Agreement',
  'Certificate Sign',
  'CRL Sign',
  'Encipher Only',
  'Decipher Only',
] as const;

function readKeyUsage({ value }: Extension): readonly string[] {
  const [bits] = expectCount(1, children(value));
  const bytes = bits?.bytes.subarray(1) ?? new Uint8Array();
  return KEY_USAGES.filter((_, i) => (((bytes[i >> 3] ?? 0) >> (7 - (i & 7))) & 1) === 1);
}

const EXT_KEY_USAGES: Readonly<Record<string, string>> = {
  '2.5.29.37.0': 'Any Extended Key Usage',
  '1.3.6.1.5.5.7.3.1': 'TLS Web Server Authentication',
  '1.3.6.1.5.5.7.3.2': 'TLS Web Client Authentication',
  '1.3.6.1.5.5.7.3.3': 'Code Signing',
  '1.3.6.1.5.5.7.3.4': 'E-mail Protection',
  '1.3.6.1.5.5.7.3.8': 'Time Stamping',
  '1.3.6.1.5.5.7.3.9': 'OCSP Signing',
};

function readExtKeyUsage(extension: Extension | undefined): readonly string[] {
  const usages = extension === undefined ? [] : children(expectCount(1, children(extension.value))[0]);
  return usages.map(({ bytes }) => derOid(bytes)).map((oid) => EXT_KEY_USAGES[oid] ?? oid);
}

function readBasicConstraints(extension: Extension | undefined): CertificateContent['basicConstraints'] {
  const [constraints] = extension === undefined ? [] : expectCount(1, children(extension.value));
  const [flag] = constraints === undefined ? [] : children(constraints);
  return flag?.tag === BOOLEAN && flag.bytes[0] !== 0 ? 'CA:TRUE' : 'CA:FALSE';
}

/**
 * Reads only subject, issuer and validity of the first certificate of a PEM text: parsing the whole
 * certificate with OpenSSL takes twenty times as long.
 * @throws Error when the text contains no certificate or a damaged one
 */
export function readCertificateHead(pem: string): CertificateHead {
  const [block] = certificateBlocks(pem);
  if (block === undefined) throw new Error('no certificate found');
  return readHead(tbsCertificateElements(Buffer.from(pemBody(block), 'base64')));
}

const VERSION = 0xa0;

/**
 * The elements of TBSCertificate, starting with the serial number.
 * @throws Error when the bytes are not a certificate
 * @see RFC 5280 section 4.1
 */
export function tbsCertificateElements(der: Uint8Array): readonly DerElement[] {
  const [certificate] = expectCount(1, derElements(der));
  const [body] = expectCount(3, children(certificate));
  return children(body).filter(({ tag }, i) => i > 0 || tag !== VERSION);
}

/**
 * @param parts the result of `tbsCertificateElements`
 * @throws Error for invalid elements
 */
function readHead(parts: readonly DerElement[]): CertificateHead {
  const [notBefore, notAfter] = expectCount(2, children(parts[3])).map(readTime);
  return { subject: readName(parts[4]), issuer: readName(parts[2]), notBefore: notBefore as Date, notAfter: notAfter as Date };
}

const NAME_TYPES: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.5': 'serialNumber',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'street',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '0.9.2342.19200300.100.1.25': 'DC',
  '1.2.840.113549.1.9.1': 'emailAddress',
};

function readName(name: DerElement | undefined): readonly NamePart[] {
  return children(name).flatMap((set) =>
    children(set).map((part) => {
      const [oid, value] = expectCount(2, children(part));
      const type = derOid(oid?.bytes ?? new Uint8Array());
      return { type: NAME_TYPES[type] ?? type, value: decodeText(value) };
    }),
  );
}

const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;

const TIME = /^(\d{4})(\d\d)(\d\d)(\d\d)([0-5]\d)([0-5]\d)(?:Z|([+-])([01]\d|2[0-3])([0-5]\d))$/;

/**
 * UTCTime for years from 1950 to 2049, with or without seconds, or GeneralizedTime; both in UTC or with an offset.
 * @see Go x/crypto/cryptobyte ReadASN1UTCTime, ReadASN1GeneralizedTime
 */
function readTime(element: DerElement): Date {
  const text = decodeText(element);
  const utcTime = `${text < '5' ? '20' : '19'}${text.replace(/^\d{10}(?=\D)/, '$&00')}`;
  const [, year, month, day, hour, minute, second, sign, ...offset] =
    TIME.exec(element.tag === UTC_TIME ? utcTime : element.tag === GENERALIZED_TIME ? text : '') ?? [];
  const time = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)));
  if (time.getUTCMonth() !== Number(month) - 1 || time.getUTCDate() !== Number(day)) throw new Error('invalid time in the certificate');
  if (sign === undefined) return time;
  const [hours = 0, minutes = 0] = offset.map(Number);
  return new Date(time.getTime() - (sign === '-' ? -1 : 1) * (hours * 60 + minutes) * 60_000);
}

/**
 * The certificates of a PEM text in their order, read as OpenSSL does. Only this function parses the text of
 * certificates. Blocks of other kinds are ignored.
 * @param most maximum number of blocks, so that a hostile text causes little work
 * @returns null for a damaged block; null for all if the text has more than `most`
 */
export function x509CertificatesIn(pem: string, most: number): readonly (X509Certificate | null)[] | null {
  const blocks = certificateBlocks(pem);
  return blocks.length > most ? null : blocks.map((block) => x509CertificateOf(block.pem));
}

/** One certificate of PEM or DER; null when it is damaged. */
export function x509CertificateOf(certificate: string | Buffer): X509Certificate | null {
  try {
    return new X509Certificate(certificate);
  } catch {
    return null;
  }
}
