import type { X509Certificate } from 'node:crypto';
import { type CertificateHead, readHead, tbsCertificateElements } from './certificate-head.ts';
import { BOOLEAN, derOid } from './der.ts';
import { children, DNS_NAME, decodeText, type Extension, expectCount, IP_ADDRESS, readAddress, readExtension } from './der-parts.ts';
import { x509CertificatesIn } from './x509-certificates.ts';

/** The parsed content of a certificate. */
export interface CertificateContent extends CertificateHead {
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  /** OpenSSL's names: `Digital Signature`. Null: no such extension. */
  readonly keyUsage: readonly string[] | null;
  /** OpenSSL's names: `TLS Web Server Authentication`; others by object identifier. */
  readonly extKeyUsage: readonly string[];
  readonly isCa: boolean;
  readonly basicConstraintsCritical: boolean;
  readonly keyUsageCritical: boolean;
  readonly publicKey: PublicKeyKind;
  /** For verifying signatures; DER is in `raw`. */
  readonly x509: X509Certificate;
  readonly pem: string;
}

/** A public key: OpenSSL's name of its algorithm (`rsaEncryption`, `id-ecPublicKey`) and its size. */
interface PublicKeyKind {
  readonly algorithm: string;
  readonly bits: number | null;
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
 * @returns null when the text contains no certificate, a damaged one, or more than a hundred
 */
export function readCertificateChain(pem: string): readonly [CertificateContent, ...CertificateContent[]] | null {
  const certificates = x509CertificatesIn(pem, MAX_CERTIFICATES);
  if (certificates === null) return null;
  try {
    const [first, ...rest] = certificates.map(readOne);
    return first === undefined ? null : [first, ...rest];
  } catch {
    return null;
  }
}

/** Limits the work for hostile input; real chains are far shorter. */
const MAX_CERTIFICATES = 100;

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
    isCa: readIsCa(read.get('2.5.29.19')),
    basicConstraintsCritical: read.get('2.5.29.19')?.critical ?? false,
    keyUsageCritical: keyUsage?.critical ?? false,
    publicKey: kindOf(x509),
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

function readIsCa(extension: Extension | undefined): boolean {
  const [constraints] = extension === undefined ? [] : expectCount(1, children(extension.value));
  const [flag] = constraints === undefined ? [] : children(constraints);
  return flag?.tag === BOOLEAN && flag.bytes[0] !== 0;
}

const CURVE_BITS: Readonly<Record<string, number>> = { prime256v1: 256, secp384r1: 384, secp521r1: 521, secp224r1: 224 };

function kindOf({ publicKey }: X509Certificate): PublicKeyKind {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = publicKey;
  if (type === 'rsa') return { algorithm: 'rsaEncryption', bits: details?.modulusLength ?? null };
  if (type === 'ec') return { algorithm: 'id-ecPublicKey', bits: CURVE_BITS[details?.namedCurve ?? ''] ?? null };
  return { algorithm: type ?? 'unknown', bits: null };
}
