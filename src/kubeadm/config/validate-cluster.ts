import type { Problem } from '../../base/errors.ts';
import { closestName } from '../../base/text/closest-name.ts';
import { parseGoDuration } from '../../base/text/go-duration.ts';
import { type Cidr, cidrContains, cidrsOverlap, formatCidr, hostBits, parseCidr } from '../../base/text/ip.ts';
import {
  deprecatedFeatureGate,
  invalidCidr,
  longValidity,
  mutuallyExclusive,
  outlivesCa,
  requiredWith,
  subnetsOverlap,
  unknownFeatureGate,
  unusableSubnet,
} from '../../codec/document-problems.ts';
import { formatFieldPath } from '../../codec/field-path.ts';
import { DEFAULT_SERVICE_SUBNET } from './defaults.ts';
import { parseSubnets } from './dns-ip.ts';
import {
  argValue,
  type ClusterConfiguration,
  type ControlPlaneComponent,
  type ExternalEtcd,
  type HostPathMount,
  type LocalEtcd,
} from './model.ts';
import type { ConfigFinding } from './origins.ts';
import { NEWEST_RELEASE_FACTS } from './releases.ts';
import * as rules from './rules.ts';
import { dnsDomain } from './rules.ts';
import { argumentFindings, findingOfValue, findingsOfItems } from './validate-parts.ts';

export function* clusterFindings(cluster: ClusterConfiguration): Iterable<ConfigFinding> {
  const path = 'ClusterConfiguration';
  yield* networkingFindings(cluster);
  yield* findingsOfItems(`${path}.apiServer.certSANs`, cluster.apiServer?.certSANs, (san) => rules.certSan(san.toLowerCase()));
  yield* componentFindings(`${path}.apiServer`, cluster.apiServer ?? {});
  yield* componentFindings(`${path}.controllerManager`, cluster.controllerManager ?? {});
  yield* componentFindings(`${path}.scheduler`, cluster.scheduler ?? {});
  yield* findingOfValue(`${path}.kubernetesVersion`, cluster.kubernetesVersion, rules.kubernetesVersion);
  yield* findingOfValue(`${path}.controlPlaneEndpoint`, cluster.controlPlaneEndpoint, rules.controlPlaneEndpoint);
  yield* findingOfValue(`${path}.certificatesDir`, cluster.certificatesDir, rules.absolutePath);
  yield* findingOfValue(`${path}.imageRepository`, cluster.imageRepository, rules.imageRepository);
  yield* findingOfValue(`${path}.dns.imageRepository`, cluster.dns?.imageRepository, rules.imageRepository);
  yield* featureGateFindings(cluster);
  yield* etcdFindings(`${path}.etcd`, cluster);
  yield* validityFindings(path, cluster);
}

function* componentFindings(path: string, component: ControlPlaneComponent): Iterable<ConfigFinding> {
  yield* argumentFindings(`${path}.extraArgs`, component.extraArgs);
  yield* volumeFindings(`${path}.extraVolumes`, component.extraVolumes ?? []);
  for (const [i, env] of (component.extraEnvs ?? []).entries()) {
    if (env.value !== undefined && env.valueFrom !== undefined) {
      yield { path: `${path}.extraEnvs[${i}].valueFrom`, problem: mutuallyExclusive('value', 'valueFrom') };
    }
  }
}

/**
 * Stricter than kubeadm, which does not validate these paths: a relative path would depend on the kubelet's
 * working directory.
 */
function* volumeFindings(path: string, volumes: readonly HostPathMount[]): Iterable<ConfigFinding> {
  for (const [i, { hostPath }] of volumes.entries()) yield* findingOfValue(`${path}[${i}].hostPath`, hostPath, rules.absolutePath);
}

const FEATURE_GATES = NEWEST_RELEASE_FACTS.featureGates;

