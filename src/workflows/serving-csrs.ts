import { AppError, isAppError, type Problem } from '../core/errors.ts';
import { judgeServingCsr, type KnownNames, namesOfNode } from '../core/kubernetes/judge-serving-csr.ts';
import { CLIENT_SIGNER, CSRS, type NodeCsr, nodeOfRequest, readNodeCsr, SERVING_SIGNER } from '../core/kubernetes/node-csr.ts';
import type { KubeObject } from '../core/kubernetes/object.ts';
import type { Cluster } from '../ports/cluster.ts';

/** A request of a kubelet with the verdict on it. `against` is empty when nothing speaks against approving it. */
export interface JudgedCsr {
  readonly csr: NodeCsr;
  readonly object: KubeObject;
  readonly against: readonly string[];
}

/** Nodes that were looked at themselves, by name: what is known of them goes before what their Node says. */
export type KnownNodes = ReadonlyMap<string, KnownNames>;

/**
 * The requests of kubelets, oldest first: those for serving certificates judged by what the cluster, or a look at the hosts, knows of the node.
 * @throws what `Cluster` throws
 */
export async function listKubeletCsrs(cluster: Cluster, known: KnownNodes = new Map()): Promise<readonly JudgedCsr[]> {
  const { items } = await cluster.list(CSRS);
  const found = items.map((object) => ({ object: { ...CSRS, ...object }, csr: readNodeCsr(object) }));
  const ours = found.filter(({ csr }) => csr.signerName === SERVING_SIGNER || csr.signerName === CLIENT_SIGNER);
  const nodes = new Map<string, KnownNames | null>(known);
  for (const { csr } of ours) {
    const name = nodeOfRequest(csr);
    if (csr.signerName !== SERVING_SIGNER || name === null || nodes.has(name)) continue;
    const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name });
    nodes.set(name, node === null ? null : namesOfNode(node));
  }
  const judged = ours.map(({ object, csr }) => ({
    object,
    csr,
    against: judgeServingCsr(csr, nodes.get(nodeOfRequest(csr) ?? '') ?? null),
  }));
  return judged.toSorted((a, b) => a.csr.created.getTime() - b.csr.created.getTime() || (a.csr.name < b.csr.name ? -1 : 1));
}

/**
 * Approves a request as it was judged: if it changed since, nothing is done.
 * @throws AppError CLUSTER_CONFLICT, CLUSTER_FORBIDDEN with what the credentials lack
 */
export async function approveCsr(cluster: Cluster, { object, csr }: JudgedCsr): Promise<void> {
  const { conditions = [] } = (object.status ?? {}) as { readonly conditions?: readonly object[] };
  const approved = {
    type: 'Approved',
    status: 'True',
    reason: 'KubeletServingChecked',
    message: 'kubeletadm checked who asks, the subject, the usages and every name',
  };
  const { resourceVersion } = object.metadata;
  const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
  const patch = { ...metadata, status: { conditions: [...conditions, approved] } };
  try {
    await cluster.patch({ ...CSRS, name: csr.name }, 'merge', patch as never, { subresource: 'approval' });
  } catch (error) {
    if (!isAppError(error, 'CLUSTER_FORBIDDEN')) throw error;
    const mend = `Approving needs update on certificatesigningrequests/approval and approve on the signer ${SERVING_SIGNER}`;
    throw new AppError(
      error.problems.map((problem) => ({ ...problem, mend })),
      { cause: error },
    );
  }
}

/** The refusal of a request, each reason a problem. */
export function refusalsOf({ csr, against }: JudgedCsr): readonly Problem[] {
  const mend = 'See kubectl describe csr; kubectl certificate deny turns it down, kubectl certificate approve goes on all the same';
  return against.map((why) => ({ code: 'CSR_REFUSED', message: `${csr.name} is not approved: ${why}`, mend }));
}
