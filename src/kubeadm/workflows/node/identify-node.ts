import { AppError, type Problem } from '../../../base/errors.ts';
import { observe } from '../../../host/access/observe.ts';
import type { NodeClaim } from '../../../host/node-claim.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { KUBE_SYSTEM } from '../../../kube/well-known.ts';
import { type NodeEvidence, nodeEvidence } from '../../../kubelet/facts/node-evidence.ts';
import { type CertificateContent, readCertificateChain } from '../../../x509/read-certificate.ts';
import { challengeOf, claimNode, type NodeProof, proveNode, validateClaim } from '../../node-identity/node-identity.ts';
import { nodeNameConflict } from '../../node-identity/node-identity-problems.ts';
import type { OwnNodeCheck } from '../../phases/mark-node.ts';
import { unlessForbidden } from './cluster-baseline.ts';

/** Input for identifying the Nodes of hosts in one run. */
export interface NodeTrust {
  /** CAs of client certificates that the API server accepts; read once per run. Empty: none is known. */
  cas(): Promise<readonly CertificateContent[]>;
  /** Unpredictable text, never used twice. */
  newNonce(): Promise<string>;
  /** How the operator names the Node of a host: the rest of the sentence "Install openssl on the host, or …". */
  readonly nameHint: string;
}

const CLIENT_CA = { apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: 'extension-apiserver-authentication' } as const;

/**
 * The CAs of client certificates are those that the API server publishes in ConfigMap
 * kube-system/extension-apiserver-authentication (`client-ca-file`). If the credentials may not read the ConfigMap, or
 * the key is missing, the CA of the kubeconfig is used: in a kubeadm cluster both are the same.
 */
export function nodeTrust({
  cluster,
  caPem,
  newId,
  nameHint,
}: {
  /** Connected with the operator's credentials. */
  readonly cluster: Cluster;
  /** CA of the operator's kubeconfig; null: it has none. */
  readonly caPem: string | null;
  /** 16 unpredictable hexadecimal digits. */
  readonly newId: () => Promise<string>;
  readonly nameHint: string;
}): NodeTrust {
  let asked: Promise<readonly CertificateContent[]> | null = null;
  const read = async (): Promise<readonly CertificateContent[]> => {
    const found = await unlessForbidden(cluster.get(CLIENT_CA));
    const published = (found?.data as Readonly<Record<string, unknown>> | undefined)?.['client-ca-file'];
    return readCertificateChain(typeof published === 'string' && published.trim() !== '' ? published : (caPem ?? '')) ?? [];
  };
  return {
    cas: async () => {
      asked ??= read();
      try {
        return await asked;
      } catch (error) {
        // A failed read is not cached: the next host retries.
        asked = null;
        throw error;
      }
    },
    newNonce: async () => (await newId()) + (await newId()),
    nameHint,
  };
}

/** A host whose Node is to be identified. */
interface NodeToIdentify {
  readonly trust: NodeTrust;
  /** Node name given by the operator; null: none. */
  readonly named: string | null;
  /** An expired certificate is accepted: it is about to be renewed. */
  readonly acceptsExpired?: boolean;
  /** kubeconfig of the kubelet; default /etc/kubernetes/kubelet.conf. */
  readonly kubeconfig?: string | undefined;
  /** The only Node that the run may change; a host of another Node is refused. */
  readonly expected?: string | undefined;
}

/** The Node of a host, and whether the run may change the Node. */
export interface IdentifiedNode {
  readonly proof: NodeProof;
  /** Null: refused. */
  readonly claim: NodeClaim | null;
  /** The Node object; null: it is not registered, or the host was refused first. */
  readonly node: KubeObject | null;
  /** Why the run must not change the cluster on behalf of this host; empty: it may. */
  readonly refusals: readonly Problem[];
}

/**
 * Creates a challenge for one observation of a host: query `fact` together with other facts, then pass the result to
 * `identifyBy`.
 */
export async function challengeHost({ trust, kubeconfig }: Pick<NodeToIdentify, 'trust' | 'kubeconfig'>): Promise<{
  readonly challenge: string;
  readonly fact: ReturnType<typeof nodeEvidence>;
}> {
  const challenge = challengeOf(await trust.newNonce());
  return { challenge, fact: nodeEvidence(challenge, kubeconfig) };
}

/**
 * Identifies the Node of an observed host. Changes in the cluster on behalf of the host must be limited to this Node,
 * and must not happen if `refusals` is not empty: see docs/joining.md, "How a host is matched to its Node".
 * @param context `cluster` reads the Node with the operator's credentials
 * @throws the errors of `Cluster.get`
 */
export async function identifyBy(
  { host, cluster, clock }: Pick<PhaseContext, 'host' | 'cluster' | 'clock'>,
  { challenge, evidence }: { readonly challenge: string; readonly evidence: NodeEvidence },
  { trust, named, acceptsExpired, expected }: NodeToIdentify,
): Promise<IdentifiedNode> {
  const proof = proveNode(evidence, { cas: await trust.cas(), challenge, now: clock.now(), acceptsExpired });
  const name = named?.trim().toLowerCase() ?? null;
  const claim = claimNode({ host: host.name, proof, named: name, evidence, nameHint: trust.nameHint });
  if ('code' in claim) return { proof, claim: null, node: null, refusals: [claim] };
  if (expected !== undefined && claim.nodeName !== expected) {
    const conflict = nodeNameConflict(host.name, { named: expected, certified: claim.nodeName });
    return { proof, claim, node: null, refusals: [conflict] };
  }
  const node = (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: claim.nodeName })) ?? null;
  return { proof, claim, node, refusals: validateClaim(host.name, { claim, evidence, node }) };
}

/** Observes the host (one round trip) and identifies its Node. */
export async function identifyNode(
  context: Pick<PhaseContext, 'host' | 'cluster' | 'clock' | 'signal'>,
  node: NodeToIdentify,
): Promise<IdentifiedNode> {
  const { challenge, fact } = await challengeHost(node);
  const evidence = await observe(context.host, fact, context.signal);
  return identifyBy(context, { challenge, evidence }, node);
}

/**
 * Check for a phase that changes a Node after its kubelet has joined: only then does the host have a certificate issued
 * by the cluster.
 */
export function ownNodeCheck(node: NodeToIdentify & { readonly expected: string }): OwnNodeCheck {
  let isDone = false;
  return {
    get isDone() {
      return isDone;
    },
    run: async (context) => {
      const { refusals } = await identifyNode(context, node);
      if (refusals.length > 0) throw new AppError(refusals);
      isDone = true;
    },
  };
}
