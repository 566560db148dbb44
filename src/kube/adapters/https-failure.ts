import type { X509Certificate } from 'node:crypto';
import { nameInOrder } from '../../x509/describe-certificate.ts';
import { readCertificate } from '../../x509/read-certificate.ts';
import type { PeerCertificate, WebFailureCause } from '../https-client.ts';
import { describeError, explainNetworkError, isClosed, ProxyError } from './network-failure.ts';

export class HttpsError extends Error {
  readonly issue: WebFailureCause;

  constructor(issue: WebFailureCause, cause?: unknown) {
    super(issue.kind, cause === undefined ? undefined : { cause });
    this.issue = issue;
  }
}

/** Classifies an error of node:net, node:tls or node:http. */
export function failureOf(error: unknown): WebFailureCause {
  if (error instanceof HttpsError) return error.issue;
  if (error instanceof ProxyError) return proxyFailure(error);
  const { code, message } = describeError(error);
  const known = BY_CODE[code] ?? tlsFailure(code, message);
  if (known !== null) return known;
  if (isClosed(code, message) || /disconnected before secure/i.test(message)) return { kind: 'closed' };
  return code.startsWith('HPE_') ? { kind: 'not-http' } : { kind: 'other', code: code || 'no code' };
}

const BY_CODE: Readonly<Record<string, WebFailureCause>> = {
  ECONNREFUSED: { kind: 'refused' },
  EHOSTUNREACH: { kind: 'no-route' },
  ENETUNREACH: { kind: 'no-route' },
  EADDRNOTAVAIL: { kind: 'no-route' },
  EHOSTDOWN: { kind: 'no-route' },
  ETIMEDOUT: { kind: 'timed-out' },
  ENOTFOUND: { kind: 'dns', temporary: false },
  EAI_AGAIN: { kind: 'dns', temporary: true },
};

/** Names of OpenSSL's errors, as Node reports them in `code`, or in the message of an EPROTO. */
function tlsFailure(code: string, message: string): WebFailureCause | null {
  const text = `${code} ${message}`.toUpperCase().replaceAll(' ', '_');
  if (!/SSL|TLS|EPROTO/.test(text)) return null;
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/.test(text)) return { kind: 'not-tls', speaks: null };
  if (/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|VERSION_TOO_LOW/.test(text)) return { kind: 'tls-version' };
  if (/CERTIFICATE_REQUIRED|ALERT_BAD_CERTIFICATE/.test(text)) return { kind: 'wants-client-certificate' };
  return /^ERR_SSL|EPROTO/.test(code) ? { kind: 'tls-handshake', why: code } : null;
}

/** Why a certificate was rejected. `code` is Node's `authorizationError`. */
export function certificateFailure(code: string, host: string, peer: PeerCertificate | null): WebFailureCause {
  switch (code) {
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return { kind: 'wrong-name', host, peer };
    case 'CERT_HAS_EXPIRED':
      return { kind: 'certificate-expired', peer };
    case 'CERT_NOT_YET_VALID':
      return { kind: 'certificate-not-yet-valid', peer };
    default:
      return { kind: 'unknown-authority', peer };
  }
}

export function peerOf(certificate: X509Certificate | undefined): PeerCertificate | null {
  const read = certificate === undefined ? null : readCertificate(certificate.toString());
  if (certificate === undefined || read === null) return null;
  const { notBefore, notAfter } = read;
  const names = (certificate.subjectAltName ?? '').split(', ').flatMap((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1] ?? []);
  return { subject: nameInOrder(read.subject), issuer: nameInOrder(read.issuer), notBefore, notAfter, names };
}

function proxyFailure({ proxy, refusal, cause }: ProxyError): WebFailureCause {
  return refusal === null
    ? { kind: 'proxy-unreachable', proxy, why: explainNetworkError(cause).why }
    : { kind: 'proxy-refused', proxy, refusal };
}
