import { AppError, isAppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { Secret } from '../../../base/text/secret.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { EtcdCluster, EtcdMemberState } from '../../../kube/etcd-cluster.ts';
import { recordEtcdMembers } from '../../phases/upgrade/upgrade-progress.ts';
import { type ConnectEtcd, etcdClientFiles, etcdEndpoints } from '../control-plane/etcd-access.ts';

/**
 * Checks the etcd cluster before its local member is restarted. Unhealthy members are accepted, with a warning, only if the
 * other members keep the quorum during the restart; kubeadm also accepts them if the restart interrupts the cluster. Records
 * the number of members, on which the restoration of etcd data depends.
 * @param options.isReplaced whether the run replaces the local member
 * @param options.localPeerURL peer URL of the local member; null: not known
 * @param options.textAt the content of a file of the host; null: it does not exist
 * @throws (returned function) AppError ETCD_UNHEALTHY naming the members; ETCD_CREDENTIALS_MISSING if the member is to be
 * replaced; the errors of `ConnectEtcd`
 * @see kubeadm 1.36.2 util/etcd CheckClusterHealth, which requires a majority of healthy members
 */
export function etcdHealthCheck(options: {
  readonly connectEtcd: ConnectEtcd;
  readonly certificatesDir: string;
  readonly textAt: (path: string) => string | null;
  readonly isReplaced: boolean;
  readonly localPeerURL: string | null;
}): (context: PhaseContext) => Promise<void> {
  return async (context) => {
    const { cluster, host } = context;
    const connect = connectWith(options, context);
    if (cluster === null) return;
    if ('missing' in connect) {
      if (options.isReplaced) throw credentialsMissing(host.name, connect.missing);
      return;
    }
    const members = await (await connect.to(await etcdEndpoints(cluster))).members();
    const states = await Promise.all(
      members.map(async (member) => ({ member, problem: await problemOf(member, () => connect.to(member.clientURLs)) })),
    );
    const unhealthy = states.flatMap(({ problem }) => problem ?? []);
    if (unhealthy.length === 0) return recordEtcdMembers(context, members.length);
    if (keepsQuorum(states, options)) {
      const message = `control-plane/etcd: some etcd members are not healthy, but the cluster keeps its quorum: ${unhealthy.join('; ')}`;
      context.reporter.report({ level: 'warning', code: 'ETCD_MEMBER_UNHEALTHY', host: host.name, message });
      return recordEtcdMembers(context, members.length);
    }
    const hint = 'Fix or remove these members (etcdctl endpoint health --cluster, etcdctl member list), then rerun the command';
    const message = `control-plane/etcd: the etcd cluster is not healthy: ${unhealthy.join('; ')}`;
    throw new AppError({ host: host.name, code: 'ETCD_UNHEALTHY', message, hint });
  };
}

/** Whether the healthy voting members are a majority without the local member. A change of the membership must be complete. */
function keepsQuorum(
  states: readonly { readonly member: EtcdMemberState; readonly problem: string | null }[],
  { isReplaced, localPeerURL }: { readonly isReplaced: boolean; readonly localPeerURL: string | null },
): boolean {
  if (states.some(({ member }) => member.isLearner || member.name === '')) return false;
  if (isReplaced && !states.some(({ member }) => isLocal(member))) return false;
  const running = states.filter(({ member, problem }) => problem === null && !(isReplaced && isLocal(member)));
  return running.length > states.length / 2;

  function isLocal({ peerURLs }: EtcdMemberState): boolean {
    return localPeerURL !== null && peerURLs.includes(localPeerURL);
  }
}

function credentialsMissing(host: string, paths: readonly string[]): AppError {
  const message = `control-plane/etcd: cannot check the health of the etcd cluster: these files do not exist on the host: ${paths.join(', ')}`;
  const hint = 'Restore these files (kubeletadm init phase certs etcd-healthcheck-client), or keep etcd with --etcd-upgrade=false';
  return new AppError({ host, code: 'ETCD_CREDENTIALS_MISSING', message, hint });
}

/** A connection with the client certificate of health checks, or the files of it that do not exist. */
function connectWith(
  { connectEtcd, certificatesDir, textAt }: Parameters<typeof etcdHealthCheck>[0],
  { host }: PhaseContext,
): { readonly to: (endpoints: readonly string[]) => Promise<EtcdCluster> } | { readonly missing: readonly string[] } {
  const files = etcdClientFiles(certificatesDir);
  const [caPem, certificatePem, key] = [textAt(files.ca), textAt(files.certificate), textAt(files.key)];
  if (caPem === null || certificatePem === null || key === null)
    return { missing: Object.values(files).filter((file) => textAt(file) === null) };
  return { to: (endpoints) => connectEtcd({ endpoints, caPem, certificatePem, keyPem: new Secret(key), files, host }) };
}

/** Why the cluster depends on the other members, as a clause; null: the member is healthy. */
async function problemOf({ name, peerURLs, isLearner }: EtcdMemberState, connect: () => Promise<EtcdCluster>): Promise<string | null> {
  const shown = `member ${printable(name || (peerURLs[0] ?? 'without a name'), 200)}`;
  if (name === '') return `${shown} has not started`;
  if (isLearner) return `${shown} is a learner`;
  try {
    const { healthy, reason } = await (await connect()).health();
    return healthy ? null : `${shown} is not healthy${reason === '' ? '' : ` (${printable(reason, 200)})`}`;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return `${shown}: ${error.problems[0]?.message ?? 'does not answer'}`;
  }
}
