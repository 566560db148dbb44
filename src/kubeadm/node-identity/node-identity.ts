import { verify } from 'node:crypto';
import type { Problem } from '../../base/errors.ts';
import { formatIp, parseIp } from '../../base/text/ip.ts';
import { printable } from '../../base/text/printable.ts';
import type { NodeClaim } from '../../host/node-claim.ts';
import type { KubeObject } from '../../kube/object.ts';
import { NODE_USER_PREFIX, NODES_GROUP_NAME } from '../../kube/well-known.ts';
import type { NodeEvidence } from '../../kubelet/facts/node-evidence.ts';
import { chainsTo } from '../../x509/certificate-checks.ts';
import { type CertificateContent, readCertificate } from '../../x509/read-certificate.ts';
import {
  machineIdEmpty,
  machineIdMissing,
  machineIdShared,
  type NodeProofFailure,
  nodeAddressMismatch,
  nodeClaimedTwice,
  nodeNameConflict,
  nodeNotProven,
  nodeOfAnotherHost,
} from './node-identity-problems.ts';

/** Whether a host proved which Node its kubelet is. */
export type NodeProof =
  | { readonly kind: 'proven'; readonly nodeName: string }
  | (NodeProofFailure & {
      readonly kind: 'unproven';
      /** The Node name in an unverified certificate: sufficient to reject a contradiction, never to act on. */
      readonly claimed: string | null;
    });

/** Tolerated clock difference between the local host and the signer of a new certificate. */
const CLOCK_SKEW_MS = 3_600_000;
/** RFC 1123 subdomain: a valid Node name. */
const NODE_NAME = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/**
 * The text that a host signs with the key of its kubelet. Its prefix states the purpose, so that the
 * signature is valid for nothing else.
 * @param nonce unpredictable and never reused
 */
export function challengeOf(nonce: string): string {
  return `kubeletadm: which Node is this host? ${nonce}`;
}

/**
 * Verifies which Node the kubelet of a host is: a CA of the cluster issued its client certificate for
 * `system:node:NAME` in `system:nodes`, the certificate is valid for client authentication now, and the host signed the
 * challenge with its key.
 * @see kubernetes/kubernetes pkg/apis/certificates/helpers.go ValidateKubeletClientCSR, for subject and usage (1.36)
 */
export function proveNode(
  { certificate: pem, source, signature, errorOutput, lacksOpenssl = false }: NodeEvidence,
  rules: {
    /** CAs that the API server accepts for client certificates. */
    readonly cas: readonly CertificateContent[];
    /** The text that the host had to sign. */
    readonly challenge: string;
    /** Time of the local host: the clock of the host is not trusted. */
    readonly now: Date;
    /** Accept an expired certificate, since it is about to be renewed. */
    readonly acceptsExpired?: boolean | undefined;
  },
): NodeProof {
  const where = printable(source ?? '');
  const certificate = pem === null ? null : readCertificate(pem);
  const claimed = certificate === null ? null : nodeOfSubject(certificate);
  const unproven = (cause: NodeProofFailure['cause'], why: string): NodeProof => ({ kind: 'unproven', cause, why, claimed });
  if (pem === null) return unproven('missing', `the host has no kubelet client certificate${source === null ? '' : ` in ${where}`}`);
  const its = `the kubelet client certificate in ${where}`;
  if (certificate === null) return unproven('missing', `${its} is damaged`);
  if (claimed === null) return unproven('missing', `${its} does not authenticate a user system:node:NAME in the group system:nodes`);
  if (rules.cas.length === 0)
    return unproven('no-ca', `${its} cannot be verified: neither the cluster nor the kubeconfig contains a CA for client certificates`);
  const now = rules.now.getTime();
  const isOver = ({ notAfter }: CertificateContent): boolean => rules.acceptsExpired !== true && notAfter.getTime() < now;
  const isEarly = ({ notBefore }: CertificateContent): boolean => notBefore.getTime() > now + CLOCK_SKEW_MS;
  const issuers = rules.cas.filter((ca) => !isOver(ca) && !isEarly(ca));
  if (!issuers.some((ca) => chainsTo(certificate, [], ca)))
    return unproven('untrusted', `${its} names ${claimed} but is not signed by the cluster CA`);
  if (isEarly(certificate)) return unproven('expired', `${its} is not valid before ${certificate.notBefore.toISOString()}`);
  if (isOver(certificate)) return unproven('expired', `${its} expired on ${certificate.notAfter.toISOString()}`);
  if (!certificate.extKeyUsage.includes('TLS Web Client Authentication'))
    return unproven('untrusted', `${its} does not allow client authentication`);
  if (signature === null && lacksOpenssl)
    return unproven(
      'no-openssl',
      'openssl is not installed on the host: cannot check that the host has the private key of its kubelet client certificate',
    );
  if (signature !== null && isSignedBy(certificate, rules.challenge, signature)) return { kind: 'proven', nodeName: claimed };
  const reported = signature === null && errorOutput !== null ? ` (${printable(errorOutput)})` : '';
  return unproven('no-key', `${its} names ${claimed}, but the host does not hold its private key${reported}`);
}

