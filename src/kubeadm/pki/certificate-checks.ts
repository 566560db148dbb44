import { parseIp } from '../../base/text/ip.ts';
import type { CertificateContent } from '../../x509/read-certificate.ts';

/**
 * Whether a certificate leads to an authority, directly or by way of others.
 * @param between certificates that may stand between them
 * @see Go crypto/x509 Verify: each must be signed by the next, and the next must be allowed to sign
 */
export function leadsTo(certificate: CertificateContent, between: readonly CertificateContent[], authority: CertificateContent): boolean {
  let reached = [certificate];
  let left = between;
  // Each is looked at once, however they sign one another.
  while (reached.length > 0) {
    if (reached.some((one) => isIssuedBy(one, authority))) return true;
    const next = left.filter((one) => reached.some((below) => isIssuedBy(below, one)));
    left = left.filter((one) => !next.includes(one));
    reached = next;
  }
  return false;
}

function isIssuedBy({ x509 }: CertificateContent, authority: CertificateContent): boolean {
  return authority.isAuthority && x509.checkIssued(authority.x509) && x509.verify(authority.x509.publicKey);
}

/** Whether it is the same certificate, byte for byte. */
export function isSameCertificate(a: CertificateContent, b: CertificateContent): boolean {
  return a.x509.raw.equals(b.x509.raw);
}

/**
 * The names a certificate is not good for, as `DNS:…` and `IP Address:…`.
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

function isSameAddress(a: string, b: string): boolean {
  const [one, other] = [parseIp(a), parseIp(b)];
  return one !== null && other !== null && one.value === other.value && one.family === other.family;
}
