import * as z from 'zod';
import type { Problem } from '../../base/errors.ts';
import { type Cidr, hostBits, type IpAddress, parseCidr, parseIp } from '../../base/text/ip.ts';
import { CONTROL_PLANE_LABEL } from '../../kube/node-marks.ts';
import type { KubeObject } from '../../kube/object.ts';
import { readObject } from '../../kube/read-object.ts';
import { NODES_GROUP_NAME } from '../../kube/well-known.ts';
import { canonicalName, dnsSan, invalidDnsName, ipSan, printableName, type San } from '../pki/san.ts';
import { type NodeCsr, nodeOfCsr, SERVING_SIGNER, signerRejectionReason } from './node-csr.ts';
import { type ReservedNames, reservedReason } from './reserved-names.ts';

/** Names and addresses of one node from a source other than its Node object: a fleet file or the host. */
export interface KnownNames {
  readonly node: string;
  readonly values: readonly string[];
  /** Source for messages: `fleet.yaml:12`, `host node2`. */
  readonly source: string;
}

/** The parts of a registered Node that matter for serving certificates. */
export interface ServingNode {
  readonly name: string;
  /** From the label that NodeRestriction forbids the kubelet to set. */
  readonly isControlPlane: boolean;
  /** DNS names and addresses in the status of the Node, which the kubelet writes. */
  readonly statusAddresses: readonly string[];
  readonly podCidrs: readonly Cidr[];
}

/** States that a name or an address belongs to a Node, according to a source. */
interface Claim {
  readonly node: string;
  readonly source: string;
  /** False for the Node status, which the requesting kubelet writes. */
  readonly independent: boolean;
}

/** The data that serving certificates are checked against; see `servingFacts`. */
export interface ServingFacts {
  readonly reserved: ReservedNames;
  readonly nodes: ReadonlyMap<string, ServingNode>;
  /** By name or address, in the form of `canonicalName`. */
  readonly claims: ReadonlyMap<string, readonly Claim[]>;
  /** Known names and addresses by Node name. */
  readonly knownValues: ReadonlyMap<string, ReadonlySet<string>>;
  /** Node by pod CIDR, with `podCidrKey` as the key. */
  readonly podCidrs: ReadonlyMap<string, string>;
  /** The host-part lengths of the pod CIDRs, in bits. */
  readonly podCidrBits: readonly number[];
}

interface CsrRefusal {
  /**
   * CSR_RESERVED_NAME: name of the API server, a Service or a Pod. CSR_NAME_OF_ANOTHER_NODE: another Node or
   * host has the same name. CSR_FOREIGN_NAME: not known for the node. CSR_INVALID_NAME: not a DNS name.
   * CSR_REFUSED: any issue other than the SANs.
   */
  readonly code: 'CSR_REFUSED' | 'CSR_RESERVED_NAME' | 'CSR_NAME_OF_ANOTHER_NODE' | 'CSR_FOREIGN_NAME' | 'CSR_INVALID_NAME';
  readonly message: string;
}

export interface ServingVerdict {
  /** Empty: every check passed. */
  readonly refusals: readonly CsrRefusal[];
  /**
   * Each SAN, escaped for printing (`DNS:node2`), with the sources that confirm it for the node, the strongest first.
   * `independent`: at least one of them is not written by the kubelet.
   */
  readonly sans: readonly { readonly san: string; readonly sources: readonly string[]; readonly independent: boolean }[];
}

/** More SANs than any kubelet requests. */
const MAX_SANS = 64;

const NODE = z.object({
  metadata: z.object({ name: z.string(), labels: z.record(z.string(), z.string()).nullish() }),
  spec: z.object({ podCIDR: z.string().nullish(), podCIDRs: z.array(z.string()).nullish() }).nullish(),
  status: z.object({ addresses: z.array(z.object({ address: z.string() })).nullish() }).nullish(),
});

/**
 * Reads the parts of a Node object that matter for serving certificates.
 * @throws AppError CLUSTER_ANSWER_INVALID when a member has the wrong type
 */