/** The Node that a client certificate authenticates; null: none. */
export function nodeOfSubject({ subject }: CertificateContent): string | null {
  const of = (type: string): readonly string[] => subject.filter((part) => part.type === type).map(({ value }) => value);
  const [commonName = '', ...more] = of('CN');
  const [organization, ...others] = of('O');
  const name = commonName.startsWith(NODE_USER_PREFIX) ? commonName.slice(NODE_USER_PREFIX.length) : '';
  const isNode = more.length + others.length === 0 && organization === NODES_GROUP_NAME && NODE_NAME.test(name);
  return isNode ? name : null;
}

function isSignedBy({ x509 }: CertificateContent, challenge: string, signature: Uint8Array): boolean {
  try {
    return verify('sha256', Buffer.from(challenge, 'utf8'), x509.publicKey, signature);
  } catch {
    return false;
  }
}

/**
 * The Node that a host claims: the proven one, or the one that the operator named. Unverified statements of
 * the host (hostname, flags, settings, certificate text) are never sufficient.
 * @param input.named given by the operator: `--node-name` or the fleet file; null: not given
 * @param input.nameHint how the operator names the Node, for hints
 * @returns NODE_NOT_PROVEN where the host proved no Node and none was named, NODE_NAME_CONFLICT where the
 *   certificate is for another Node than the named one
 */
export function claimNode({
  host,
  proof,
  named,
  evidence: { machineId },
  nameHint,
}: {
  readonly host: string;
  readonly proof: NodeProof;
  readonly named: string | null;
  readonly evidence: NodeEvidence;
  readonly nameHint: string;
}): NodeClaim | Problem {
  const certified = proof.kind === 'proven' ? proof.nodeName : proof.claimed;
  if (named !== null && certified !== null && certified !== named) return nodeNameConflict(host, { named, certified });
  if (proof.kind === 'proven') return { nodeName: proof.nodeName, isProven: true, machineId };
  if (named !== null) return { nodeName: named, isProven: false, machineId };
  return nodeNotProven(host, proof, nameHint);
}

/**
 * Checks the claim of a host against the registered Node.
 * - Proven: the machine-ids must not contradict each other, and the host must have one.
 * - Named: host and Node must have the same machine-id and share an address. The host controls both values,
 *   so they only protect the operator from mistakes. Any address of the host counts, since port forwarding,
 *   NAT and jump hosts change the address of the connection.
 * @param node null: not registered, so nothing can be compared
 * @param needsAddresses unknown addresses are a mismatch
 */
export function validateClaim(
  host: string,
  {
    claim: { nodeName, isProven },
    evidence,
    node,
    needsAddresses = false,
  }: {
    readonly claim: NodeClaim;
    readonly evidence: Pick<NodeEvidence, 'machineId' | 'addresses'>;
    readonly node: KubeObject | null;
    readonly needsAddresses?: boolean;
  },
): readonly Problem[] {
  if (evidence.machineId === '' && (isProven || node !== null)) return [machineIdEmpty(host)];
  if (node === null) return [];
  const { nodeInfo = {} } = (node.status ?? {}) as { readonly nodeInfo?: { readonly machineID?: string } };
  const theirs = nodeInfo.machineID ?? '';
  if (theirs === '') return isProven ? [] : [machineIdMissing(host, nodeName)];
  if (theirs !== evidence.machineId)
    return [nodeOfAnotherHost(host, { nodeName, theirs: printable(theirs, 64), own: printable(evidence.machineId, 64) })];
  if (isProven) return [];
  const [known, own] = [addressesOf(node), (evidence.addresses ?? []).map(canonical)];
  const isUnknown = known.length === 0 || own.length === 0;
  return (isUnknown && !needsAddresses) || own.some((address) => known.includes(address))
    ? []
    : [nodeAddressMismatch(host, { nodeName, known, own })];
}

function addressesOf({ status = {} }: KubeObject): readonly string[] {
  const { addresses = [] } = status as { readonly addresses?: readonly { readonly type?: string; readonly address?: string }[] };
  return addresses.flatMap(({ type, address }) => (type === 'InternalIP' || type === 'ExternalIP' ? [canonical(address ?? '')] : []));
}

function canonical(address: string): string {
  const parsed = parseIp(address);
  return parsed === null ? printable(address, 64) : formatIp(parsed);
}

/**
 * Checks whether two hosts of a run conflict: both claim the same Node, or both have the same machine-id
 * (cloned disk) and at least one of them did not prove its Node.
 * @returns null: no conflict
 */
export function nodeClaimConflict(
  host: string,
  own: NodeClaim,
  other: { readonly host: string; readonly claim: NodeClaim },
): Problem | null {
  const { claim } = other;
  if (own.nodeName === claim.nodeName) return nodeClaimedTwice(host, { nodeName: own.nodeName, other: other.host });
  const isShared = own.machineId !== null && own.machineId !== '' && own.machineId === claim.machineId;
  return isShared && !(own.isProven && claim.isProven) ? machineIdShared(host, other.host) : null;
}
