import type { X509Certificate } from 'node:crypto';
import { parseIp } from '../base/text/ip.ts';
import { formatRfc3339 } from '../base/text/rfc3339.ts';
import { type CertificateContent, type NamePart, readCertificate } from './read-certificate.ts';

/** A description of a certificate for plans. Names are OpenSSL's; lists are sorted; absent fields are omitted. */
export interface CertificateDescription {
  /** In reverse order: `CN=kubernetes-admin,O=kubeadm:cluster-admins` */
  readonly subject: string;
  readonly issuer: string;
  /** `DNS:cp-1`, `IP Address:10.96.0.1` */
  readonly san?: readonly string[];
  readonly keyUsage?: readonly string[];
  readonly keyUsageCritical?: boolean;
  readonly extKeyUsage?: readonly string[];
  /** `CA:TRUE` */
  readonly basicConstraints: readonly string[];
  readonly basicConstraintsCritical: boolean;
  /** RFC 3339. */
  readonly notBefore: string;
  readonly notAfter: string;
  /** The algorithm: `rsaEncryption`, `id-ecPublicKey`. */
  readonly publicKey: string;
  readonly bits: number | null;
}

/** A description of a kubeconfig for plans. */
export interface KubeconfigDescription {
  readonly cluster: string;
  readonly server: string;
  readonly user: string;
  readonly currentContext: string;
}

/**
 * Describes the first certificate of a PEM text.
 * @throws Error when the text, which the program itself created, contains no certificate
 */
export function describeCertificate(pem: string): CertificateDescription {
  const read = readCertificate(pem);
  if (read === null) throw new Error('not a certificate');
  return describe(read);
}

export function describe(read: CertificateContent): CertificateDescription {
  const san = [...read.dnsNames.map((name) => `DNS:${name}`), ...read.ipAddresses.map((address) => `IP Address:${longForm(address)}`)];
  return {
    subject: formatName(read.subject),
    issuer: formatName(read.issuer),
    ...(san.length === 0 ? {} : { san: san.toSorted() }),
    ...(read.keyUsage === null ? {} : { keyUsage: read.keyUsage.toSorted(), keyUsageCritical: read.keyUsageCritical }),
    ...(read.extKeyUsage.length === 0 ? {} : { extKeyUsage: read.extKeyUsage.toSorted() }),
    basicConstraints: [read.basicConstraints],
    basicConstraintsCritical: read.basicConstraintsCritical,
    notBefore: formatRfc3339(read.notBefore),
    notAfter: formatRfc3339(read.notAfter),
    ...describeKey(read.x509),
  };
}

const CURVE_BITS: Readonly<Record<string, number>> = { prime256v1: 256, secp384r1: 384, secp521r1: 521, secp224r1: 224 };

function describeKey({ publicKey: { asymmetricKeyType: type, asymmetricKeyDetails: details } }: X509Certificate): {
  readonly publicKey: string;
  readonly bits: number | null;
} {
  if (type === 'rsa') return { publicKey: 'rsaEncryption', bits: details?.modulusLength ?? null };
  if (type === 'ec') return { publicKey: 'id-ecPublicKey', bits: CURVE_BITS[details?.namedCurve ?? ''] ?? null };
  return { publicKey: type ?? 'unknown', bits: null };
}

/** A name in its own order: `O=system:nodes, CN=system:node:w1`; empty for an empty name. */
export function nameInOrder(parts: readonly NamePart[]): string {
  return parts.map(formatPart).join(', ');
}

/** A name in the order of RFC 2253. */
export function formatName(parts: readonly NamePart[]): string {
  return parts.toReversed().map(formatPart).join(',');
}

/** Escapes as OpenSSL does for RFC 2253, so that no value looks like several parts. */
function formatPart({ type, value }: NamePart): string {
  const escaped = value.replace(/[,+"\\<>;]|^[ #]| $/g, '\\$&');
  return `${type}=${escaped.replace(/\p{Cc}/gu, (character) => Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '\\$&'))}`;
}

/** IPv6 in OpenSSL's notation with all eight groups. */
function longForm(address: string): string {
  const parsed = parseIp(address);
  if (parsed === null || parsed.family === 4) return address;
  return Array.from({ length: 8 }, (_, i) => ((parsed.value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16).toUpperCase()).join(':');
}
