import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ClientCertificate } from './authenticate.ts';
import type { KeyPair } from './pki.ts';

/** A socket for HTTP requests; it can be opened and closed repeatedly. */
export interface Listener {
  /**
   * @param port 0: any free port
   * @returns the port
   */
  listen(port: number, host: string): Promise<number>;
  /** Number of connections so far. */
  accepted(): number;
  dropConnections(): void;
  /** Closes the socket and every connection. */
  close(): Promise<void>;
}

/** @param tls the serving certificate and the CA of client certificates; null for plain HTTP */
export function createListener(
  tls: { readonly serving: KeyPair; readonly clientCaPem: string } | null,
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
): Listener {
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server: Server = tls === null ? createHttpServer(onRequest) : createHttpsServer(tlsOptions(tls), onRequest);
  server.on('connection', (socket: Socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  // The client decides how long a watch lasts.
  server.requestTimeout = 0;
  server.keepAliveTimeout = 60_000;
  const dropConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    accepted: () => accepted,
    dropConnections,
    listen: (port, host) =>
      new Promise((resolve, reject) => {
        server.once('error', reject);
        server.listen(port, host, () => {
          server.off('error', reject);
          resolve((server.address() as AddressInfo).port);
        });
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        dropConnections();
      }),
  };
}

/**
 * The client certificate of a connection: null for none, `invalid` for one that is expired or from another
 * CA.
 */
export function clientCertificateOf(socket: Socket): ClientCertificate | 'invalid' | null {
  if (!(socket instanceof TLSSocket)) return null;
  const peer = socket.getPeerCertificate();
  if (Object.keys(peer).length === 0) return null;
  if (!socket.authorized) return 'invalid';
  const { CN, O } = peer.subject as { readonly CN?: string | string[]; readonly O?: string | string[] };
  return {
    commonName: [CN ?? []].flat()[0] ?? '',
    organizations: [O ?? []].flat(),
    sha256: peer.fingerprint256.replaceAll(':', '').toLowerCase(),
  };
}

function tlsOptions({ serving, clientCaPem }: { readonly serving: KeyPair; readonly clientCaPem: string }) {
  return { cert: serving.certPem, key: serving.keyPem, ca: clientCaPem, requestCert: true, rejectUnauthorized: false };
}
