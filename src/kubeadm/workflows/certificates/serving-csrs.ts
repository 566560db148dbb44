import { AppError, isAppError } from '../../../base/errors.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { CLIENT_SIGNER, CSRS, type NodeCsr, readNodeCsr, SERVING_SIGNER } from '../../node-identity/node-csr.ts';
import {
  type KnownNames,
  type ServingFacts,
  type ServingVerdict,
  servingFacts,
  servingNode,
  validateServingCsr,
} from '../../node-identity/validate-serving-csr.ts';
import { readReservedNames } from '../node/reserved-names-of.ts';

/** A CSR of a kubelet and the result of its checks. */
export interface ValidatedCsr {
  readonly csr: NodeCsr;
  readonly object: KubeObject;
  /** Of a CSR for a client certificate: no SANs, and the signer as the refusal. */
  readonly verdict: ServingVerdict;
}

export interface ServingSources {
  /** Names and addresses of nodes from sources other than their Nodes. */
  readonly known?: readonly KnownNames[];
  /** Further names of the API server; see `readReservedNames`. */
  readonly serverNames?: readonly string[];
}

/**
 * The CSRs of kubelets, oldest first. CSRs for serving certificates are checked against the reserved names of the
 * cluster and all Nodes, which are listed once.
 * @throws AppError CLUSTER_ANSWER_INVALID, and the errors of `Cluster` and `readReservedNames`
 */
export async function listKubeletCsrs(
  cluster: Cluster,
  { known = [], serverNames = [] }: ServingSources = {},
): Promise<readonly ValidatedCsr[]> {
  const { items } = await cluster.list(CSRS);
  const found = items.map((object) => ({ object: { ...CSRS, ...object }, csr: readNodeCsr(object) }));
  const ours = found.filter(({ csr }) => csr.signerName === SERVING_SIGNER || csr.signerName === CLIENT_SIGNER);
  const facts = ours.some(isPendingServing) ? await readFacts(cluster, { known, serverNames }) : NO_FACTS;
  const validated = ours.map((one) => ({ ...one, verdict: validateServingCsr(one.csr, facts) }));
  return validated.toSorted((a, b) => a.csr.created.getTime() - b.csr.created.getTime() || (a.csr.name < b.csr.name ? -1 : 1));
}

/** Whether a CSR is for a serving certificate and neither approved nor denied. */
export function isPendingServing({ csr }: Pick<ValidatedCsr, 'csr'>): boolean {
  return csr.signerName === SERVING_SIGNER && csr.state.kind === 'pending';
}

/** Used if no pending CSR for a serving certificate exists: the other CSRs are refused before their SANs are checked. */
const NO_FACTS = servingFacts({ clusterDomain: '', serviceSubnets: [], podSubnets: [], services: new Map(), apiServer: new Map() }, [], []);

async function readFacts(cluster: Cluster, { known, serverNames }: Required<ServingSources>): Promise<ServingFacts> {
  const [reserved, nodes] = await Promise.all([readReservedNames(cluster, serverNames), cluster.list({ apiVersion: 'v1', kind: 'Node' })]);
  return servingFacts(reserved, nodes.items.map(servingNode), known);
}

/** SANs that only the Node status confirms, which the requesting kubelet writes itself. */
export function unconfirmedSans({ verdict }: Pick<ValidatedCsr, 'verdict'>): readonly string[] {
  return verdict.sans.filter(({ independent }) => !independent).map(({ san }) => san);
}

/**
 * Approves the checked version of a CSR: the approval fails if the CSR has changed since.
 * @throws AppError CLUSTER_CONFLICT, CLUSTER_FORBIDDEN with the missing permissions
 */
export async function approveCsr(cluster: Cluster, { object, csr }: ValidatedCsr): Promise<void> {
  const { conditions = [] } = (object.status ?? {}) as { readonly conditions?: readonly object[] };
  const approved = {
    type: 'Approved',
    status: 'True',
    reason: 'KubeletServingChecked',
    message: 'kubeletadm checked the requester, the subject, the usages and every SAN',
  };
  const { resourceVersion } = object.metadata;
  const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
  const patch = { ...metadata, status: { conditions: [...conditions, approved] } };
  try {
    await cluster.patch({ ...CSRS, name: csr.name }, 'merge', patch as never, { subresource: 'approval' });
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
    const hint = `Use credentials with these permissions: update certificatesigningrequests/approval; approve for the signer ${SERVING_SIGNER}`;
    throw new AppError(
      error.problems.map((problem) => ({ ...problem, hint })),
      { cause: error },
    );
  }
}
