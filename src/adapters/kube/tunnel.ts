import { request as httpRequest } from 'node:http';
import { type Agent, type AgentOptions, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import { showProxy } from '../../core/network/proxy.ts';
import { dialingAgent } from './dialing-agent.ts';

/** A proxy that could not be used. `status` is what it answered with, null when it did not answer. */
export class ProxyError extends Error {
  /** Without credentials. */
  readonly proxy: string;
  readonly status: number | null;

  constructor(proxy: URL, status: number | null, cause?: unknown) {
    super(
      status === null ? `the proxy ${showProxy(proxy)} does not answer` : `the proxy ${showProxy(proxy)} answered ${status}`,
      cause === undefined ? undefined : { cause },
    );
    this.proxy = showProxy(proxy);
    this.status = status;
  }
}

/** How long a proxy may take to connect. */
const ANSWER_MS = 30_000;

/**
 * Asks an HTTP proxy for a connection to somewhere (CONNECT). Credentials in its URL are sent to it and to nobody else.
 * @param port of the destination
 * @throws ProxyError
 */
export function openTunnel(proxy: URL, host: string, port: number, signal?: AbortSignal): Promise<Socket> {
  const destination = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const credentials = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return new Promise((resolve, reject) => {
    const request = (proxy.protocol === 'https:' ? httpsRequest : httpRequest)({
      method: 'CONNECT',
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port === '' ? undefined : Number(proxy.port),
      path: destination,
      setHost: false,
      agent: false,
      headers: {
        Host: destination,
        ...(credentials === ':' ? {} : { 'Proxy-Authorization': `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}` }),
      },
      ...(signal === undefined ? {} : { signal }),
    });
    request.once('error', (error) => reject(new ProxyError(proxy, null, error)));
    request.once('response', (response) => {
      reject(new ProxyError(proxy, response.statusCode ?? 0));
      request.destroy();
    });
    request.setTimeout(ANSWER_MS, () => request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
    request.once('connect', (response, socket: Socket, head) => {
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      if (response.statusCode === 200) return resolve(socket);
      socket.destroy();
      reject(new ProxyError(proxy, response.statusCode ?? 0));
    });
    request.end();
  });
}

/** An agent whose connections go through an HTTP proxy. */
export function tunnelAgent(proxy: URL, tls: AgentOptions): Agent {
  return dialingAgent(({ host, port }) => openTunnel(proxy, host, port), tls);
}
