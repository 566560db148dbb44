import { request as httpRequest } from 'node:http';
import { type Agent, type AgentOptions, request as httpsRequest } from 'node:https';
import type { Socket } from 'node:net';
import type { ProxyRefusal } from '../proxy.ts';
import { DialingAgent } from './dialing-agent.ts';
import { PROXY_ANSWER_MS, ProxyError } from './network-failure.ts';
import { checkServerIdentity } from './server-identity.ts';

/** Through an HTTP (CONNECT) or SOCKS proxy, which resolves host names. @throws ProxyError */
export async function openTunnel(proxy: URL, host: string, port: number, signal?: AbortSignal): Promise<Socket> {
  if (!proxy.protocol.startsWith('socks')) return openHttpTunnel(proxy, host, port, signal);
  const { openSocksTunnel } = await import('./socks-tunnel.ts');
  return openSocksTunnel(proxy, host, port, signal);
}

export function tunnelAgent(proxy: URL, tls: AgentOptions): Agent {
  return new DialingAgent(({ host, port }) => openTunnel(proxy, host, port), tls);
}

/** With CONNECT. @throws ProxyError */
function openHttpTunnel(proxy: URL, host: string, port: number, signal?: AbortSignal): Promise<Socket> {
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
      ...(proxy.protocol === 'https:' ? { checkServerIdentity } : {}),
      headers: {
        Host: destination,
        ...(credentials === ':' ? {} : { 'Proxy-Authorization': `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}` }),
      },
      signal,
    });
    request.once('error', (error) => reject(new ProxyError(proxy, null, error)));
    request.once('response', (response) => {
      reject(new ProxyError(proxy, refusalOf(response.statusCode)));
      request.destroy();
    });
    request.setTimeout(PROXY_ANSWER_MS, () => request.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })));
    request.once('connect', (response, socket: Socket, head) => {
      socket.setTimeout(0);
      if (head.length > 0) socket.unshift(head);
      if (response.statusCode === 200) return resolve(socket);
      socket.destroy();
      reject(new ProxyError(proxy, refusalOf(response.statusCode)));
    });
    request.end();
  });
}

/** 502 to 504: the proxy could not reach the destination this time. */
function refusalOf(status = 0): ProxyRefusal {
  const kind = status === 407 ? 'login' : status >= 502 && status <= 504 ? 'failure' : 'ban';
  return { why: `with status ${status}`, kind };
}
