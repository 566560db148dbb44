import type { Secret } from '../base/text/secret.ts';
import type { Dial } from './dial.ts';
import type { WebFailure as HttpsFailure, HttpsResponse } from './https-response.ts';

/** How a server's certificate is verified. */
export type Trust =
  /** Not verified: only content that proves itself, e.g. by a signature, may be trusted. */
  | { readonly kind: 'unverified' }
  /** By the CAs of a PEM bundle only. */
  | { readonly kind: 'ca'; readonly pem: string }
  /** By the CAs of the local host, for servers on the internet. */
  | { readonly kind: 'machine' }
  /** By comparison with one certificate, the first of a PEM text; its names, dates and issuer are ignored. */
  | { readonly kind: 'certificate'; readonly pem: string };

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
  /** Sent only to a verified server. */
  readonly bearerToken?: Secret;
  /** Timeout from the first packet to the last byte; default 10,000. */
  readonly timeoutMs?: number;
  /** Maximum size of a response; default 4 MiB. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads documents over HTTPS: without following redirects, each over its own connection, through the proxy of
 * the environment. Failures are returned as values, because the caller decides whether to retry. Rejects only
 * with the signal's reason.
 */
export interface HttpsClient {
  get(request: HttpsRequest): Promise<HttpsResponse | HttpsFailure>;
}
