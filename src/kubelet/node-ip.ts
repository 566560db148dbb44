import { AppError } from '../base/errors.ts';
import { cidrContains, parseCidr, parseIp } from '../base/text/ip.ts';

/** What may be written for the IP of a node, in its problems. */
export const NODE_IP_FORM =
  'Write an IP address or a subnet that the host has one address in, or one of IPv4 and one of IPv6 with a comma between';

/** `10.0.0.0/24`: the address that the host has in this subnet. */
function isNodeSubnet(part: string): boolean {
  return parseCidr(part) !== null;
}

/** One address or subnet, or one of each family. */
export function isNodeIp(written: string): boolean {
  const families = written.split(',').map((part) => (parseIp(part) ?? parseCidr(part)?.address)?.family);
  return (
    families.every((family) => family !== undefined) && (families.length === 1 || (families.length === 2 && families[0] !== families[1]))
  );
}

/**
 * The value of `--node-ip` on a host: subnets become the host's address in them, so that one line holds for many hosts. The kubelet itself takes addresses only.
 * @param written addresses or subnets with commas between; what is neither is left to whoever judges the flag
 * @param addresses of the host; null when they are not known (an image)
 * @throws AppError NODE_IP_NOT_FOUND (exit code 3) where the host has no address in a subnet, or several
 */
export function nodeIpOn(written: string, addresses: readonly string[] | null): string {
  return written
    .split(',')
    .map((part) => (isNodeSubnet(part) ? addressIn(part, addresses) : part))
    .join(',');
}

function addressIn(subnet: string, addresses: readonly string[] | null): string {
  const cidr = parseCidr(subnet);
  const found = (addresses ?? []).filter((address) => {
    const ip = parseIp(address);
    return cidr !== null && ip !== null && cidrContains(cidr, ip);
  });
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  if (addresses === null) throw notFound(`node IP ${subnet}: the addresses of this host are not known`, 'Give the address itself');
  const has = found.length > 1 ? `several addresses in it, ${found.join(', ')}` : `none in it (it has ${addresses.join(', ') || 'none'})`;
  throw notFound(`node IP ${subnet}: the host has ${has}`, found.length > 1 ? 'Give one of those' : 'Give another subnet, or an address');
}

function notFound(message: string, hint: string): AppError {
  return new AppError({ code: 'NODE_IP_NOT_FOUND', message, hint }, { exitCode: 3 });
}
