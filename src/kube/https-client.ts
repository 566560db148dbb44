import type { Secret } from '../base/text/secret.ts';
import type { Dial } from './dial.ts';
import type { ProxyRefusal } from './proxy.ts';

export type Trust =
  /** Not verified: only content that proves itself, e.g. by a signature, may be trusted. */
  | { readonly kind: 'unverified' }
  /** By the CAs of a PEM bundle only. */
  | { readonly kind: 'ca'; readonly pem: string }
  /** By the CAs of the local host, for servers on the internet. */
  | { readonly kind: 'machine' }
  /** By comparison with one certificate, the first of a PEM text; its names, dates and issuer are ignored. */
  | { readonly kind: 'certificate'; readonly pem: string }
  /** No TLS: the URL has http://. */
  | { readonly kind: 'plain' };

export interface HttpsRequest {
  readonly url: string;
  readonly trust: Trust;
  /** Server name to verify, if different from the host in the URL. */
  readonly serverName?: string | undefined;
  /** Replaces the proxy of the environment; null: no proxy. */
  readonly proxyUrl?: string | null | undefined;
  /** Opens the connection instead of the local host; no proxy is used then. */
  readonly dial?: Dial | undefined;
  /** Client certificate for the TLS handshake. Both PEM. */
  readonly clientCertificate?: { readonly certificate: string; readonly key: Secret };
  readonly bearerToken?: Secret;
  /** Timeout from the first packet to the last byte; default 10,000. */
  readonly timeoutMs?: number;
  /** Maximum size of a response; default 4 MiB. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads documents over HTTPS: without redirects, each over its own connection, through the proxy of the
 * environment. Failures are values: the caller decides whether to retry. Rejects only with the signal's
 * reason.
 */
export interface HttpsClient {
  get(request: HttpsRequest): Promise<HttpsResponse | WebFailure>;
}

/** The certificate that a server presented, verified or not. */
export interface PeerCertificate {
  readonly subject: string;
  readonly issuer: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** DNS names and IP addresses of the certificate (SANs). */
  readonly names: readonly string[];
}

export interface HttpsResponse {
  readonly kind: 'answer';
  readonly status: number;
  /** Without parameters, in lower case; empty when not sent. */
  readonly contentType: string;
  /** The server's clock, from its Date header. */
  readonly date: Date | null;
  /** Target of a redirect, as sent. */
  readonly location: string | null;
  readonly text: string;
  readonly peer: PeerCertificate | null;
}

export type WebFailureCause =
  | { readonly kind: 'refused' }
  | { readonly kind: 'no-route' }
  | { readonly kind: 'dns'; readonly temporary: boolean }
  | { readonly kind: 'timed-out' }
  /** The connection was closed before a response arrived. */
  | { readonly kind: 'closed' }
  /** The server does not speak TLS; `speaks` is the detected protocol. */
  | { readonly kind: 'not-tls'; readonly speaks: 'ssh' | 'http' | null }
  | { readonly kind: 'tls-version' }
  /** `why` is the name of the alert or of the library's error. */
  | { readonly kind: 'tls-handshake'; readonly why: string }
  | { readonly kind: 'wants-client-certificate' }
  | { readonly kind: 'unknown-authority'; readonly peer: PeerCertificate | null }
  | { readonly kind: 'other-certificate'; readonly peer: PeerCertificate | null }
  | { readonly kind: 'wrong-name'; readonly host: string; readonly peer: PeerCertificate | null }
  | { readonly kind: 'certificate-expired'; readonly peer: PeerCertificate | null }
  | { readonly kind: 'certificate-not-yet-valid'; readonly peer: PeerCertificate | null }
  /** `proxy` without credentials. */
  | { readonly kind: 'proxy-refused'; readonly proxy: string; readonly refusal: ProxyRefusal }
  | { readonly kind: 'proxy-unreachable'; readonly proxy: string; readonly why: string }
  | { readonly kind: 'proxy-unusable'; readonly why: string }
  | { readonly kind: 'not-http' }
  | { readonly kind: 'too-large'; readonly maxBytes: number }
  | { readonly kind: 'other'; readonly code: string };

export interface WebFailure {
  readonly kind: 'failed';
  readonly issue: WebFailureCause;
}
