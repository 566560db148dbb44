import { type DerElement, derElements, derOid } from './der.ts';
import { children, decodeText, expectCount } from './der-parts.ts';
import { certificateBlocks, pemBody } from './pem-blocks.ts';

/** One part of a name, e.g. `CN` and `kubernetes`. */
export interface NamePart {
  /** The short name if defined, else the object identifier. */
  readonly type: string;
  readonly value: string;
}

/** Subject, issuer and validity of a certificate. */
export interface CertificateHead {
  /** In the order of the certificate. */
  readonly subject: readonly NamePart[];
  readonly issuer: readonly NamePart[];
  readonly notBefore: Date;
  readonly notAfter: Date;
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
export function readHead(parts: readonly DerElement[]): CertificateHead {
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

/** UTCTime for years from 1950 to 2049, or GeneralizedTime; both in UTC with seconds. */
function readTime(element: DerElement): Date {
  const text = decodeText(element);
  const [, years = '', ...rest] = /^(\d\d|\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? [];
  const [month = 0, day = 0, hour = 0, minute = 0, second = 0] = rest.map(Number);
  const hasForm = (element.tag === UTC_TIME && years.length === 2) || (element.tag === GENERALIZED_TIME && years.length === 4);
  const year = years.length === 2 ? Number(years) + (Number(years) < 50 ? 2000 : 1900) : Number(years);
  const time = new Date(Date.UTC(year, month - 1, day, hour, minute, second));
  if (!hasForm || time.getUTCMonth() !== month - 1 || time.getUTCDate() !== day) throw new Error('invalid time in the certificate');
  return time;
}
