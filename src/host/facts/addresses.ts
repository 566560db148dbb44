import { formatIp } from '../../base/text/ip.ts';
import { defineFact } from './fact.ts';

/** The IP addresses of the host except loopback; null when unknown (an image). */
export const localAddresses = defineFact(
  { fib: { kind: 'file', path: '/proc/net/fib_trie' }, v6: { kind: 'file', path: '/proc/net/if_inet6' } },
  ({ fib, v6 }): readonly string[] | null =>
    fib === null && v6 === null ? null : [...parseFibTrie(fib?.content ?? ''), ...parseIfInet6(v6?.content ?? '')],
);

/** IPv4 addresses of /proc/net/fib_trie: those followed by `/32 host LOCAL`. */
export function parseFibTrie(text: string): readonly string[] {
  const found = new Set<string>();
  let last = '';
  for (const line of text.split('\n')) {
    const address = /(?:\|--|\+--) ([0-9.]{1,15})/.exec(line);
    if (address) last = address[1] as string;
    else if (/\/32 host LOCAL/.test(line) && !last.startsWith('127.')) found.add(last);
  }
  return [...found];
}

/** IPv6 addresses of /proc/net/if_inet6 in the short form of RFC 5952, except loopback and link-local. */
export function parseIfInet6(text: string): readonly string[] {
  const addresses: string[] = [];
  for (const line of text.split('\n')) {
    const [address = '', , , scope] = line.split(' ');
    if (/^[0-9a-f]{32}$/.test(address) && scope !== undefined && scope !== '10' && scope !== '20')
      addresses.push(formatIp({ family: 6, value: BigInt(`0x${address}`) }));
  }
  return addresses;
}

/**
 * The IP addresses at which other hosts reach the host: without those of Services and of interfaces that
 * container runtimes, Pod networks, kube-proxy and virtual machines create, which are equal on many hosts.
 * Null when unknown (an image). Without `ip` all addresses except loopback.
 */
export const ownAddresses = defineFact(
  { ...localAddresses.queries, shown: { kind: 'command', argv: ['ip', '-o', 'address', 'show', 'scope', 'global'] } },
  ({ shown, ...local }, parseText): readonly string[] | null => {
    const { exitCode, stdout } = shown;
    return exitCode === 0 ? parseOwnAddresses(stdout) : localAddresses.parse(local, parseText);
  },
);

const MADE_BY_OTHERS =
  /^(?:docker|br-[0-9a-f]{12}$|podman|cni|cbr0$|flannel|cali|tunl0$|vxlan[.-]|cilium|lxc|lxdbr|incusbr|weave|antrea|ovn|kube-|nodelocaldns$|veth|virbr|vnet)/;

/** Addresses in lines like `2: eth0    inet 10.0.0.5/24 brd 10.0.0.255 scope global eth0`. */
export function parseOwnAddresses(text: string): readonly string[] {
  return [...text.matchAll(/^\d+: +([^\s@]+)(?:@\S+)? +inet6? +([0-9a-f.:]+)/gim)].flatMap(([, device = '', address = '']) =>
    MADE_BY_OTHERS.test(device) ? [] : [address],
  );
}
