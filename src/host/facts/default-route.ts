import { parseIfInet6 } from './addresses.ts';
import { defineFact } from './fact.ts';

/** The address at which other hosts reach the host: that of the interface of the default route, for each family. */
export interface DefaultRoute {
  readonly ipv4?: string | undefined;
  readonly ipv6?: string | undefined;
}

/**
 * Reads the kernel's tables and the output of `ip`; without both the address is unknown.
 * @see kubeadm 1.36 util/net: the first global address of the interface of the default route
 */
export const defaultRoute = defineFact(
  {
    route4: { kind: 'file', path: '/proc/net/route' },
    route6: { kind: 'file', path: '/proc/net/ipv6_route' },
    inet6: { kind: 'file', path: '/proc/net/if_inet6' },
    addresses: { kind: 'command', argv: ['ip', '-o', '-4', 'address', 'show', 'scope', 'global'] },
    source: { kind: 'command', argv: ['hostname', '-I'] },
  },
  ({ route4, route6, inet6, addresses, source }): DefaultRoute => {
    const [device4, device6] = [defaultDevice4(route4?.content ?? ''), defaultDevice6(route6?.content ?? '')];
    const shown =
      addresses.exitCode === 0
        ? firstAddressOf(addresses.stdout, device4)
        : source.stdout.split(/\s+/).find((word) => /^\d+(?:\.\d+){3}$/.test(word));
    const ipv6 = device6 === null ? undefined : parseIfInet6(linesOf(inet6?.content ?? '', device6))[0];
    return { ipv4: device4 === null ? undefined : shown, ipv6 };
  },
);

const UP_AND_GATEWAY = 3;

/** The interface of the first route to 0.0.0.0/0 in /proc/net/route. */
export function defaultDevice4(text: string): string | null {
  for (const line of text.split('\n').slice(1)) {
    const [device = '', destination, , flags = '0', , , , mask] = line.trim().split(/\s+/);
    if (destination === '00000000' && mask === '00000000' && (Number.parseInt(flags, 16) & UP_AND_GATEWAY) === UP_AND_GATEWAY)
      return device;
  }
  return null;
}

/** As for IPv4, in /proc/net/ipv6_route. The kernel lists the loopback when no such route exists. */
export function defaultDevice6(text: string): string | null {
  for (const line of text.split('\n')) {
    const [destination = '', prefix, , , , , , , flags = '0', device = ''] = line.trim().split(/\s+/);
    const isGateway = (Number.parseInt(flags, 16) & UP_AND_GATEWAY) === UP_AND_GATEWAY;
    if (/^0{32}$/.test(destination) && prefix === '00' && device !== 'lo' && isGateway) return device;
  }
  return null;
}

/** The first address of an interface in the output of `ip -o -4 address`. */
function firstAddressOf(text: string, device: string | null): string | undefined {
  const addresses = [...text.matchAll(/^\d+:[ \t]+(\S+)[ \t]+inet[ \t]+([0-9.]+)\//gm)];
  return addresses.find(([, shown]) => shown === device)?.[2];
}

/** Lines of /proc/net/if_inet6 end with the interface. */
function linesOf(text: string, device: string): string {
  return text
    .split('\n')
    .filter((line) => line.trim().split(/\s+/).at(-1) === device)
    .join('\n');
}
