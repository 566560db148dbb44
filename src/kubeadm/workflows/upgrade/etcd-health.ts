import { AppError, isAppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { Secret } from '../../../base/text/secret.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { EtcdCluster, EtcdMemberState } from '../../../kube/etcd-cluster.ts';
import { recordEtcdMembers } from '../../phases/upgrade/upgrade-progress.ts';
import { pkiPath } from '../../pki/certificate-list.ts';
import { type ConnectEtcd, etcdEndpoints } from '../control-plane/etcd-access.ts';

/**
 * Checks the etcd cluster before its local member is restarted: every member must be healthy, because the cluster may
 * lose its quorum otherwise. Records the number of members, on which the restoration of etcd data depends.
 * @param options.isReplaced whether the run replaces the local member
 * @param options.textAt the content of a file of the host; null: it does not exist
 * @throws (returned function) AppError ETCD_UNHEALTHY naming the members; ETCD_CREDENTIALS_MISSING if the member is to be
 * replaced; the errors of `ConnectEtcd`
 * @see kubeadm 1.36 util/etcd CheckClusterHealth
 */
export function etcdHealthCheck(options: {
  readonly connectEtcd: ConnectEtcd;
  readonly certificatesDir: string;
  readonly textAt: (path: string) => string | null;
  readonly isReplaced: boolean;
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
    const problems = await Promise.all(members.map((member) => problemOf(member, () => connect.to(member.clientURLs))));
    const unhealthy = problems.filter((problem) => problem !== null);
    if (unhealthy.length === 0) return recordEtcdMembers(context, members.length);
    const hint = 'Fix or remove these members (etcdctl endpoint health --cluster, etcdctl member list), then rerun the command';
    const message = `control-plane/etcd: the etcd cluster is not healthy: ${unhealthy.join('; ')}`;
    throw new AppError({ host: host.name, code: 'ETCD_UNHEALTHY', message, hint });
  };
}

function credentialsMissing(host: string, paths: readonly string[]): AppError {
  const message = `control-plane/etcd: the health of the etcd cluster is not known, because the host has no ${paths.join(', ')}`;
  const hint = 'Restore these files (kubeletadm init phase certs etcd-healthcheck-client), or keep etcd with --etcd-upgrade=false';
  return new AppError({ host, code: 'ETCD_CREDENTIALS_MISSING', message, hint });
}

/** A connection with the client certificate of health checks, or the files of it that do not exist. */
function connectWith(
  { connectEtcd, certificatesDir, textAt }: Parameters<typeof etcdHealthCheck>[0],
  { host }: PhaseContext,
): { readonly to: (endpoints: readonly string[]) => Promise<EtcdCluster> } | { readonly missing: readonly string[] } {
  const path = (name: string, kind: 'crt' | 'key'): string => pkiPath(certificatesDir, name, kind);
  const client = 'etcd/healthcheck-client';
  const files = { ca: path('etcd/ca', 'crt'), certificate: path(client, 'crt'), key: path(client, 'key') };
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
