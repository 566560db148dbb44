import { isIP } from 'node:net';
import { checkServerIdentity as nodeCheckServerIdentity, type PeerCertificate } from 'node:tls';
import { x509CertificateOf } from '../../x509/x509-certificates.ts';

/**
 * Whether a certificate is for a host, for `checkServerIdentity` of a TLS connection. As Node's own, which in 22.23, 24.17, 24.18 and 26.4 takes an IPv6 address for
 * a domain name, and refuses every certificate for one.
 * @param host name or address, without brackets
 * @returns undefined: it is; else the error that the connection ends with (ERR_TLS_CERT_ALTNAME_INVALID)
 * @see nodejs/node issue 64032
 */
export function checkServerIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  if (isIP(host) === 6 && x509CertificateOf(certificate.raw)?.checkIP(host) !== undefined) return undefined;
  return nodeCheckServerIdentity(host, certificate);
}
