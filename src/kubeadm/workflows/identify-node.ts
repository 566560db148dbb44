import { AppError, type Problem } from '../../base/errors.ts';
import { observe } from '../../host/observe.ts';
import type { NodeClaim } from '../../host/own-claim.ts';
import type { PhaseContext } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { KubeObject } from '../../kube/object.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { type NodeEvidence, nodeEvidence } from '../../kubelet/facts/node-evidence.ts';
import { type CertificateContent, readCertificateChain } from '../../x509/read-certificate.ts';
import { challengeOf, claimNode, type NodeProof, proveNode, validateClaim } from '../node-identity.ts';
import { nodeNameConflict } from '../node-identity-problems.ts';
import type { OwnNodeCheck } from '../phases/own-node.ts';
import { unlessForbidden } from './cluster-baseline.ts';

/** What tells in a run which Node a host is. */
export interface NodeTrust {
  /** CAs that the API server accepts client certificates of; read once in a run. Empty: none is known. */
  authorities(): Promise<readonly CertificateContent[]>;
  /** Unpredictable text that was never used before. */
  newNonce(): Promise<string>;
  /** How the operator names the Node of a host, as the rest of "Install openssl on the host, or …". */
  readonly nameHint: string;
}

export interface NodeTrustOptions {
  /** With the credentials of the operator. */
  readonly cluster: Cluster;
  /** Of the operator's kubeconfig; null: it has none. */
  readonly caPem: string | null;
  /** 16 unpredictable hexadecimal digits. */
  readonly newId: () => Promise<string>;
  readonly nameHint: string;
}

const CLIENT_CA = { apiVersion: 'v1', kind: 'ConfigMap', namespace: KUBE_SYSTEM, name: 'extension-apiserver-authentication' } as const;

/**
 * The CAs of client certificates are those that the API server publishes in the ConfigMap
 * kube-system/extension-apiserver-authentication (`client-ca-file`); where the credentials may not read it,
 * or it has none, the CA of the kubeconfig: with kubeadm it is the same.
 */
export function nodeTrust({ cluster, caPem, newId, nameHint }: NodeTrustOptions): NodeTrust {
  let asked: Promise<readonly CertificateContent[]> | null = null;
  const read = async (): Promise<readonly CertificateContent[]> => {
    const found = await unlessForbidden(cluster.get(CLIENT_CA));
    const published = (found?.data as Readonly<Record<string, unknown>> | undefined)?.['client-ca-file'];
    return readCertificateChain(typeof published === 'string' && published.trim() !== '' ? published : (caPem ?? '')) ?? [];
  };
  return {
    authorities: async () => {
      asked ??= read();
      try {
        return await asked;
      } catch (error) {
        // The next host asks again.
        asked = null;
        throw error;
      }
    },
    newNonce: async () => (await newId()) + (await newId()),
    nameHint,
  };
}

/** A host whose Node is wanted. */
export interface NodeToIdentify {
  readonly trust: NodeTrust;
  /** The name that the operator gave; null: none. */
  readonly named: string | null;
  /** A certificate that has expired counts: it is about to be renewed. */
  readonly acceptsExpired?: boolean;
  /** kubeconfig of the kubelet; default /etc/kubernetes/kubelet.conf. */
  readonly kubeconfig?: string | undefined;
  /** The Node that something is to be done for, by whatever name the host goes: another one is refused. */
  readonly expected?: string | undefined;
}

/** The Node of a host, as far as something may be done in the cluster for it. */
export interface IdentifiedNode {
  readonly proof: NodeProof;
  /** Null: refused. */
  readonly claim: NodeClaim | null;
  /** The object; null: it is not registered, or the host was refused before. */
  readonly node: KubeObject | null;
  /** Why nothing may be done in the cluster because of this host; empty: nothing speaks against it. */
  readonly refusals: readonly Problem[];
}

/** The question to a host that belongs to one look, and what its answer is verified by. */
export interface NodeChallenge {
  readonly challenge: string;
  readonly fact: ReturnType<typeof nodeEvidence>;
}

/**
 * A challenge for one look at a host: `fact` is asked along with whatever else is asked, and `identifyBy`
 * judges the answer.
 */
export async function challengeHost({ trust, kubeconfig }: Pick<NodeToIdentify, 'trust' | 'kubeconfig'>): Promise<NodeChallenge> {
  const challenge = challengeOf(await trust.newNonce());
  return { challenge, fact: nodeEvidence({ challenge, kubeconfig }) };
}

/**
 * Which Node the host of a look is. Whatever is done in the cluster for a Node because of a host is done for
 * this one, and not where there are refusals: see docs/joining.md, "How a host is matched to its Node".
 * @param context `cluster` is asked for the Node, with the credentials of the operator
 * @throws what `Cluster.get` throws
 */
export async function identifyBy(
  { host, cluster, clock }: Pick<PhaseContext, 'host' | 'cluster' | 'clock'>,
  { challenge, evidence }: { readonly challenge: string; readonly evidence: NodeEvidence },
  { trust, named, acceptsExpired, expected }: NodeToIdentify,
): Promise<IdentifiedNode> {
  const proof = proveNode(evidence, { authorities: await trust.authorities(), challenge, now: clock.now(), acceptsExpired });
  const name = named?.trim().toLowerCase() ?? null;
  const claim = claimNode({ host: host.name, proof, named: name, evidence, nameHint: trust.nameHint });
  if ('code' in claim) return { proof, claim: null, node: null, refusals: [claim] };
  if (expected !== undefined && claim.nodeName !== expected) {
    const conflict = nodeNameConflict(host.name, { named: expected, certified: claim.nodeName, nameHint: trust.nameHint });
    return { proof, claim, node: null, refusals: [conflict] };
  }
  const node = (await cluster?.get({ apiVersion: 'v1', kind: 'Node', name: claim.nodeName })) ?? null;
  return { proof, claim, node, refusals: validateClaim(host.name, { claim, evidence, node }) };
}

/** The same with a look of its own: one round trip to the host. */
export async function identifyNode(
  context: Pick<PhaseContext, 'host' | 'cluster' | 'clock' | 'signal'>,
  node: NodeToIdentify,
): Promise<IdentifiedNode> {
  const { challenge, fact } = await challengeHost(node);
  const evidence = await observe(context.host, fact, context.signal);
  return identifyBy(context, { challenge, evidence }, node);
}

/**
 * The check of a phase that changes a Node after its kubelet has joined: by then the host has a certificate
 * that the cluster issued.
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
