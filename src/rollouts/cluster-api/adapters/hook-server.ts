import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { readRequestBody } from '../../../base/adapters/request-body.ts';
import type { HookServers, ServingCertificate } from '../run-extension.ts';

/** A request contains up to six objects of at most 1.5 MiB each. */
const MAX_BYTES = 10 * 1024 * 1024;

/** Clients that send nothing would otherwise occupy the connections, by default for two minutes. Cluster API waits at most 10 s. */
const TIMEOUT_MS = 5_000;

/** @see HookServers */
export const serveHooks: HookServers['serveHooks'] = async ({ host, port, certificate, answer, timeoutMs = TIMEOUT_MS }) => {
  const limits = {
    handshakeTimeout: timeoutMs,
    headersTimeout: timeoutMs,
    requestTimeout: 2 * timeoutMs,
    connectionsCheckingInterval: timeoutMs / 5,
  };
  const server = createServer({ ...tlsOptions(certificate), ...limits, minVersion: 'TLSv1.2' }, (request, response) => {
    void respond(request, answer, certificate).then(
      ([status, body]) => send(response, status, body),
      () => send(response, 500, 'internal error'),
    );
  });
  server.maxConnections = 32;
  // A client that does not trust the certificate is not an error of the server.
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    renew: (renewed) => server.setSecureContext(tlsOptions(renewed)),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};

function tlsOptions({ certPem, keyPem, clientCaPem }: ServingCertificate): ServerOptions {
  const base = { cert: certPem, key: keyPem.reveal() };
  // Probes of the kubelet have no certificate.
  return clientCaPem === null ? base : { ...base, ca: clientCaPem, requestCert: true, rejectUnauthorized: false };
}

async function respond(
  request: IncomingMessage,
  answer: Parameters<typeof serveHooks>[0]['answer'],
  { clientCaPem }: ServingCertificate,
): Promise<readonly [number, string | object]> {
  const path = (request.url ?? '/').replace(/[?#].*$/s, '');
  if (path === '/healthz') return [200, 'ok'];
  if (request.method !== 'POST') return [405, 'method not allowed'];
  if (clientCaPem !== null && !(request.socket as TLSSocket).authorized) return [401, 'a client certificate is required'];
  const text = await readRequestBody(request, MAX_BYTES);
  if (text === null) return [413, `the request has more than ${MAX_BYTES} bytes`];
  const answered = await answer(path, text);
  if (answered === null) return [404, 'not found'];
  return 'invalid' in answered ? [400, answered.invalid] : [200, answered.response];
}

function send(response: ServerResponse, status: number, body: string | object): void {
  if (response.destroyed) return;
  const [type, text] = typeof body === 'string' ? ['text/plain; charset=utf-8', `${body}\n`] : ['application/json', JSON.stringify(body)];
  const headers = { 'content-type': type, 'content-length': Buffer.byteLength(text) };
  response.writeHead(status, headers).end(text);
}
