import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LocalResponse, LocalServer } from '../../dynamic/ports.ts';

/**
 * Serves GETs on an address of the local host.
 * @param answer null: 404, nothing at that path
 * @throws the error of `listen`
 */
export async function serveLocal(host: string, port: number, answer: (path: string) => LocalResponse | null): Promise<LocalServer> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname;
    const found = request.method === 'GET' || request.method === 'HEAD' ? answer(path) : null;
    const { status, type, body } = found ?? { status: 404, type: 'text/plain; charset=utf-8', body: 'not found\n' };
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
    response.end(request.method === 'HEAD' ? undefined : body);
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 5_000;
  server.maxConnections = 32;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
