import { type ProxyRefusal, showProxy } from '../proxy.ts';

/** How long a proxy may take to connect. */
export const PROXY_ANSWER_MS = 30_000;

/** A proxy that could not be used. */
export class ProxyError extends Error {
  /** Without credentials. */
  readonly proxy: string;
  /** Null when it did not answer. */
  readonly refusal: ProxyRefusal | null;

  constructor(proxy: URL, refusal: ProxyRefusal | null, cause?: unknown) {
    super(
      `the proxy ${showProxy(proxy)} ${refusal === null ? 'does not answer' : `refused the connection ${refusal.why}`}`,
      cause === undefined ? undefined : { cause },
    );
    this.proxy = showProxy(proxy);
    this.refusal = refusal;
  }
}
