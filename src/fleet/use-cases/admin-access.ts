import { AppError } from '../../base/errors.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { Cluster } from '../../kube/cluster.ts';
import type { HostKubeconfig } from '../../kube/host-kubeconfig.ts';
import { ADMIN_CONF } from '../../kube/well-known.ts';
import type { ClusterConnections } from '../../kubeadm/ports.ts';
import { readHostKubeconfig } from '../../kubeadm/read-host-kubeconfig.ts';
import { adminConfHint } from '../../kubeadm/workflows/control-plane/api-access.ts';

/** The administrator's kubeconfig of a control plane, and a connection with it. */
export interface AdminAccess {
  readonly kubeconfig: HostKubeconfig;
  readonly cluster: Cluster;
}

/**
 * The administrator's kubeconfig in /etc/kubernetes/admin.conf of a control plane. Rebuilt, so that nothing in it runs a
 * program or reads a file of the local host.
 * @returns null: the file does not exist
 * @throws AppError: errors of `readHostKubeconfig`
 */
export async function readAdminKubeconfig(host: Host, signal: AbortSignal | undefined): Promise<HostKubeconfig | null> {
  const content = (await observe(host, fileFacts([ADMIN_CONF]), signal)).get(ADMIN_CONF)?.content;
  if (content === undefined) return null;
  const text = new SensitiveText([new Secret(content)]);
  return readHostKubeconfig(host, { path: ADMIN_CONF, text, hint: adminConfHint(ADMIN_CONF), signal });
}

/**
 * Performs an action as the administrator of a cluster. Verified before: the API server, reached through the control plane,
 * has a certificate of the CA and accepts the credentials.
 * @param missing why admin.conf may not exist, and how to fix it
 * @throws AppError NO_API_SERVER without a kubeconfig; errors of `readHostKubeconfig` and `Cluster.version`
 */
export async function withAdminAccess<Result>(
  { connectCluster, signal }: Pick<ClusterConnections, 'connectCluster'> & { readonly signal?: AbortSignal },
  host: Host,
  missing: { readonly message: string; readonly hint: string },
  action: (access: AdminAccess) => Promise<Result>,
): Promise<Result> {
  const kubeconfig = await readAdminKubeconfig(host, signal);
  if (kubeconfig === null) throw new AppError({ host: host.name, code: 'NO_API_SERVER', ...missing });
  const cluster = await connectCluster({ kubeconfig, from: host });
  try {
    await cluster.version();
    return await action({ kubeconfig, cluster });
  } finally {
    await cluster.close();
  }
}
