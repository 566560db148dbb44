import { createServer, request as httpsRequest } from 'node:https';
import type { TLSSocketOptions } from 'node:tls';
import type { CertificateAuthority } from '../../lab/api-server/pki.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { listenOnLoopback } from './loopback.ts';

export interface ManInTheMiddle {
  /** `127.0.0.1:port` */
  readonly endpoint: string;
  /** All received data, as text: request lines and headers. */
  readonly received: readonly string[];
  close(): Promise<void>;
}

export interface Attack {
  /** Signs the presented certificate. */
  readonly ca: CertificateAuthority;
  /** The API server to which requests are relayed. */
  readonly upstream: string;
  /** Changes the returned objects. */
  readonly change?: (object: JsonObject) => JsonObject;
  /** Answers in place of the API server. */
  readonly answer?: { readonly status: number; readonly headers: Readonly<Record<string, string>> };
  readonly tls?: Pick<TLSSocketOptions, 'minVersion'> & { readonly maxVersion?: 'TLSv1.1'; readonly ciphers?: string };
}

/** Sits between a client and an API server, with its own certificate for the right address. */
export async function startManInTheMiddle({ ca, upstream, change, answer, tls }: Attack): Promise<ManInTheMiddle> {
  const { certPem, keyPem } = await ca.issueServer(['127.0.0.1'], { commonName: 'kube-apiserver' });
  const received: string[] = [];
  const server = createServer({ cert: certPem, key: keyPem, ...tls } as object, (request, response) => {
    received.push(`${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`);
    if (answer !== undefined) return void response.writeHead(answer.status, answer.headers).end();
    const relayed = httpsRequest(new URL(request.url ?? '/', upstream), {
      method: request.method,
      headers: request.headers,
      rejectUnauthorized: false,
    });
    relayed.on('error', () => response.destroy());
    relayed.on('response', async (from) => {
      const chunks: Buffer[] = [];
      for await (const chunk of from as AsyncIterable<Buffer>) chunks.push(chunk);
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8')) as JsonObject;
      response.writeHead(from.statusCode ?? 500, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(change === undefined ? body : change(body)));
    });
    request.pipe(relayed);
  });
  server.on('tlsClientError', () => undefined);
  const port = await listenOnLoopback(server);
  return {
    endpoint: `127.0.0.1:${port}`,
    received,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
