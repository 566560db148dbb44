import { type NodeCsr, signerRejectionReason } from '../node-identity/node-csr.ts';

/** Why a kubelet has no client certificate, as far as the cluster shows. */
export interface BootstrapReason {
  readonly why: string;
  readonly hint: string;
  /** Waiting cannot help. */
  readonly final: boolean;
}

/** The hint for bootstrap credentials that are not allowed to create CSRs. */
export const ALLOW_CSRS =
  'Bind the ClusterRole system:node-bootstrapper to the groups of the token. For the default group, run kubeletadm init phase bootstrap-token';

/**
 * Explains from the CSRs of a node what keeps its client certificate from being issued.
 * @param csrs of this node, in any order
 * @param options.reported the error that the kubelet logged when it created the CSR
 * @param options.refusedBefore names of the CSRs rejected before the wait began: each counts only if no newer CSR
 *   exists. A CSR rejected during the wait always counts, because the kubelet creates another one within seconds
 */
export function explainBootstrap(
  csrs: readonly NodeCsr[],
  { refusedBefore = new Set(), reported = null }: { readonly refusedBefore?: ReadonlySet<string>; readonly reported?: string | null } = {},
): BootstrapReason {
  const latestFirst = csrs.toSorted((a, b) => b.created.getTime() - a.created.getTime());
  const csr = latestFirst.find((one) => isRefused(one) && !refusedBefore.has(one.name)) ?? latestFirst[0];
  if (csr === undefined && reported !== null)
    return { why: `the kubelet cannot request a certificate: ${reported}`, hint: hintOf(reported), final: false };
  if (csr === undefined) {
    const why = 'the kubelet has created no CSR: the API server is unreachable from the host, or rejects the bootstrap token';
    return { why, hint: 'See journalctl -u kubelet on the host', final: false };
  }
  const which = `CSR ${csr.name}`;
  switch (csr.state.kind) {
    case 'denied':
    case 'failed': {
      const { kind, why } = csr.state;
      const hint = `Find the reason with kubectl describe csr ${csr.name}, then run kubectl delete csr ${csr.name}: the kubelet creates a new CSR`;
      return { why: kind === 'denied' ? `${which} was denied: ${why}` : `the signer rejected ${which}: ${why}`, hint, final: true };
    }
    case 'approved': {
      const why = `${which} is approved but not signed`;
      const hint =
        'Check that kube-controller-manager runs with the csrsigning controller and the flags --cluster-signing-cert-file and --cluster-signing-key-file';
      return { why, hint, final: false };
    }
    case 'issued':
      return {
        why: `${which} is signed, but the kubelet has not stored the certificate yet`,
        hint: 'See journalctl -u kubelet on the host',
        final: false,
      };
    case 'pending': {
      const issue = signerRejectionReason(csr);
      const hint = `Approve the CSR: kubectl certificate approve ${csr.name}`;
      if (issue !== null) return { why: `${which} is pending and cannot be approved automatically: ${issue}`, hint, final: false };
      const why = `${which} of ${csr.username} is pending. kube-controller-manager approves this CSR only if a ClusterRoleBinding such as kubeadm:node-autoapprove-bootstrap names one of its groups: ${csr.groups.join(', ')}`;
      return { why, hint, final: false };
    }
  }
}

/** Whether a CSR was denied by an approver or failed at the signer. */
export function isRefused({ state }: Pick<NodeCsr, 'state'>): boolean {
  return state.kind === 'denied' || state.kind === 'failed';
}

/** Whether the kubelet reports that the API server rejected its credentials (401). */
export function isUnauthorized(reported: string): boolean {
  return /\bUnauthorized\b/.test(reported);
}

function hintOf(reported: string): string {
  if (isUnauthorized(reported)) return 'Create a new token with kubeletadm token create: the token is unknown or expired';
  if (/x509: certificate has expired or is not yet valid/.test(reported)) return 'Synchronize the clock of the host (timedatectl, chronyc)';
  return 'Check that the host can reach the API server: address, firewall and proxy';
}
