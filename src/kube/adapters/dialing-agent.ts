import { type AgentOptions, Agent as HttpsAgent, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { type ConnectionOptions as TlsOptions, connect as tlsConnect } from 'node:tls';
import type { Dial } from '../dial.ts';

/** TLS ends in this process: the host that forwards a connection sees only ciphertext. */
export class DialingAgent extends HttpsAgent {
  readonly #dial: Dial;
  /** Connections whose server closed them during a request. */
  readonly #ended = new WeakSet<Duplex>();

  constructor(dial: Dial, tls: AgentOptions) {
    super(tls);
    this.#dial = dial;
  }

  override keepSocketAlive(stream: Duplex): boolean {
    return !this.#ended.has(stream) && (super.keepSocketAlive as (stream: Duplex) => boolean).call(this, stream);
  }

  override createConnection(options: RequestOptions, done?: (error: Error | null, stream: Duplex) => void): undefined {
    this.#connect(options).then(
      (stream) => done?.(null, stream),
      // Node checks the error first, so the stream may be missing.
      (error: Error) => (done as ((error: Error) => void) | undefined)?.(error),
    );
    return undefined;
  }

  /** @throws errors of `dial`, and OpenSSL's errors for invalid certificates and keys */
  async #connect(options: RequestOptions): Promise<Duplex> {
    const socket = (await this.#dial({ host: options.host ?? 'localhost', port: Number(options.port ?? 443) })) as Duplex;
    try {
      const stream = tlsConnect({ ...(options as TlsOptions), socket });
      // TLS over such a socket does not report that the server closed an idle connection. A request on it would wait
      // for its time limit, for each connection of a restarted API server.
      const closeIdle = (): void => {
        if (Object.values(this.freeSockets).some((idle) => idle?.includes(stream))) stream.destroy();
        else this.#ended.add(stream);
      };
      socket.once('end', closeIdle).once('close', closeIdle);
      return stream;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }
}
