import type { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { rootCertificates, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { onAbort } from '../../base/abort.ts';
import type { Secret } from '../../base/text/secret.ts';
import { x509CertificateOf } from '../../x509/read-certificate.ts';
import type { Dial } from '../dial.ts';
import type { HttpsClient, HttpsRequest, HttpsResponse, Trust, WebFailure } from '../https-client.ts';
import { type ProxyEnvironment, proxyFor } from '../proxy.ts';
import { certificateFailure, failureOf, HttpsError, peerOf } from './https-failure.ts';
import { readBody } from './read-body.ts';
import { checkServerIdentity } from './server-identity.ts';
import { openTunnel } from './tunnel.ts';

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_MAX_BYTES = 4 * 1024 * 1024;
/** How long to wait for the banner of a server that does not speak TLS. */
const BANNER_MS = 1_000;

/**
 * The certificate is verified before the first byte of a request is sent.
 * @param env names the proxy and CA files (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS)
 */
export function nodeHttpsClient(env: ProxyEnvironment): HttpsClient {
  return {
    get: async (request): Promise<HttpsResponse | WebFailure> => {
      const { signal, timeoutMs = DEFAULT_TIMEOUT_MS } = request;
      signal?.throwIfAborted();
      const stop = new AbortController();
      const forget = onAbort(signal, () => stop.abort());
      const timer = setTimeout(() => stop.abort(), timeoutMs);
      try {
        return await query(request, env, stop.signal);
      } catch (error) {
        signal?.throwIfAborted();
        return { kind: 'failed', issue: stop.signal.aborted ? { kind: 'timed-out' } : failureOf(error) };
      } finally {
        clearTimeout(timer);
        forget();
      }
    },
  };
}

async function query(request: HttpsRequest, env: ProxyEnvironment, signal: AbortSignal): Promise<HttpsResponse> {
  const url = new URL(request.url);
  if (request.bearerToken !== undefined && (request.trust.kind === 'unverified' || request.trust.kind === 'plain'))
    throw new TypeError('a bearer token requires a verified server');
  const dial = dialer(url, routeTo(url, request, env), signal);
  const raw = await dial();
  try {
    const { socket, peer } =
      request.trust.kind === 'plain' ? { socket: raw, peer: null } : await verified(raw, { url, request, env, signal, dial });
    const response = await send(socket, url, { signal, bearerToken: request.bearerToken });
    const { maxBytes = DEFAULT_MAX_BYTES } = request;
    const text = await readBody(response, maxBytes, () => {
      throw new HttpsError({ kind: 'too-large', maxBytes });
    });
    return { kind: 'answer', status: response.statusCode ?? 0, ...headersOf(response), text, peer };
  } finally {
    raw.destroy();
  }
}

/** A TLS connection to the server that the request trusts, and the certificate of the server. */
async function verified(
  raw: Duplex,
  {
    url,
    request,
    env,
    signal,
    dial,
  }: {
    readonly url: URL;
    readonly request: HttpsRequest;
    readonly env: ProxyEnvironment;
    readonly signal: AbortSignal;
    readonly dial: () => Promise<Duplex>;
  },
) {
  const { trust, clientCertificate } = request;
  const ca = await authoritiesOf(trust, env);
  const name = request.serverName ?? hostOf(url);
  const socket = await secure(raw, { host: name, ca, client: clientCertificate, signal }).catch(async (error: unknown) => {
    const issue = failureOf(error);
    throw issue.kind === 'not-tls' ? new HttpsError({ ...issue, speaks: await listen(dial) }, error) : error;
  });
  const shown = socket.getPeerX509Certificate();
  const peer = peerOf(shown);
  const code = socket.authorizationError as unknown as string | null;
  // Node accepts any certificate here, so that the error can name the one shown; nothing has been sent yet.
  if (trust.kind === 'certificate') {
    if (!isCertificate(shown, trust.pem)) throw new HttpsError({ kind: 'other-certificate', peer });
  } else if (trust.kind !== 'unverified' && !socket.authorized) throw new HttpsError(certificateFailure(String(code), name, peer));
  return { socket, peer };
}

function dialer(url: URL, dial: Dial, signal: AbortSignal): () => Promise<Duplex> {
  const address = { host: hostOf(url), port: url.port === '' ? (url.protocol === 'http:' ? 80 : 443) : Number(url.port) };
  return async () => {
    signal.throwIfAborted();
    const socket = (await dial(address, signal)) as Duplex;
    // Later errors are reported by the user of the socket.
    socket.on('error', () => undefined);
    return socket;
  };
}

/** TLS has proved that the peer holds the private key. */
function isCertificate(shown: X509Certificate | undefined, pem: string): boolean {
  const certificate = x509CertificateOf(pem);
  return certificate !== null && shown?.raw.equals(certificate.raw) === true;
}

/** Through `dial`, through a proxy, or directly. */
function routeTo(url: URL, { dial, proxyUrl }: HttpsRequest, env: ProxyEnvironment): Dial {
  if (dial !== undefined) return dial;
  const proxy = proxyUrl === undefined ? environmentProxy(url, env) : proxyUrl === null ? null : new URL(proxyUrl);
  return ({ host, port }, signal) =>
    proxy === null ? connected(connect({ host, port }), 'connect', signal) : openTunnel(proxy, host, port, signal);
}

function environmentProxy(url: URL, env: ProxyEnvironment): URL | null {
  try {
    return proxyFor(url, env);
  } catch (cause) {
    throw new HttpsError({ kind: 'proxy-unusable', why: (cause as Error).message }, cause);
  }
}

/** @param options.ca empty: no certificate is verified here, and the built-in CAs of Node.js need not be loaded */
function secure(
  socket: Duplex,
  options: {
    readonly host: string;
    readonly ca: readonly string[];
    readonly client: HttpsRequest['clientCertificate'] | undefined;
    readonly signal: AbortSignal;
  },
): Promise<TLSSocket> {
  const { host, ca, client, signal } = options;
  const tls = tlsConnect({
    socket,
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    minVersion: 'TLSv1.2',
    rejectUnauthorized: false,
    checkServerIdentity,
    // Accepts an intermediate CA as a trust anchor, as Go does.
    ca: [...ca],
    allowPartialTrustChain: true,
    ...(client === undefined ? {} : { cert: client.certificate, key: client.key.reveal() }),
  });
  return connected(tls, 'secureConnect', signal);
}

function connected<S extends Socket>(socket: S, event: 'connect' | 'secureConnect', signal?: AbortSignal): Promise<S> {
  return new Promise((resolve, reject) => {
    const settle = onAbort(signal, () => socket.destroy(new HttpsError({ kind: 'timed-out' })));
    socket.once(event, () => {
      settle();
      resolve(socket);
    });
    socket.on('error', (error) => {
      settle();
      reject(error);
    });
    socket.once('close', () => {
      settle();
      reject(new HttpsError({ kind: 'closed' }));
    });
  });
}

function send(
  socket: Duplex,
  url: URL,
  { signal, bearerToken }: { readonly signal: AbortSignal; readonly bearerToken: Secret | undefined },
): Promise<IncomingMessage> {
  const login = bearerToken === undefined ? {} : { Authorization: `Bearer ${bearerToken.reveal()}` };
  return new Promise((resolve, reject) => {
    const request = httpRequest({
      createConnection: () => socket,
      host: hostOf(url),
      method: 'GET',
      path: `${url.pathname}${url.search}`,
      setHost: false,
      headers: { Host: url.host, Accept: 'application/json, */*;q=0.5', 'User-Agent': 'kubeletadm', Connection: 'close', ...login },
      signal,
    });
    request.once('error', reject);
    request.once('response', resolve);
    request.end();
  });
}

function headersOf({ headers }: IncomingMessage): Pick<HttpsResponse, 'contentType' | 'date' | 'location'> {
  const date = new Date(headers.date ?? '');
  return {
    contentType: (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '',
    date: Number.isNaN(date.getTime()) ? null : date,
    location: headers.location ?? null,
  };
}

/** Identifies a server that does not speak TLS by its banner, or by its response to a plain request. */
async function listen(dial: () => Promise<Duplex>): Promise<'ssh' | 'http' | null> {
  const socket = await dial().catch(() => null);
  if (socket === null) return null;
  const first = new Promise<string>((resolve) => {
    socket.once('data', (data: Buffer) => resolve(data.toString('latin1')));
    socket.once('close', () => resolve(''));
    setTimeout(() => socket.write('GET / HTTP/1.0\r\n\r\n'), BANNER_MS / 2).unref();
    setTimeout(() => resolve(''), BANNER_MS).unref();
  });
  const reported = await first.finally(() => socket.destroy());
  if (reported.startsWith('SSH-')) return 'ssh';
  return reported.startsWith('HTTP/') ? 'http' : null;
}

async function authoritiesOf(trust: Trust, env: ProxyEnvironment): Promise<readonly string[]> {
  switch (trust.kind) {
    case 'unverified':
    case 'certificate':
    case 'plain':
      return [];
    case 'ca':
      return [trust.pem];
    case 'machine':
      return trustedCas(env);
  }
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** CA bundles of the distributions; the first existing file is used, as in Go's crypto/x509. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * As PEM: SSL_CERT_FILE or the distribution's bundle, else Node's built-in CAs; plus NODE_EXTRA_CA_CERTS.
 * Unreadable files are ignored: verification then fails and reports the unknown CA.
 */
async function trustedCas(env: ProxyEnvironment): Promise<readonly string[]> {
  const extra = await read(env.NODE_EXTRA_CA_CERTS);
  const [bundle] = (await Promise.all((env.SSL_CERT_FILE ? [env.SSL_CERT_FILE] : BUNDLES).map(read))).flat();
  return [...(bundle === undefined ? rootCertificates : [bundle]), ...extra];
}

async function read(path: string | undefined): Promise<readonly string[]> {
  if (!path) return [];
  return readFile(path, 'utf8').then(
    (text) => (text.includes('-----BEGIN CERTIFICATE-----') ? [text] : []),
    () => [],
  );
}
