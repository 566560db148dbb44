import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { ClusterContext } from '../../host/phase.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { isNodeReady, leaseRef, nodeIssues } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { CheckName } from '../config/check-names.ts';
import { ALLOW_CSRS } from '../explain/explain-bootstrap.ts';
import { capitalize } from '../node-identity/node-identity-problems.ts';
import type { Finding } from '../preflight/check.ts';
import { unlessForbidden } from './node/cluster-baseline.ts';
import type { ObservedNode } from './node/observe-node.ts';

/** The cluster to join, as the findings need it. */
export interface JoinTarget {
  readonly server: string;
  readonly caPem: string;
  readonly caCertPath: string;
  /** The existing Node with the name of the joining node. */
  readonly nodeOfSameName: KubeObject | null;
  /** Why that Node is of another host, or may be, as a clause; null: it is of this host, or no such Node exists. */
  readonly otherHost: string | null;
  /** How the operator gives the host another name; begins with a verb. */
  readonly nameHint: string;
  /** The credentials may create CSRs. */
  readonly mayBootstrap: boolean;
  /** The name of an existing Node that is not Ready may be reused. */
  readonly takeOver: boolean;
}

const RESET_FIRST = 'To move the host to the new cluster, first run kubeletadm reset on the host';

/**
 * Findings in the spirit of kubeadm's FileAvailable checks, except that files of an earlier run of the same join are
 * accepted; files of another cluster are errors. As in kubeadm, the name of a Ready Node is refused: two hosts of one
 * name (clones) would compete for the Node. A host without credentials that is the host of the Node was reset and joins
 * again.
 * @see kubeadm 1.36 preflight: FileAvailable--etc-kubernetes-kubelet.conf, ...-pki-ca.crt; join phase kubelet-start
 */
export function joinPreflightFindings({ facts, registration }: ObservedNode, target: JoinTarget): readonly Finding[] {
  const { identity } = facts;
  const { server, caPem, caCertPath, nodeOfSameName, otherHost, nameHint, takeOver, mayBootstrap } = target;
  const findings: Finding[] = [];
  const refuse = (id: CheckName, message: string, hint: string): void => void findings.push({ id, severity: 'error', message, hint });
  if (identity.state === 'usable' && identity.server !== null && !sameServer(identity.server, server)) {
    const message = `/etc/kubernetes/kubelet.conf exists and belongs to ${identity.server}, not to ${server}`;
    refuse('FileAvailable--etc-kubernetes-kubelet.conf', message, RESET_FIRST);
  }
  const ca = facts.kubernetesFiles.get(caCertPath)?.content;
  if (ca !== undefined && ca.trim() !== caPem.trim())
    refuse(`FileAvailable-${caCertPath.replaceAll('/', '-')}`, `${caCertPath} exists and is not the CA of ${server}`, RESET_FIRST);
  const isItself = identity.state === 'unusable' && identity.commonName === `system:node:${registration.name}`;
  const renew = isItself ? `${identity.why}. Renew the certificate with kubeletadm certs renew-kubelet. ` : '';
  const isBack = identity.state === 'missing' && otherHost === null;
  if (identity.state !== 'usable' && nodeOfSameName !== null && !isBack) {
    const isReady = isNodeReady(nodeOfSameName);
    const state = isReady ? 'Ready' : `not Ready (${nodeIssues(nodeOfSameName).join('; ')})`;
    const why = otherHost === null ? '' : `: ${otherHost}`;
    const otherwise = isReady
      ? `${capitalize(nameHint)}. If the host of the Node no longer exists, run kubectl delete node ${registration.name}`
      : `If the Node belonged to this host or to a removed host, add --take-over. Otherwise ${nameHint}`;
    if (isReady || !takeOver)
      refuse('NodeExists', `Node ${registration.name} already exists and is ${state}${why}`, `${renew}${otherwise}`);
  }
  if (identity.state !== 'usable' && !mayBootstrap) {
    const message = 'the credentials are not allowed to create certificate signing requests, so the kubelet cannot get a certificate';
    findings.push({ id: 'BootstrapRBAC', severity: 'warning', message: `${message}. ${ALLOW_CSRS}`, hint: ALLOW_CSRS });
  }
  return findings;
}

function sameServer(a: string, b: string): boolean {
  return trimTrailing(a, '/').toLowerCase() === trimTrailing(b, '/').toLowerCase();
}

/** `nodeLeaseDurationSeconds` of a kubelet by default. */
const LEASE_SECONDS = 40;
/**
 * A kubelet renews its Lease after a quarter of its duration, and up to 4 % later (pkg/kubelet/kubelet.go
 * nodeLeaseRenewIntervalFraction; component-helpers/apimachinery/lease Run, 1.36). The rest is time for its request.
 */
const SILENT_PART = 0.3;
/** The control plane sets Ready to Unknown 50 s after the last renewal, and checks every 5 s (pkg/controller/nodelifecycle, 1.36). */
const UNKNOWN_AFTER_MS = 65_000;
const PAUSE_MS = 1_000;

/**
 * Observes whether another machine runs the kubelet of a Ready Node: what a host reports about itself can be copied, but
 * only a running kubelet renews its Lease. Without permission to read the Lease (bootstrap tokens), waits until the control
 * plane no longer finds the Node Ready.
 * @param reader the credentials that read the Lease
 * @returns why the kubelet is not known to have stopped, as a clause; null: it has stopped
 */
export function findRunningKubelet(context: ClusterContext, reader: Cluster, { metadata: { name } }: KubeObject): Promise<string | null> {
  let first: string | null | undefined;
  return waitUntil<string | null, boolean>(context, {
    probe: async (elapsedMs) => {
      const waitedMs = elapsedMs();
      const [lease, node] = await Promise.all([
        unlessForbidden(reader.get(leaseRef(name))),
        context.cluster.get({ apiVersion: 'v1', kind: 'Node', name }),
      ]);
      const { renewTime = null, leaseDurationSeconds = LEASE_SECONDS } = (lease?.spec ?? {}) as {
        readonly renewTime?: string;
        readonly leaseDurationSeconds?: number;
      };
      if (first === undefined) first = renewTime;
      else if (renewTime !== first) return { done: `its kubelet is running: it has just renewed the Lease kube-node-lease/${name}` };
      const silentMs = Math.max(leaseDurationSeconds, LEASE_SECONDS) * SILENT_PART * 1_000;
      const hasStopped = node === null || !isNodeReady(node) || (renewTime !== null && waitedMs >= silentMs);
      return hasStopped ? { done: null } : { pending: renewTime !== null };
    },
    timeoutMs: UNKNOWN_AFTER_MS,
    pauseMs: () => PAUSE_MS,
    changed: () => '',
    describe: (readsLease) =>
      readsLease
        ? `checking that the kubelet of Node ${name} does not renew its Lease on another host`
        : `waiting until Node ${name} is no longer Ready, because it has no readable Lease`,
    timedOut: () => `its kubelet may be running: the Node is still Ready after ${UNKNOWN_AFTER_MS / 1_000} s`,
  });
}
