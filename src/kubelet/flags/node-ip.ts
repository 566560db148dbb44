import { AppError } from '../../base/errors.ts';
import { cidrContains, parseCidr, parseIp } from '../../base/text/ip.ts';

/** Valid forms of a node IP, for problems. */
export const NODE_IP_FORM =
  'Write an IP address, or a subnet that contains exactly one address of the host. For dual-stack (IPv4 and IPv6), write two values, comma-separated';

/** Whether the text is one address or subnet, or one of each family. */
export function isNodeIp(written: string): boolean {
  const families = written.split(',').map((part) => (parseIp(part) ?? parseCidr(part)?.address)?.family);
  return (
    families.every((family) => family !== undefined) && (families.length === 1 || (families.length === 2 && families[0] !== families[1]))
  );
}

/**
 * Resolves `--node-ip` for a host: subnets become the host's address in them, so that one value works for
 * many hosts. The kubelet itself accepts only addresses.
 * @param written comma-separated addresses or subnets; other text is returned unchanged for the validation of
 *   the flag
 * @param addresses addresses of the host; null if unknown (an image)
 * @throws AppError NODE_IP_NOT_FOUND (exit code 3) if the host has no address or several addresses in a
 *   subnet
 */
export function nodeIpOn(written: string, addresses: readonly string[] | null): string {
  return written
    .split(',')
    .map((part) => (parseCidr(part) !== null ? addressIn(part, addresses) : part))
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
  if (addresses === null)
    throw notFound(`node IP ${subnet}: the addresses of the host are unknown`, 'Pass the node IP itself instead of a subnet');
  const has =
    found.length > 1
      ? `several addresses in the subnet, ${found.join(', ')}`
      : `no address in the subnet (its addresses: ${addresses.join(', ') || 'none'})`;
  throw notFound(
    `node IP ${subnet}: the host has ${has}`,
    found.length > 1 ? 'Pass one of these addresses as the node IP' : 'Pass another subnet, or the node IP itself',
  );
}

function notFound(message: string, hint: string): AppError {
  return new AppError({ code: 'NODE_IP_NOT_FOUND', message, hint }, { exitCode: 3 });
}
