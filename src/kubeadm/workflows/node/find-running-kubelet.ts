import { waitUntil } from '../../../base/wait-until.ts';
import type { ClusterContext } from '../../../host/phase.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { isNodeReady } from '../../../kube/node-conditions.ts';
import type { KubeObject } from '../../../kube/object.ts';
import { unlessForbidden } from './cluster-baseline.ts';

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
  const ref = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace: 'kube-node-lease', name };
  let first: string | null | undefined;
  return waitUntil<string | null, boolean>(context, {
    probe: async (elapsedMs) => {
      const waitedMs = elapsedMs();
      const [lease, node] = await Promise.all([
        unlessForbidden(reader.get(ref)),
        context.cluster.get({ apiVersion: 'v1', kind: 'Node', name }),
      ]);
      const { renewTime = null, leaseDurationSeconds = LEASE_SECONDS } = (lease?.spec ?? {}) as LeaseSpec;
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

interface LeaseSpec {
  readonly renewTime?: string;
  readonly leaseDurationSeconds?: number;
}
