import { isSameAddress } from '../base/text/ip.ts';
import type { CertificateContent } from './read-certificate.ts';

/**
 * Whether a certificate chains to a CA, directly or through intermediates.
 * @param between possible intermediate certificates
 * @see Go crypto/x509 Verify: each certificate must be signed by the next one, which must be a CA
 */
export function chainsTo(certificate: CertificateContent, between: readonly CertificateContent[], ca: CertificateContent): boolean {
  let reached = [certificate];
  let left = between;
  // Visits each intermediate once, which ends also for certificates that sign each other.
  while (reached.length > 0) {
    if (reached.some((one) => isIssuedBy(one, ca))) return true;
    const next = left.filter((one) => reached.some((below) => isIssuedBy(below, one)));
    left = left.filter((one) => !next.includes(one));
    reached = next;
  }
  return false;
}

function isIssuedBy({ x509 }: CertificateContent, ca: CertificateContent): boolean {
  return ca.isCa && x509.checkIssued(ca.x509) && x509.verify(ca.x509.publicKey);
}

/** Whether two certificates are byte-for-byte identical. */
export function isSameCertificate(a: CertificateContent, b: CertificateContent): boolean {
  return a.x509.raw.equals(b.x509.raw);
}

/**
 * The desired SANs that a certificate lacks, as `DNS:…` and `IP:…`.
 * @see Go crypto/x509 VerifyHostname
 */
export function missingNames(
  certificate: CertificateContent,
  desired: { readonly dnsNames: readonly string[]; readonly ipAddresses: readonly string[] },
): readonly string[] {
  const names = certificate.dnsNames.map((name) => name.toLowerCase());
  const has = (name: string): boolean => names.includes(name) || names.includes(`*${name.slice(name.indexOf('.'))}`);
  return [
    ...desired.dnsNames.filter((name) => !has(name.toLowerCase())).map((name) => `DNS:${name}`),
    ...desired.ipAddresses.filter((address) => !certificate.ipAddresses.some((one) => isSameAddress(one, address))).map((ip) => `IP:${ip}`),
  ];
}
