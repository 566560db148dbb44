import type { Agent, AgentOptions } from 'node:https';
import type { Socket } from 'node:net';
import { dialingAgent } from './dialing-agent.ts';
import { openHttpTunnel } from './http-tunnel.ts';

/**
 * Opens a TCP connection to a destination through an HTTP (CONNECT) or SOCKS proxy. Credentials in the URL
 * are sent to the proxy only; the proxy resolves host names.
 * @param port port of the destination
 * @throws ProxyError
 */
export async function openTunnel(proxy: URL, host: string, port: number, signal?: AbortSignal): Promise<Socket> {
  if (!proxy.protocol.startsWith('socks')) return openHttpTunnel(proxy, host, port, signal);
  const { openSocksTunnel } = await import('./socks-tunnel.ts');
  return openSocksTunnel(proxy, host, port, signal);
}

export function tunnelAgent(proxy: URL, tls: AgentOptions): Agent {
  return dialingAgent(({ host, port }) => openTunnel(proxy, host, port), tls);
}
