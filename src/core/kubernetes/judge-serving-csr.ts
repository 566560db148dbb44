import { formatIp, parseIp } from '../text/ip.ts';
import { kubeletRequestTrouble, type NodeCsr, nodeOfRequest, SERVING_SIGNER } from './node-csr.ts';
import type { KubeObject } from './object.ts';

/** By what a node may call itself. */
export interface KnownNames {
  readonly names: readonly string[];
  readonly addresses: readonly string[];
  /** Where that is known from, for messages: `Node w1`, `host w1`. */
  readonly source: string;
}

/**
 * What a Node says of itself. Its kubelet wrote it: whoever took over a node may have put there what he likes, so a look at the host itself is worth more.
 */
export function namesOfNode(node: KubeObject): KnownNames {
  const { addresses = [] } = (node.status ?? {}) as {
    readonly addresses?: readonly { readonly type?: string; readonly address?: string }[];
  };
  const of = (...types: readonly string[]): readonly string[] =>
    addresses.flatMap(({ type = '', address }) => (types.includes(type) && address !== undefined ? [address] : []));
  return {
    names: [node.metadata.name, ...of('Hostname', 'InternalDNS', 'ExternalDNS')],
    addresses: of('InternalIP', 'ExternalIP'),
    source: `Node ${node.metadata.name}`,
  };
}

/** What several hosts have is none's own: an address of a bridge that each of them has, or one that moves from host to host. */
export function withoutShared(known: readonly KnownNames[]): readonly KnownNames[] {
  const count = new Map<string, number>();
  for (const address of known.flatMap(({ addresses }) => [...new Set(addresses)])) count.set(address, (count.get(address) ?? 0) + 1);
  return known.map((one) => ({ ...one, addresses: one.addresses.filter((address) => count.get(address) === 1) }));
}

/**
 * What speaks against approving a request for a serving certificate; empty: nothing.
 * @param known of the node the request names; null when there is no such node
 */
export function judgeServingCsr(csr: NodeCsr, known: KnownNames | null): readonly string[] {
  if (csr.signerName !== SERVING_SIGNER) return [`it is for the signer ${csr.signerName}, not for ${SERVING_SIGNER}`];
  const { state } = csr;
  if (state.kind !== 'pending') return [`it is ${state.kind} already`];
  const trouble = kubeletRequestTrouble(csr);
  if (trouble !== null) return [trouble];
  const node = nodeOfRequest(csr) as string;
  const { dnsNames = [], ipAddresses = [], otherSubject = [] } = csr.request ?? {};
  const found: string[] = [];
  if (csr.username !== `system:node:${node}`) found.push(`${csr.username} asks for a certificate of system:node:${node}`);
  if (!csr.groups.includes('system:nodes')) found.push(`who asks is not in the group system:nodes (${csr.groups.join(', ')})`);
  if (otherSubject.length > 0) found.push(`its subject holds more than a node's: ${otherSubject.join(', ')}`);
  if (known === null) return [...found, `there is no Node ${node}`];
  const names = new Set(known.names.map((name) => name.toLowerCase()));
  const addresses = new Set(known.addresses.map(canonical));
  const foreign = [
    ...dnsNames.filter((name) => !names.has(name.toLowerCase())),
    ...ipAddresses.filter((address) => !addresses.has(canonical(address))),
  ];
  const has = [...new Set([...known.names, ...known.addresses])].join(', ');
  return foreign.length === 0 ? found : [...found, `it asks for ${foreign.join(', ')}, and ${known.source} has only ${has || 'no names'}`];
}

function canonical(address: string): string {
  const parsed = parseIp(address);
  return parsed === null ? address : formatIp(parsed);
}
