import { AppError } from '../../base/errors.ts';
import { addressAt, type Cidr, formatCidr, formatIp, parseCidr } from '../../base/text/ip.ts';
import { quoteValue } from '../../codec/document-problems.ts';

/**
 * The address of the cluster DNS Service: the tenth of the first Service subnet.
 * @param serviceSubnet one CIDR, or two comma-separated CIDRs: `10.96.0.0/12,fd03::/112`
 * @throws AppError CONFIG_INVALID_SUBNET when it cannot be parsed or is too small
 * @see kubernetes/kubernetes cmd/kubeadm/app/constants (1.36)
 */
export function dnsIp(serviceSubnet: string): string {
  return serviceIpAt(serviceSubnet, 10);
}

/**
 * The address of the `kubernetes` Service: the first of the first Service subnet.
 * @throws AppError CONFIG_INVALID_SUBNET when it cannot be parsed or is too small
 */
export function apiServerServiceIp(serviceSubnet: string): string {
  return serviceIpAt(serviceSubnet, 1);
}

/** Parses comma-separated subnets; null when one is not a CIDR. */
export function parseSubnets(subnets: string): readonly Cidr[] | null {
  const parsed = subnets.split(',').map(parseCidr);
  return parsed.every((cidr) => cidr !== null) ? parsed : null;
}

function serviceIpAt(serviceSubnet: string, index: number): string {
  const [first] = parseSubnets(serviceSubnet) ?? [];
  if (!first) throw unusable(`the service subnet ${quoteValue(serviceSubnet)} is neither a CIDR nor two comma-separated CIDRs`);
  const address = addressAt(first, index);
  if (!address) throw unusable(`the service subnet ${formatCidr(first)} is too small: it has no address number ${index}`);
  return formatIp(address);
}

function unusable(message: string): AppError {
  return new AppError(
    { code: 'CONFIG_INVALID_SUBNET', message, hint: 'Correct networking.serviceSubnet or --service-cidr' },
    { exitCode: 2 },
  );
}
