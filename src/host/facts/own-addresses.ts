import { localAddresses } from './addresses.ts';
import { defineFact } from './fact.ts';

/**
 * The IP addresses at which other hosts reach the host: without addresses of Services and of interfaces that
 * container runtimes, Pod networks, kube-proxy and virtual machines create, because these are equal on many
 * hosts. Null when unknown (an image). Without `ip` the interface of an address is unknown, so all addresses
 * except loopback are returned.
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
