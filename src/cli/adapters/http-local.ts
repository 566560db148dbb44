import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readRequestBody } from '../../base/adapters/request-body.ts';
import type { LocalResponse, LocalServers, LocalStream } from '../../base/local-server.ts';

const TEXT = 'text/plain; charset=utf-8';
const NOT_FOUND: LocalResponse = { status: 404, type: TEXT, body: 'not found\n' };
const FAILED: LocalResponse = { status: 500, type: TEXT, body: 'internal error\n' };
const WRONG_METHOD: LocalResponse = { status: 405, type: TEXT, body: 'method not allowed\n', headers: { allow: 'GET, HEAD, POST' } };
const TOO_LARGE: LocalResponse = { status: 413, type: TEXT, body: 'request too large\n' };
/** The largest body of a POST, in bytes. */
const MOST_BYTES = 16_384;

/** @see LocalServers */
export const serveLocal: LocalServers['serveLocal'] = async (host, port, answer) => {
  const server = createServer((request, response) => {
    // A client that leaves before the end of its body gets no answer.
    answerOf(request, answer).then(
      (found) => respond(response, found, request.method === 'HEAD'),
      () => response.destroy(),
    );
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
};

/** A failed answer is that of a request, and does not end the program. */
async function answerOf(request: IncomingMessage, answer: Parameters<typeof serveLocal>[2]): Promise<LocalResponse> {
  const { method = '', url = '/', headers } = request;
  if (method !== 'GET' && method !== 'HEAD' && method !== 'POST') return WRONG_METHOD;
  const body = method === 'POST' ? await readRequestBody(request, MOST_BYTES) : '';
  if (body === null) return TOO_LARGE;
  const post = method === 'POST' ? { post: { origin: headers.origin ?? '', contentType: headers['content-type'] ?? '', body } } : {};
  try {
    return (await answer({ method, path: url.replace(/[?#].*$/s, ''), host: headers.host ?? '', ...post })) ?? NOT_FOUND;
  } catch {
    return FAILED;
  }
}

function respond(response: ServerResponse, { status, type, body, headers, stream }: LocalResponse, isHead: boolean): void {
  if (stream === undefined || isHead) {
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...headers });
    response.end(isHead ? undefined : body);
    return;
  }
  response.writeHead(status, { 'content-type': type, ...headers });
  response.write(body);
  try {
    stream(streamOf(response));
  } catch {
    response.destroy();
  }
}

function streamOf(response: ServerResponse): LocalStream {
  return {
    send: (text) => void response.write(text),
    pending: () => response.writableLength,
    onClose: (listener) => void response.once('close', listener),
    end: (text) =>
      new Promise((resolve) => {
        if (response.closed) return resolve();
        response.once('close', () => resolve());
        response.end(text, () => resolve());
      }),
  };
}
