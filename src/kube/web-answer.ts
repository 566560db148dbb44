import type { ProxyRefusal } from './proxy.ts';

/** The certificate a server showed. Whoever is not verified may show any. */
export interface PeerCertificate {
  readonly subject: string;
  readonly issuer: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** DNS names and addresses it is for. */
  readonly names: readonly string[];
}

export interface WebAnswer {
  readonly kind: 'answer';
  readonly status: number;
  /** Without parameters, in lower case; empty when none was sent. */
  readonly contentType: string;
  /** The server's clock, from its Date header. */
  readonly date: Date | null;
  /** Where a redirection leads, as sent. */
  readonly location: string | null;
  readonly text: string;
  readonly peer: PeerCertificate | null;
}

/** Why no answer came. */
export type WebFailureCause =
  | { readonly kind: 'refused' }
  | { readonly kind: 'no-route' }
  | { readonly kind: 'dns'; readonly temporary: boolean }
  | { readonly kind: 'timed-out' }
  /** The connection ended before an answer came. */
  | { readonly kind: 'closed' }
  /** What answers does not speak TLS; `speaks` what it seems to speak. */
  | { readonly kind: 'not-tls'; readonly speaks: 'ssh' | 'http' | null }
  /** No version of TLS that both sides take. */
  | { readonly kind: 'tls-version' }
  /** `why` is the name of the alert or of the library's error. */
  | { readonly kind: 'tls-handshake'; readonly why: string }
  /** The server wants a client certificate before it talks. */
  | { readonly kind: 'wants-client-certificate' }
  | { readonly kind: 'unknown-authority'; readonly peer: PeerCertificate | null }
  /** Not the very certificate that was expected. */
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
