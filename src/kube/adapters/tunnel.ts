import type { Agent, AgentOptions } from 'node:https';
import type { Socket } from 'node:net';
import { dialingAgent } from './dialing-agent.ts';
import { openHttpTunnel } from './http-tunnel.ts';

/**
 * Asks a proxy for a connection to somewhere: one for HTTP by CONNECT, or a SOCKS proxy. Credentials in its URL are sent to it and to nobody else; names are
 * looked up by the proxy.
 * @param port of the destination
 * @throws ProxyError
 */
export async function openTunnel(proxy: URL, host: string, port: number, signal?: AbortSignal): Promise<Socket> {
  if (!proxy.protocol.startsWith('socks')) return openHttpTunnel(proxy, host, port, signal);
  const { openSocksTunnel } = await import('./socks-tunnel.ts');
  return openSocksTunnel(proxy, host, port, signal);
}

/** An agent whose connections go through a proxy. */
export function tunnelAgent(proxy: URL, tls: AgentOptions): Agent {
  return dialingAgent(({ host, port }) => openTunnel(proxy, host, port), tls);
}
