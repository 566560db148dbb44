import type { Secret } from '../base/text/secret.ts';
import type { Dial } from './dial.ts';
import type { WebAnswer, WebFailure } from './web-answer.ts';

/** Whom a server may prove its name by. */
export type Trust =
  /** Nobody: what is answered is believed only for what it proves by itself, e.g. a signature. */
  | { readonly kind: 'unverified' }
  /** The authorities of a PEM bundle and no others. */
  | { readonly kind: 'authorities'; readonly pem: string }
  /** The authorities of this machine, for servers of the internet. */
  | { readonly kind: 'machine' }
  /** The holder of the key of this very certificate, the first of a PEM text: whatever it is for, and whoever signed it. */
  | { readonly kind: 'certificate'; readonly pem: string };

export interface WebRequest {
  readonly url: string;
  readonly trust: Trust;
  /** The name the server's certificate must have, where it is not that of the URL. */
  readonly serverName?: string;
  /** In place of the proxy that the environment names; null: none. */
  readonly proxyUrl?: string | null;
  /** Opens the connection in place of this machine; no proxy is used then. */
  readonly dial?: Dial;
  /** Proves who asks, in the TLS handshake. Both PEM. */
  readonly clientCertificate?: { readonly certificate: string; readonly key: Secret };
  /** Who asks. Sent once the server has proved who it is, and never to one that is not verified. */
  readonly bearerToken?: Secret;
  /** For everything from the first packet to the last byte; default 10,000. */
  readonly timeoutMs?: number;
  /** More than this is an answer nobody wants; default 4 MiB. */
  readonly maxBytes?: number;
  readonly signal?: AbortSignal;
}

/**
 * Reads documents over HTTPS: without following redirections, each over a connection of its own, through the proxy that the environment names.
 * What went wrong is a value, because whoever asks decides whether it passes. Rejects only with the signal's reason.
 */
export interface Web {
  get(request: WebRequest): Promise<WebAnswer | WebFailure>;
}
