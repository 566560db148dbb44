import { isIP } from 'node:net';
import { checkServerIdentity as nodeCheckServerIdentity, type PeerCertificate } from 'node:tls';
import { x509CertificateOf } from '../../x509/read-certificate.ts';

/**
 * As Node's own check, except that Node 22.23, 24.17, 24.18 and 26.4 treat an IPv6 address as a domain name
 * and reject every certificate for one (nodejs/node issue 64032).
 * @param host without brackets
 * @returns undefined for a match; else the error that closes the connection (ERR_TLS_CERT_ALTNAME_INVALID)
 */
export function checkServerIdentity(host: string, certificate: PeerCertificate): Error | undefined {
  if (isIP(host) === 6 && x509CertificateOf(certificate.raw)?.checkIP(host) !== undefined) return undefined;
  return nodeCheckServerIdentity(host, certificate);
}
