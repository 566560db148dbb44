import { type ProxyRefusal, showProxy } from '../proxy.ts';

interface NetworkFailure {
  readonly why: string;
  readonly hint: string;
  /** False when the request may have reached the server although no response arrived. */
  readonly neverSent: boolean;
}

const CHECK_SERVER = 'Check that the API server runs, and that its address and port are right in the kubeconfig';
const CHECK_NETWORK = 'Check the address in the kubeconfig, the network and firewalls';
const CHECK_CA =
  'Set certificate-authority-data in the kubeconfig to the CA of the cluster (on a control plane: /etc/kubernetes/pki/ca.crt)';
const CHECK_CERTIFICATE = 'Check the clocks of both hosts, or renew the certificate of the API server (kubeletadm certs renew apiserver)';

const BY_CODE: Readonly<Record<string, readonly [why: string, hint: string]>> = {
  ECONNREFUSED: ['connection refused', CHECK_SERVER],
  EHOSTUNREACH: ['no route to host', CHECK_NETWORK],
  ENETUNREACH: ['network is unreachable', CHECK_NETWORK],
  ETIMEDOUT: ['connection timed out', CHECK_NETWORK],
  ENOTFOUND: ['DNS name not found', 'Check the server address in the kubeconfig and DNS on the local host'],
  EAI_AGAIN: ['the DNS server does not respond', 'Check DNS on the local host'],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ['certificate signed by an unknown CA', CHECK_CA],
  UNABLE_TO_GET_ISSUER_CERT: ['certificate signed by an unknown CA', CHECK_CA],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ['certificate signed by an unknown CA', CHECK_CA],
  SELF_SIGNED_CERT_IN_CHAIN: ['certificate signed by an unknown CA', CHECK_CA],
  DEPTH_ZERO_SELF_SIGNED_CERT: ['self-signed certificate', CHECK_CA],
  CERT_SIGNATURE_FAILURE: ['certificate signed by another CA with the same name', CHECK_CA],
  CERT_HAS_EXPIRED: ['the server certificate has expired', CHECK_CERTIFICATE],
  CERT_NOT_YET_VALID: ['the server certificate is not valid yet', CHECK_CERTIFICATE],
  HOSTNAME_MISMATCH: ['the server certificate does not match the host name', ''],
  ERR_SSL_WRONG_VERSION_NUMBER: ['the server does not speak TLS', 'Check the port, or use http:// in the address'],
  ERR_SSL_PACKET_LENGTH_TOO_LONG: ['the server does not speak TLS', 'Check the port, or use http:// in the address'],
};

const NEVER_SENT = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']);

/** Explains an error of node:http, node:https or a proxy agent, without anything of the request. */
export function explainNetworkError(error: unknown): NetworkFailure {
  if (error instanceof ProxyError) return explainProxyError(error);
  const { code, message } = describeError(error);
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return { ...explainWrongName(error), neverSent: true };
  const known = BY_CODE[code];
  if (known) return { why: known[0], hint: known[1], neverSent: NEVER_SENT.has(code) || isTls(code) };
  if (/wrong version number|http request/i.test(message))
    return { why: 'the server does not speak TLS', hint: 'Check the port, or use http:// in the address', neverSent: true };
  if (isClosed(code, message)) {
    const hint = 'Check the API server and any proxy or load balancer in front of it';
    return { why: 'the connection was closed before a response arrived', hint, neverSent: false };
  }
  if (/^ERR_(?:OSSL|SSL)|EPROTO/.test(code)) {
    const hint = 'Check the client certificate and key, and the server address in the kubeconfig';
    return { why: `the TLS handshake failed (${code})`, hint, neverSent: true };
  }
  return { why: code === '' ? 'the connection failed' : `the connection failed (${code})`, hint: CHECK_NETWORK, neverSent: false };
}

const CHECK_PROXY = 'Check HTTPS_PROXY and NO_PROXY, or proxy-url in the kubeconfig';

function explainProxyError({ proxy, refusal, cause, message }: ProxyError): NetworkFailure {
  if (refusal === null) return { why: `the proxy ${proxy}: ${explainNetworkError(cause).why}`, hint: CHECK_PROXY, neverSent: true };
  const hint =
    refusal.kind === 'login' ? `${CHECK_PROXY}: the proxy requires a user and a password (http://USER:PASSWORD@HOST:PORT)` : CHECK_PROXY;
  return { why: message, hint, neverSent: true };
}

/** Whether the connection broke without a response: a request that only reads may be repeated. */
export function isBrokenConnection(error: unknown): boolean {
  const { code, message } = describeError(error);
  return code === 'ECONNRESET' || code === 'EPIPE' || /socket hang up/i.test(message);
}

function isTls(code: string): boolean {
  return /CERT|SSL|VERIFY|ISSUER/.test(code);
}

function explainWrongName(error: unknown): Omit<NetworkFailure, 'neverSent'> {
  const { host, names } = certificateNames(error);
  const hint = 'Use one of these names in the kubeconfig, set tls-server-name, or add the address to the certificate (apiServer.certSANs)';
  return { why: `the server certificate is not valid for ${host}${names === '' ? '' : `, only for ${names}`}`, hint };
}

function certificateNames(error: unknown): { readonly host: string; readonly names: string } {
  const holder = error as { readonly host?: unknown; readonly cert?: { readonly subjectaltname?: unknown } };
  const names = typeof holder.cert?.subjectaltname === 'string' ? holder.cert.subjectaltname : '';
  return {
    host: typeof holder.host === 'string' ? holder.host : 'this address',
    names: names.replaceAll('IP Address:', '').replaceAll('DNS:', ''),
  };
}

export function isClosed(code: string, message: string): boolean {
  return code === 'ECONNRESET' || code === 'EPIPE' || /socket hang up|aborted|premature close/i.test(message);
}

export function describeError(error: unknown): { readonly code: string; readonly message: string } {
  if (error instanceof AggregateError && error.errors.length > 0) return describeError(error.errors[0]);
  const holder = error as { readonly code?: unknown; readonly message?: unknown };
  return { code: typeof holder?.code === 'string' ? holder.code : '', message: typeof holder?.message === 'string' ? holder.message : '' };
}

export const PROXY_ANSWER_MS = 30_000;

export class ProxyError extends Error {
  /** Without credentials. */
  readonly proxy: string;
  readonly refusal: ProxyRefusal | null;

  constructor(proxy: URL, refusal: ProxyRefusal | null, cause?: unknown) {
    super(
      `the proxy ${showProxy(proxy)} ${refusal === null ? 'does not respond' : `refused the connection ${refusal.why}`}`,
      cause === undefined ? undefined : { cause },
    );
    this.proxy = showProxy(proxy);
    this.refusal = refusal;
  }
}
