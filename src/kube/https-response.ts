import type { ProxyRefusal } from './proxy.ts';

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

/** Why no response was received. */
export type WebFailureCause =
  | { readonly kind: 'refused' }
  | { readonly kind: 'no-route' }
  | { readonly kind: 'dns'; readonly temporary: boolean }
  | { readonly kind: 'timed-out' }
  /** The connection was closed before a response arrived. */
  | { readonly kind: 'closed' }
  /** The server does not speak TLS; `speaks` is the detected protocol. */
  | { readonly kind: 'not-tls'; readonly speaks: 'ssh' | 'http' | null }
  /** No common TLS version. */
  | { readonly kind: 'tls-version' }
  /** `why` is the name of the alert or of the library's error. */
  | { readonly kind: 'tls-handshake'; readonly why: string }
  /** The server requires a client certificate. */
  | { readonly kind: 'wants-client-certificate' }
  | { readonly kind: 'unknown-authority'; readonly peer: PeerCertificate | null }
  /** The certificate is not the expected one. */
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
