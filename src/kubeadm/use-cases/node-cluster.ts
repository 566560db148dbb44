import type { RunTime } from '../../base/clock.ts';
import { AppError } from '../../base/errors.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { ADMIN_CONF, KUBELET_CONF } from '../../kube/well-known.ts';
import { clientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import type { ClusterConnections } from '../ports.ts';
import { readHostKubeconfig } from '../read-host-kubeconfig.ts';
import { hostOpeningConnections } from './api-server-access.ts';

/** Ports of a connection with a node's credentials. */
export type NodeClusterPorts = Pick<RunTime, 'signal'> & Pick<ClusterConnections, 'web' | 'connectCluster'>;

const NODE_FACTS = combineFacts({ files: fileFacts([KUBELET_CONF]), identity: clientIdentity });
const NOT_JOINED_HINT =
  'Join the host with kubeletadm join. If it has joined with another file, pass the kubeconfig of an administrator with --kubeconfig';
const NODE_HINT = 'Pass the kubeconfig of an administrator with --kubeconfig';
const ADMIN_HINT =
  'Run the command for a control plane host, or pass the kubeconfig of an administrator with --kubeconfig: KUBECONFIG is not read';

/**
 * Connects to the API server with the credentials of the host's kubelet. Files that kubelet.conf names are read on the
 * host; no credential is stored on the local host. The connection is that of `hostOpeningConnections`.
 * @throws AppError NODE_NO_CREDENTIALS (exit code 3) when kubelet.conf does not exist or its certificate has expired;
 *   the errors of `readHostKubeconfig`
 */
export async function nodeCluster(services: NodeClusterPorts, host: Host): Promise<Cluster> {
  const { files, identity } = await observe(host, NODE_FACTS, services.signal);
  const content = files.get(KUBELET_CONF)?.content;
  if (content === undefined)
    throw noCredentials(host, `${KUBELET_CONF} does not exist: the host has not joined a cluster`, NOT_JOINED_HINT);
  if (identity.state === 'unusable' && identity.commonName !== undefined) {
    const hint = `Renew the certificate: kubeletadm certs renew-kubelet --host ${host.name} --kubeconfig admin.conf. To continue without a renewal, pass the kubeconfig of an administrator with --kubeconfig`;
    throw noCredentials(host, identity.why, hint);
  }
  return connectFromHost(services, host, { path: KUBELET_CONF, content, hint: NODE_HINT });
}

/**
 * Connects to the API server with admin.conf of a control plane host, as `nodeCluster`.
 * @throws AppError NODE_NO_CREDENTIALS (exit code 3) when admin.conf does not exist; the errors of `readHostKubeconfig`
 */
export async function adminCluster(services: NodeClusterPorts, host: Host): Promise<Cluster> {
  const content = (await observe(host, fileFacts([ADMIN_CONF]), services.signal)).get(ADMIN_CONF)?.content;
  if (content === undefined) throw noCredentials(host, `${ADMIN_CONF} does not exist: the host is not a control plane`, ADMIN_HINT);
  return connectFromHost(services, host, { path: ADMIN_CONF, content, hint: ADMIN_HINT });
}

async function connectFromHost(
  services: NodeClusterPorts,
  host: Host,
  { path, content, hint }: { readonly path: string; readonly content: string; readonly hint: string },
): Promise<Cluster> {
  const text = new SensitiveText([new Secret(content)]);
  const kubeconfig = await readHostKubeconfig(host, { path, text, hint, signal: services.signal });
  return services.connectCluster({ kubeconfig, from: await hostOpeningConnections(services, host, kubeconfig) });
}

function noCredentials(host: Host, message: string, hint: string): AppError {
  return new AppError({ host: host.name, code: 'NODE_NO_CREDENTIALS', message, hint }, { exitCode: 3 });
}
