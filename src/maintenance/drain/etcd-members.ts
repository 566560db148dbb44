import { AppError, unlessRefused } from '../../base/errors.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { KUBE_SYSTEM } from '../../kube/well-known.ts';
import { readDrainPod } from '../forecast/drain-pod.ts';
import type { DrainPorts } from './drain-node.ts';

/** The labels of the static Pods in which kubeadm runs etcd. */
const ETCD_PODS = 'component=etcd,tier=control-plane';
/** Time for a member that another change has just restarted. */
const WAIT_MS = 120_000;
const POLL_MS = 5_000;

/**
 * Waits until the other etcd members are Ready, before the change of a control plane. Members are known by the static Pods of
 * kubeadm; of another etcd the health is not known, which is reported.
 * @throws AppError ETCD_MEMBER_NOT_READY (exit code 3) if another member is not Ready after two minutes
 */
export async function requireEtcdMembers({ cluster, run, signal, reporter }: DrainPorts, node: string): Promise<void> {
  const unhealthy = await waitUntil(
    { clock: run.clock, reporter, signal, host: { name: node } },
    {
      probe: async () => {
        const others = await unreadyMembers(cluster, node);
        return others === null || others.length === 0 ? { done: others } : { pending: others };
      },
      timeoutMs: WAIT_MS,
      pauseMs: () => POLL_MS,
      timedOut: (others) => others,
      describe: (others, waitedMs) => `waiting for etcd members to be Ready, ${Math.round(waitedMs / 1000)} s: ${others.join(', ')}`,
    },
  );
  if (unhealthy === null) {
    const message = 'the health of the other etcd members is not known, because the cluster shows no static Pods of etcd';
    reporter.report({ level: 'info', code: 'ETCD_NOT_CHECKED', host: node, message });
    return;
  }
  if (unhealthy.length > 0) throw new AppError(etcdMemberUnhealthy(node, unhealthy), { exitCode: 3 });
}

/** The other members that are not Ready, as `NAMESPACE/NAME`; null: the members are not known. */
async function unreadyMembers(cluster: Cluster, node: string): Promise<readonly string[] | null> {
  const list = await unlessRefused(cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: KUBE_SYSTEM }, { labelSelector: ETCD_PODS }));
  const members = (list?.items ?? []).map(readDrainPod).filter(({ kind }) => kind === 'mirror');
  if (members.length === 0) return null;
  return members.filter((member) => member.node !== node && !member.isReady).map(({ name }) => name);
}

function etcdMemberUnhealthy(node: string, members: readonly string[]) {
  return {
    code: 'ETCD_MEMBER_NOT_READY',
    host: node,
    message: `not changed: another etcd member is not Ready (${members.join(', ')}), and etcd may lose its quorum if this control plane fails`,
    hint: `Repair that member first: kubectl -n kube-system describe pod ${members[0]?.split('/')[1] ?? ''}`,
  };
}