export function servingNode(object: KubeObject): ServingNode {
  const { metadata, spec, status } = readObject(NODE, object);
  const podCidrs = new Set([spec?.podCIDR ?? '', ...(spec?.podCIDRs ?? [])]);
  return {
    name: metadata.name,
    isControlPlane: Object.hasOwn(metadata.labels ?? {}, CONTROL_PLANE_LABEL),
    statusAddresses: (status?.addresses ?? []).map(({ address }) => address),
    podCidrs: [...podCidrs].flatMap((text) => parseCidr(text) ?? []),
  };
}

/**
 * Prepares the checks in one pass over all Nodes.
 * @param known sources other than the Nodes; entries for unregistered Nodes are ignored
 */
export function servingFacts(reserved: ReservedNames, nodes: readonly ServingNode[], known: readonly KnownNames[]): ServingFacts {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const claims = new Map<string, Claim[]>();
  const knownValues = new Map<string, Set<string>>(nodes.map(({ name }) => [name, new Set()]));
  const add = (value: string, claim: Claim): void => {
    const key = canonicalName(value);
    const sameValue = claims.get(key);
    if (sameValue === undefined) claims.set(key, [claim]);
    else sameValue.push(claim);
    knownValues.get(claim.node)?.add(key);
  };
  // A kubelet may choose its own Node name, so a Node name that is an IP address proves nothing.
  for (const { name } of nodes) add(name, { node: name, source: `name of Node ${name}`, independent: parseIp(name) === null });
  for (const { node, values, source } of known)
    if (byName.has(node)) for (const value of new Set(values)) add(value, { node, source, independent: true });
  for (const { name, statusAddresses } of nodes)
    for (const value of new Set(statusAddresses)) add(value, { node: name, source: `status of Node ${name}`, independent: false });
  const cidrs = nodes.flatMap(({ name, podCidrs }) => podCidrs.map((cidr) => ({ name, cidr })));
  return {
    reserved,
    nodes: byName,
    claims,
    knownValues,
    podCidrs: new Map(cidrs.map(({ name, cidr }) => [podCidrKey(cidr.address, hostBits(cidr)), name])),
    podCidrBits: [...new Set(cidrs.map(({ cidr }) => hostBits(cidr)))],
  };
}

/**
 * Checks a CSR for a kubelet serving certificate: signer, state, requester, subject and usages, and that
 * every SAN belongs to the requesting node only. Since the requesting kubelet writes the status of its Node,
 * a SAN is rejected regardless of its sources when it is reserved, when another Node has it too, or when it
 * is a DNS name other than the Node name or `NODE_NAME.DOMAIN`.
 */
export function validateServingCsr(csr: NodeCsr, facts: ServingFacts): ServingVerdict {
  const sans = sansOf(csr);
  const node = nodeOfCsr(csr);
  const known = node === null ? undefined : facts.nodes.get(node);
  const other = refuseOtherThanSans(csr, node, known !== undefined, sans.length);
  if (known === undefined || sans.length > MAX_SANS) return { refusals: other, sans: [] };
  const refusals = sans.flatMap((san) => refuseSan(san, known, facts) ?? []);
  return {
    refusals: [...other, ...refusals],
    sans: sans.map((san) => {
      const claims = claimsOf(san, known.name, facts);
      return { san: san.shown, sources: claims.map(({ source }) => source), independent: claims.some(({ independent }) => independent) };
    }),
  };
}

export function csrProblems(name: string, refusals: readonly CsrRefusal[]): readonly Problem[] {
  const hint = `See: kubectl describe csr ${name}. To reject the CSR: kubectl certificate deny ${name}`;
  return refusals.map(({ code, message }) => ({ code, message: `${name} is not approved: ${message}`, hint }));
}

function sansOf({ request }: NodeCsr): readonly San[] {
  return [...(request?.dnsNames ?? []).map(dnsSan), ...(request?.ipAddresses ?? []).map(ipSan)];
}

