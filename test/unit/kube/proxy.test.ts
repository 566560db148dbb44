import { describe, expect, it } from 'vitest';
import { type ProxyEnvironment, proxyFor, showProxy } from '../../../src/kube/proxy.ts';

const PROXY = 'http://proxy.example.com:3128';
const proxyOf = (url: string, env: ProxyEnvironment) => {
  const proxy = proxyFor(new URL(url), env);
  return proxy && showProxy(proxy);
};
const goesThrough = (url: string, noProxy: string) => proxyOf(url, { HTTPS_PROXY: PROXY, NO_PROXY: noProxy }) !== null;

describe('proxyFor', () => {
  it.each<[string, string, ProxyEnvironment, string | null]>([
    ['nothing is set', 'https://10.0.0.1:6443', {}, null],
    ['upper case', 'https://10.0.0.1:6443', { HTTPS_PROXY: PROXY }, PROXY],
    ['lower case', 'https://10.0.0.1:6443', { https_proxy: PROXY }, PROXY],
    ['both: upper case wins', 'https://10.0.0.1:6443', { HTTPS_PROXY: PROXY, https_proxy: 'http://other:1' }, PROXY],
    ['an empty variable is ignored', 'https://10.0.0.1:6443', { HTTPS_PROXY: '', https_proxy: PROXY }, PROXY],
    ['the other scheme', 'https://10.0.0.1:6443', { HTTP_PROXY: PROXY }, null],
    ['plain HTTP', 'http://10.0.0.1', { HTTP_PROXY: PROXY }, PROXY],
    ['no scheme: http', 'https://10.0.0.1', { HTTPS_PROXY: 'proxy.example.com:3128' }, PROXY],
    ['a proxy that is reached over TLS', 'https://10.0.0.1', { HTTPS_PROXY: 'https://proxy:443' }, 'https://proxy'],
    ['SOCKS', 'https://10.0.0.1', { HTTPS_PROXY: 'socks5://proxy:1080' }, 'socks5://proxy:1080'],
    ['credentials are not shown', 'https://10.0.0.1', { HTTPS_PROXY: 'http://me:secret@proxy:3128' }, 'http://proxy:3128'],
    ['the local host', 'https://localhost:6443', { HTTPS_PROXY: PROXY }, null],
    ['the local host by address', 'https://127.3.2.1:6443', { HTTPS_PROXY: PROXY }, null],
    ['the local host by IPv6 address', 'https://[::1]:6443', { HTTPS_PROXY: PROXY }, null],
  ])('%s', (_, url, env, expected) => {
    expect(proxyOf(url, env)).toBe(expected);
  });

  it.each([
    ['everything', '*', 'https://api.example.com:6443'],
    ['a domain itself', 'example.com', 'https://example.com'],
    ['a subdomain', 'example.com', 'https://api.example.com:6443'],
    ['a subdomain of a domain with a dot', '.example.com', 'https://api.example.com'],
    ['a subdomain of a domain with a star', '*.example.com', 'https://api.example.com'],
    ['any case', 'Example.COM', 'https://API.example.com'],
    ['one of several, with spaces', 'a.b , example.com', 'https://api.example.com'],
    ['an address', '10.0.0.1', 'https://10.0.0.1:6443'],
    ['an address with its port', '10.0.0.1:6443', 'https://10.0.0.1:6443'],
    ['a domain with the default port', 'example.com:443', 'https://example.com'],
    ['a network', '10.0.0.0/8', 'https://10.200.0.1:6443'],
    ['an IPv6 address, in another form', 'fd00:0::10', 'https://[fd00::10]:6443'],
    ['an IPv6 address with port', '[fd00::10]:6443', 'https://[fd00::10]:6443'],
    ['an IPv6 network', 'fd00::/8', 'https://[fd00::10]:6443'],
  ])('NO_PROXY names %s', (_, noProxy, url) => {
    expect(goesThrough(url, noProxy)).toBe(false);
  });

  it.each([
    ['a domain with a dot', '.example.com', 'https://example.com'],
    ['a domain with a star', '*.example.com', 'https://example.com'],
    ['the end of a label', 'ample.com', 'https://example.com'],
    ['another port', '10.0.0.1:443', 'https://10.0.0.1:6443'],
    ['a network, and this is a name', '0.0.0.0/0', 'https://example.com'],
    ['another network', '10.0.0.0/8', 'https://192.168.0.1'],
    ['nothing between commas', ',, ,', 'https://example.com'],
    ['a port alone', ':443', 'https://example.com'],
  ])('is none when NO_PROXY names %s', (_, noProxy, url) => {
    expect(goesThrough(url, noProxy)).toBe(true);
  });

  it.each([
    ['HTTPS_PROXY', { HTTPS_PROXY: 'ftp://me:hunter2@proxy' }],
    ['https_proxy', { https_proxy: 'http://me:hunter2@' }],
  ])('reports %s, not its value, when it is not a proxy URL', (name, env) => {
    expect(() => proxyFor(new URL('https://10.0.0.1'), env)).toThrow(new Error(`${name} is not a valid proxy URL`));
  });
});