function* featureGateFindings({ featureGates = {} }: ClusterConfiguration): Iterable<ConfigFinding> {
  for (const [name, on] of Object.entries(featureGates)) {
    const at = formatFieldPath(['ClusterConfiguration', 'featureGates', name]);
    if (!FEATURE_GATES.includes(name)) {
      yield { path: at, problem: unknownFeatureGate(name, FEATURE_GATES, closestName(name, FEATURE_GATES)) };
    }
    if (name === 'PublicKeysECDSA')
      yield { path: at, problem: deprecatedFeatureGate(name, 'Set encryptionAlgorithm: ECDSA-P256 (v1beta4) instead') };
    if (name === 'NodeLocalCRISocket' && !on)
      yield {
        path: at,
        problem: deprecatedFeatureGate(
          name,
          'Remove the feature gate. The CRI socket is then set in instance-config.yaml instead of a kubelet flag',
        ),
      };
  }
}

function* etcdFindings(path: string, { etcd = {} }: ClusterConfiguration): Iterable<ConfigFinding> {
  if (etcd.local && etcd.external) {
    yield { path, problem: mutuallyExclusive('local', 'external') };
    return;
  }
  if (etcd.local) yield* localEtcdFindings(`${path}.local`, etcd.local);
  if (etcd.external) yield* externalEtcdFindings(`${path}.external`, etcd.external);
}

function* localEtcdFindings(path: string, local: LocalEtcd): Iterable<ConfigFinding> {
  yield* findingOfValue(`${path}.dataDir`, local.dataDir, rules.absolutePath);
  yield* findingOfValue(`${path}.imageRepository`, local.imageRepository, rules.imageRepository);
  yield* findingsOfItems(`${path}.serverCertSANs`, local.serverCertSANs, rules.certSan);
  yield* findingsOfItems(`${path}.peerCertSANs`, local.peerCertSANs, rules.certSan);
  yield* argumentFindings(`${path}.extraArgs`, local.extraArgs);
}

function* externalEtcdFindings(path: string, external: ExternalEtcd): Iterable<ConfigFinding> {
  const { endpoints = [], httpEndpoints = [], caFile, certFile, keyFile } = external;
  const needsHttps = [caFile, certFile, keyFile].some((file) => file !== undefined);
  if (endpoints.length === 0) yield { path: `${path}.endpoints`, problem: requiredWith('an endpoint', 'for external etcd'), missing: true };
  yield* findingsOfItems(`${path}.endpoints`, endpoints, (url) => rules.etcdUrl(url, needsHttps));
  yield* findingsOfItems(`${path}.httpEndpoints`, httpEndpoints, (url) => rules.etcdUrl(url, false));
  if ((certFile === undefined) !== (keyFile === undefined)) {
    const [lacking, given] = certFile === undefined ? ['certFile', 'keyFile'] : ['keyFile', 'certFile'];
    yield { path: `${path}.${given}`, problem: requiredWith(lacking, `with ${given}`), missing: true };
  } else if (certFile !== undefined && caFile === undefined) {
    yield { path: `${path}.certFile`, problem: requiredWith('caFile', 'with certFile and keyFile'), missing: true };
  }
  for (const [name, file] of Object.entries({ caFile, certFile, keyFile }))
    yield* findingOfValue(`${path}.${name}`, file, rules.absolutePath);
}

const USUAL_VALIDITY = '8760h0m0s';
const USUAL_CA_VALIDITY = '87600h0m0s';

function* validityFindings(path: string, cluster: ClusterConfiguration): Iterable<ConfigFinding> {
  const certificate = cluster.certificateValidityPeriod ?? USUAL_VALIDITY;
  const ca = cluster.caCertificateValidityPeriod ?? USUAL_CA_VALIDITY;
  const at = { certificate: `${path}.certificateValidityPeriod`, ca: `${path}.caCertificateValidityPeriod` };
  yield* findingOfValue(at.certificate, certificate, rules.notNegative);
  yield* findingOfValue(at.ca, ca, rules.notNegative);
  if (isLonger(certificate, USUAL_VALIDITY)) yield { path: at.certificate, problem: longValidity(certificate, USUAL_VALIDITY) };
  if (isLonger(ca, USUAL_CA_VALIDITY)) yield { path: at.ca, problem: longValidity(ca, USUAL_CA_VALIDITY) };
  if (isLonger(certificate, ca)) yield { path: at.certificate, problem: outlivesCa(certificate, ca) };
}

function isLonger(a: string, b: string): boolean {
  return (parseGoDuration(a) ?? 0n) > (parseGoDuration(b) ?? 0n);
}

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