function refuseOtherThanSans(csr: NodeCsr, node: string | null, registered: boolean, sanCount: number): readonly CsrRefusal[] {
  const refused = (message: string): CsrRefusal => ({ code: 'CSR_REFUSED', message });
  if (csr.signerName !== SERVING_SIGNER) return [refused(`the signer is ${printableName(csr.signerName)}, not ${SERVING_SIGNER}`)];
  if (csr.state.kind !== 'pending') return [refused(`the CSR is already ${csr.state.kind}`)];
  const issue = signerRejectionReason(csr);
  if (issue !== null || node === null) return [refused(issue ?? 'the common name is not system:node:NAME')];
  const { otherSubject = [] } = csr.request ?? {};
  const found: CsrRefusal[] = [];
  const name = printableName(node);
  if (csr.username !== `system:node:${node}`)
    found.push(refused(`the requester is ${printableName(csr.username)}, but the certificate is for system:node:${name}`));
  if (!csr.groups.includes(NODES_GROUP_NAME))
    found.push(refused(`the requester is not in the group system:nodes (${csr.groups.map(printableName).join(', ')})`));
  if (otherSubject.length > 0)
    found.push(refused(`the subject contains more than a common name and an organization: ${otherSubject.join(', ')}`));
  if (sanCount > MAX_SANS) found.push(refused(`the CSR has ${sanCount} SANs, more than ${MAX_SANS}`));
  if (!registered) found.push(refused(`Node ${name} does not exist`));
  return found;
}

/** The first rule that a SAN violates. */
function refuseSan(san: San, node: ServingNode, facts: ServingFacts): CsrRefusal | null {
  const invalid = san.kind === 'DNS' ? invalidDnsName(san.written) : null;
  if (invalid !== null) return { code: 'CSR_INVALID_NAME', message: `${san.shown} ${invalid}` };
  const reserved = reservedReason(san, facts.reserved, node.isControlPlane) ?? inPodCidrOfAnother(san, node, facts);
  if (reserved !== null) return { code: 'CSR_RESERVED_NAME', message: `${san.shown} ${reserved}` };
  const others = (facts.claims.get(san.value) ?? []).filter((claim) => claim.node !== node.name);
  const owner = san.kind === 'DNS' ? nodeOfDnsName(san.value, facts.nodes) : node.name;
  if (others.length > 0 || (owner !== null && owner !== node.name)) {
    const sources = others.length > 0 ? others.map(({ source }) => source) : [`name of Node ${owner}`];
    return { code: 'CSR_NAME_OF_ANOTHER_NODE', message: `${san.shown} also belongs to: ${listed(sources)}` };
  }
  if (owner === null)
    return {
      code: 'CSR_FOREIGN_NAME',
      message: `${san.shown} is not a name of Node ${node.name}: expected ${node.name}, or ${node.name} followed by a domain`,
    };
  if (claimsOf(san, node.name, facts).length > 0) return null;
  return {
    code: 'CSR_FOREIGN_NAME',
    message: `${san.shown} is not a name or address of Node ${node.name}; its known names and addresses are ${listed([...(facts.knownValues.get(node.name) ?? [])].map(printableName))}`,
  };
}

function claimsOf(san: San, node: string, { claims }: ServingFacts): readonly Claim[] {
  return (claims.get(san.value) ?? []).filter((claim) => claim.node === node);
}

/** The Node with the longest name that equals the DNS name or is its prefix before a dot; null: none. */
function nodeOfDnsName(name: string, nodes: ReadonlyMap<string, unknown>): string | null {
  for (let start = name; start !== ''; start = start.slice(0, Math.max(start.lastIndexOf('.'), 0))) if (nodes.has(start)) return start;
  return null;
}

function inPodCidrOfAnother({ kind, value }: San, { name }: ServingNode, { podCidrs, podCidrBits }: ServingFacts): string | null {
  const address = kind === 'IP' ? parseIp(value) : null;
  if (address === null) return null;
  for (const bits of podCidrBits) {
    const owner = podCidrs.get(podCidrKey(address, bits));
    if (owner !== undefined && owner !== name) return `is an address in a pod CIDR of Node ${owner}`;
  }
  return null;
}

/** The network of an address with a host part of this many bits. */
function podCidrKey({ family, value }: IpAddress, bits: number): string {
  return `${family} ${bits} ${value >> BigInt(bits)}`;
}

const MAX_LISTED = 8;

function listed(items: readonly string[]): string {
  const more = items.length - MAX_LISTED;
  return more <= 0 ? items.join(', ') : `${items.slice(0, MAX_LISTED).join(', ')} and ${more} more`;
}
