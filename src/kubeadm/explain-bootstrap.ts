import { kubeletRequestFailure, type NodeCsr } from './node-csr.ts';

/** Why a kubelet has no client certificate, as far as the cluster tells. */
export interface BootstrapReason {
  readonly why: string;
  readonly hint: string;
  /** Waiting does not help. */
  readonly final: boolean;
}

/**
 * Says from a node's requests for a client certificate what it waits for.
 * @param csrs of this node, in any order
 * @param options.said what the kubelet says keeps it from asking
 * @param options.refusedBefore names of those refused before the wait began: they count only where no other came after. One that is refused during the wait counts whatever
 * came after it: a kubelet asks again within seconds
 */
export function explainBootstrap(
  csrs: readonly NodeCsr[],
  { refusedBefore = new Set(), reported = null }: { readonly refusedBefore?: ReadonlySet<string>; readonly reported?: string | null } = {},
): BootstrapReason {
  const latestFirst = csrs.toSorted((a, b) => b.created.getTime() - a.created.getTime());
  const csr = latestFirst.find((one) => isRefused(one) && !refusedBefore.has(one.name)) ?? latestFirst[0];
  if (csr === undefined && reported !== null)
    return { why: `the kubelet could not ask for a certificate: ${reported}`, hint: hintOf(reported), final: false };
  if (csr === undefined) {
    const why = 'the kubelet has made no certificate signing request: it does not reach the API server, or its token is refused';
    return { why, hint: 'See journalctl -u kubelet on the host', final: false };
  }
  const which = `certificate signing request ${csr.name}`;
  switch (csr.state.kind) {
    case 'denied':
      return {
        why: `${which} was denied: ${csr.state.why}`,
        hint: `Ask who denied it; kubectl delete csr ${csr.name} makes way for another`,
        final: true,
      };
    case 'failed': {
      const hint = `kubectl describe csr ${csr.name} shows it all; kubectl delete csr ${csr.name} makes way for another`;
      return { why: `the signer refused ${which}: ${csr.state.why}`, hint, final: true };
    }
    case 'approved': {
      const why = `${which} is approved, and no signer has signed it`;
      const hint =
        'kube-controller-manager signs: see that it runs, with the controller csrsigning and --cluster-signing-cert-file and --cluster-signing-key-file';
      return { why, hint, final: false };
    }
    case 'issued':
      return {
        why: `${which} is signed, and the kubelet has not stored the certificate yet`,
        hint: 'See journalctl -u kubelet',
        final: false,
      };
    case 'pending': {
      const issue = kubeletRequestFailure(csr);
      const hint = `Approve it: kubectl certificate approve ${csr.name}`;
      if (issue !== null) return { why: `${which} is pending: no approver takes it, ${issue}`, hint, final: false };
      const why = `${which} of ${csr.username} is pending: it was not approved. kube-controller-manager (controller csrapproving) approves CSRs of groups that a ClusterRoleBinding like kubeadm:node-autoapprove-bootstrap names; the groups of this CSR are ${csr.groups.join(', ')}`;
      return { why, hint, final: false };
    }
  }
}

/** Whether a request was turned down, by who approves or by who signs. */
export function isRefused({ state }: Pick<NodeCsr, 'state'>): boolean {
  return state.kind === 'denied' || state.kind === 'failed';
}

/** Whether a kubelet says that the API server does not know whom its credentials are of. */
export function isUnauthorized(reported: string): boolean {
  return /\bUnauthorized\b/.test(reported);
}

function hintOf(reported: string): string {
  if (isUnauthorized(reported)) return 'Its token is not accepted (any more): make one with token create';
  if (/x509: certificate has expired or is not yet valid/.test(reported)) return 'Set the clock of the host (timedatectl, chronyc)';
  return 'It is the host itself that has to reach the API server: check address, firewall and proxy from there';
}
