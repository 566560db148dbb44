import type { Problem } from '../../base/errors.ts';
import { type Cidr, cidrContains, cidrsOverlap, formatCidr, hostBits, parseCidr } from '../../base/text/ip.ts';
import { invalidCidr, subnetsOverlap, unusableSubnet } from '../../codec/document-problems.ts';
import { DEFAULT_SERVICE_SUBNET } from './defaults.ts';
import { parseSubnets } from './dns-ip.ts';
import { argValue, type ClusterConfiguration } from './model.ts';
import type { ConfigFinding } from './origins.ts';
import { dnsDomain } from './rules.ts';

const MIN_SERVICE_ADDRESSES = 10;
const MIN_POD_ADDRESSES = 14;
const MAX_SERVICE_BITS = 20;
const MAX_NODE_MASK_DIFFERENCE = 16;
const PATH = 'ClusterConfiguration.networking';

/**
 * Validates `networking`, together with the node mask sizes of the controller manager.
 * @see kubernetes/kubernetes cmd/kubeadm/app/apis/kubeadm/validation ValidateNetworking (1.36); the warning
 *   about overlapping networks is additional
 */
export function* networkingFindings(cluster: ClusterConfiguration): Iterable<ConfigFinding> {
  const { serviceSubnet, podSubnet, dnsDomain: domain } = cluster.networking ?? {};
  const badDomain = domain === undefined ? null : dnsDomain(domain);
  if (badDomain) yield { path: `${PATH}.dnsDomain`, problem: badDomain };
  const services = serviceSubnet === undefined ? [] : parseSubnets(serviceSubnet);
  const pods = podSubnet === undefined ? [] : parseSubnets(podSubnet);
  for (const problem of serviceProblems(serviceSubnet ?? '', services)) yield { path: `${PATH}.serviceSubnet`, problem };
  for (const problem of podProblems(podSubnet ?? '', pods, cluster)) yield { path: `${PATH}.podSubnet`, problem };
  for (const pod of pods ?? []) {
    const shared = (serviceSubnet === undefined ? parseSubnets(DEFAULT_SERVICE_SUBNET) : services)?.find((service) =>
      cidrsOverlap(service, pod),
    );
    if (shared) yield { path: `${PATH}.podSubnet`, problem: subnetsOverlap(formatCidr(pod), formatCidr(shared)) };
  }
}

function* serviceProblems(text: string, subnets: readonly Cidr[] | null): Iterable<Problem> {
  yield* familyAndSizeProblems(text, subnets, MIN_SERVICE_ADDRESSES);
  for (const subnet of subnets ?? []) {
    if (hostBits(subnet) <= MAX_SERVICE_BITS) continue;
    const least = subnet.prefix + hostBits(subnet) - MAX_SERVICE_BITS;
    yield unusableSubnet(formatCidr(subnet), 'is too large for Services', `Use a prefix of /${least} or longer`);
  }
}

function* podProblems(text: string, subnets: readonly Cidr[] | null, cluster: ClusterConfiguration): Iterable<Problem> {
  yield* familyAndSizeProblems(text, subnets, MIN_POD_ADDRESSES);
  const args = cluster.controllerManager?.extraArgs;
  if (argValue(args, 'allocate-node-cidrs') === 'false') return;
  for (const subnet of subnets ?? []) {
    const flag = `node-cidr-mask-size-ipv${subnet.address.family}`;
    const given = argValue(args, flag) ?? '';
    const mask = given === '' ? (subnet.address.family === 4 ? 24 : 64) : Number(given);
    const shown = formatCidr(subnet);
    if (!/^[-+]?[0-9]*$/.test(given))
      yield unusableSubnet(shown, `cannot be split into node CIDRs: ${flag} of the controller manager is not an integer`);
    else if (subnet.prefix > mask)
      yield unusableSubnet(shown, `is smaller than a node CIDR (/${mask})`, `Use a prefix of /${mask} or shorter`);
    else if (mask - subnet.prefix > MAX_NODE_MASK_DIFFERENCE) {
      const why = `has too many node CIDRs: its prefix and the node mask (/${mask}) differ by more than ${MAX_NODE_MASK_DIFFERENCE}`;
      yield unusableSubnet(shown, why, `Use a prefix of /${mask - MAX_NODE_MASK_DIFFERENCE} or longer`);
    }
  }
}

const ONE_OR_BOTH = 'Set one CIDR, or one IPv4 and one IPv6 CIDR';
const SITE_LOCAL = parseCidr('fec0::/10') as Cidr;

function* familyAndSizeProblems(text: string, subnets: readonly Cidr[] | null, minimum: number): Iterable<Problem> {
  if (subnets === null) {
    yield invalidCidr(text);
    return;
  }
  const [first, second] = subnets;
  if (subnets.length > 2) yield unusableSubnet(text, 'contains more than two CIDRs', ONE_OR_BOTH);
  else if (first && second && first.address.family === second.address.family) {
    yield unusableSubnet(text, `contains two IPv${first.address.family} CIDRs`, ONE_OR_BOTH);
  }
  for (const subnet of subnets) {
    const shown = formatCidr(subnet);
    // As in Go's net package of Kubernetes, a network of 2^31 or more addresses counts as having none.
    const addresses = tooLargeToCount(subnet) ? 0 : 2 ** hostBits(subnet);
    if (addresses < minimum) {
      const size = addresses === 0 ? 'is too large' : `has ${addresses} addresses, fewer than ${minimum}`;
      yield unusableSubnet(shown, size);
    }
    if (cidrContains(SITE_LOCAL, subnet.address) || cidrContains(subnet, SITE_LOCAL.address)) {
      const hint = 'Use unique local addresses (fd00::/8)';
      yield { ...unusableSubnet(shown, 'contains site-local addresses (fec0::/10), which RFC 3879 deprecates', hint), severity: 'warning' };
    }
  }
}

function tooLargeToCount(subnet: Cidr): boolean {
  return hostBits(subnet) >= (subnet.address.family === 4 ? 31 : 127);
}
