import { type ProxyRefusal, showProxy } from '../proxy.ts';

/** Timeout of a proxy's response. */
export const PROXY_ANSWER_MS = 30_000;

export class ProxyError extends Error {
  /** Without credentials. */
  readonly proxy: string;
  /** Null when the proxy did not respond. */
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
