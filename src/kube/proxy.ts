import { type Cidr, cidrContains, formatIp, type IpAddress, isLoopback, parseCidr, parseIp } from '../base/text/ip.ts';

export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy for a URL, by the rules of Go's net/http (used by kubeadm, kubectl and the kubelet):
 * `HTTPS_PROXY` or `HTTP_PROXY` by scheme, `NO_PROXY` for exceptions (a domain with its subdomains, `.domain`
 * or `*.domain` for subdomains only, an address, a subnet, each with or without port; `*` for everything),
 * lower-case names if the upper-case ones are unset. Loopback addresses never use a proxy.
 * @returns its URL, including credentials; null: no proxy
 * @throws Error when the variable is not a URL; the message contains the variable's name, not its value,
 *   which may contain a password
 * @see golang.org/x/net/http/httpproxy
 */
export function proxyFor(url: URL, env: ProxyEnvironment): URL | null {
  const name = url.protocol === 'http:' ? 'HTTP_PROXY' : 'HTTPS_PROXY';
  const written = variable(env, name);
  if (written === '' || isExempt(url, variable(env, 'NO_PROXY'))) return null;
  const proxy = parseProxy(written);
  if (proxy === null) throw new Error(`${env[name] ? name : name.toLowerCase()} is not a valid proxy URL`);
  return proxy;
}

export interface ProxyRefusal {
  /** Follows "refused the connection". */
  readonly why: string;
  /** The proxy requires credentials, failed to connect, or forbids the destination. */
  readonly kind: 'login' | 'failure' | 'ban';
}

/** A proxy URL for messages, without user and password. */
export function showProxy(proxy: URL): string {
  return `${proxy.protocol}//${proxy.host}`;
}

function variable(env: ProxyEnvironment, name: string): string {
  return env[name] || env[name.toLowerCase()] || '';
}

function parseProxy(text: string): URL | null {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  if (!URL.canParse(withScheme)) return null;
  const proxy = new URL(withScheme);
  return /^(?:https?|socks5h?):$/.test(proxy.protocol) && proxy.hostname !== '' ? proxy : null;
}

interface Destination {
  /** Lower case, without brackets. */
  readonly host: string;
  readonly port: string;
  readonly address: IpAddress | null;
}

function isExempt(url: URL, noProxy: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = url.port !== '' ? url.port : url.protocol === 'http:' ? '80' : '443';
  const destination: Destination = { host, port, address: parseIp(host) };
  if (host === 'localhost' || (destination.address !== null && isLoopback(destination.address))) return true;
  return noProxy.split(',').some((entry) => matches(entry.trim().toLowerCase(), destination));
}

function matches(entry: string, { host, port, address }: Destination): boolean {
  if (entry === '') return false;
  if (entry === '*') return true;
  const network: Cidr | null = parseCidr(entry);
  if (network !== null) return address !== null && cidrContains(network, address);
  const [, bracketed, plain = '', desiredPort = ''] = /^(?:\[([^\]]*)\]|([^:]*))(?::([0-9]+))?$/.exec(entry) ?? [null, undefined, entry];
  const desired = bracketed ?? plain;
  if (desired === '' || (desiredPort !== '' && desiredPort !== port)) return false;
  const desiredAddress = parseIp(desired);
  if (desiredAddress !== null) return address !== null && formatIp(desiredAddress) === formatIp(address);
  const domain = desired.startsWith('*.') ? desired.slice(1) : desired;
  return domain.startsWith('.') ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`);
}
