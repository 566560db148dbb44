import { jsonEqual } from '../../base/json.ts';
import { type Cidr, cidrContains, isSameAddress, parseCidr, parseIp } from '../../base/text/ip.ts';
import { listAt, textAt } from '../documents/values.ts';
import { loss, type PodRisk, warning } from './pod-risk.ts';
import type { RiskInput } from './risk-input.ts';

/** Networks of DNS caches on the nodes. */
const LINK_LOCAL = ['169.254.0.0/16', 'fe80::/10'].map((text) => parseCidr(text) as Cidr);

/**
 * DNS settings with which new pods resolve no names of the cluster.
 * @see kubernetes/kubernetes pkg/kubelet/kubelet.go (1.36): an entry that is no IP address is ignored;
 *   pkg/kubelet/network/dns/dns.go: without an address, pods get the DNS settings of the host
 */
export function dnsRisks(input: RiskInput): readonly PodRisk[] {
  const why = addressIssue(input);
  return [...(why === null ? [] : [loss('clusterDNS', why)]), ...domainRisks(input)];
}

/** Why new pods would resolve no names with the addresses in `clusterDNS`, as a clause; null: they would, or not known. */
function addressIssue({ before, after, dnsServices }: RiskInput): string | null {
  const path = 'clusterDNS';
  const [now, then] = [listAt(after, path).map(String), before === null ? null : listAt(before, path).map(String)];
  if (then !== null && jsonEqual(now, then)) return null;
  const wrong = now.filter((address) => parseIp(address) === null);
  if (wrong.length > 0) return `clusterDNS ${wrong.join(', ')} is not an IP address, so the kubelet ignores it`;
  if (then === null || (now.length === 0 && then.length === 0)) return null;
  if (now.length === 0) return `clusterDNS becomes empty: new pods would resolve no names of the cluster (currently ${then.join(', ')})`;
  if (dnsServices === null) return null;
  const answers = (address: string): boolean => dnsServices.some((service) => isSameAddress(service, address)) || isLinkLocal(address);
  if (!then.some((address) => answers(address)) || now.some((address) => answers(address))) return null;
  const why = `clusterDNS ${now.join(', ')} is neither a link-local address nor a Service of kube-system with port 53 (currently ${then.join(', ')})`;
  return `${why}: new pods would resolve no names of the cluster`;
}

function domainRisks({ before, after }: RiskInput): readonly PodRisk[] {
  const path = 'clusterDomain';
  if (before === null) return [];
  const [then, now] = [textAt(before, path), textAt(after, path)];
  if (then === now || then === '') return [];
  const why = `clusterDomain changes from ${then} to ${now || 'nothing'}: if the DNS of the cluster still serves ${then}, new pods cannot resolve short names of Services`;
  return [warning(path, why)];
}

function isLinkLocal(text: string): boolean {
  const address = parseIp(text);
  return address !== null && LINK_LOCAL.some((network) => cidrContains(network, address));
}
