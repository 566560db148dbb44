import { type Cidr, cidrContains, formatCidr, isGlobalUnicast, parseIp } from '../../base/text/ip.ts';
import type { San } from '../pki/san.ts';

/** Names and addresses of a cluster that no kubelet may request in a serving certificate. */
export interface ReservedNames {
  /** `cluster.local`, as returned by `canonicalName`. */
  readonly clusterDomain: string;
  readonly serviceSubnets: readonly Cidr[];
  readonly podSubnets: readonly Cidr[];
  /** Service by address, in the form of `canonicalName`. */
  readonly services: ReadonlyMap<string, string>;
  /**
   * Source by name or address of the API server, in the form of `canonicalName`. A name may begin with `*.`.
   * A control plane may own some of these names.
   */
  readonly apiServer: ReadonlyMap<string, string>;
}

/**
 * Why a SAN is reserved, as a clause; null when it is not.
 * @param isControlPlane the node runs an API server, so names and addresses of the API server may be its own
 */
export function reservedReason(san: San, reserved: ReservedNames, isControlPlane: boolean): string | null {
  const why = san.kind === 'DNS' ? reservedDnsName(san.value, reserved) : reservedAddress(san.value, reserved);
  const service = reserved.services.get(san.value);
  if (why === null && service !== undefined) return `belongs to ${service}`;
  return why ?? (isControlPlane ? null : ofApiServer(san, reserved));
}

function reservedDnsName(name: string, { clusterDomain }: ReservedNames): string | null {
  if (isWithin(name, 'localhost')) return 'is a name of the local host';
  if (name === 'kubernetes' || name.startsWith('kubernetes.')) return 'is a name of the API server inside the cluster';
  if (isWithin(name, 'svc')) return 'is a name of a Service';
  return isWithin(name, clusterDomain) ? `is a name in the cluster domain ${clusterDomain}` : null;
}

function reservedAddress(text: string, { serviceSubnets, podSubnets }: ReservedNames): string | null {
  const address = parseIp(text);
  if (address === null) return 'is not an IP address';
  if (!isGlobalUnicast(address)) return 'is a loopback, unspecified, link-local, multicast or broadcast address';
  const inService = serviceSubnets.find((subnet) => cidrContains(subnet, address));
  if (inService !== undefined) return `is an address in the service subnet ${formatCidr(inService)}`;
  const inPods = podSubnets.find((subnet) => cidrContains(subnet, address));
  return inPods === undefined ? null : `is an address in the pod subnet ${formatCidr(inPods)}`;
}

function ofApiServer({ kind, value }: San, { apiServer }: ReservedNames): string | null {
  const exact = apiServer.get(value);
  if (exact !== undefined) return `belongs to the API server (${exact})`;
  if (kind === 'IP') return null;
  const parent = value.slice(value.indexOf('.') + 1);
  const wildcard = value.includes('.') ? apiServer.get(`*.${parent}`) : undefined;
  return wildcard === undefined ? null : `is covered by *.${parent}, a name of the API server (${wildcard})`;
}

function isWithin(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}
