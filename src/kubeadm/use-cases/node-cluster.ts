import type { RunTime } from '../../base/clock.ts';
import { AppError } from '../../base/errors.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { KUBELET_CONF } from '../../kube/well-known.ts';
import { clientIdentity } from '../../kubelet/facts/kubelet-identity.ts';
import type { ClusterConnections } from '../ports.ts';
import { readHostKubeconfig } from '../read-host-kubeconfig.ts';
import { hostOpeningConnections } from './api-server-access.ts';

/** Ports of a connection with a node's credentials. */
export type NodeClusterPorts = Pick<RunTime, 'signal'> & Pick<ClusterConnections, 'web' | 'connectCluster'>;

const FACTS = combineFacts({ files: fileFacts([KUBELET_CONF]), identity: clientIdentity });
const HINT = 'Pass the kubeconfig of an administrator with --kubeconfig';

/**
 * Connects to the API server with the credentials of the host's kubelet. Files that kubelet.conf names are read on the
 * host; no credential is stored on the local host. The connection is that of `hostOpeningConnections`.
 * @throws AppError NODE_NO_CREDENTIALS (exit code 3) when kubelet.conf does not exist or its certificate has expired;
 * the errors of `readHostKubeconfig`
 */
export async function nodeCluster(services: NodeClusterPorts, host: Host): Promise<Cluster> {
  const { signal } = services;
  const { files, identity } = await observe(host, FACTS, signal);
  const content = files.get(KUBELET_CONF)?.content;
  const text = content === undefined ? null : new SensitiveText([new Secret(content)]);
  if (text === null) throw noCredentials(host, `${KUBELET_CONF} does not exist: the host has not joined a cluster`);
  if (identity.state === 'unusable' && identity.commonName !== undefined) throw expired(host, identity.why);
  const kubeconfig = await readHostKubeconfig(host, { path: KUBELET_CONF, text, hint: HINT, signal });
  return services.connectCluster({ kubeconfig, from: await hostOpeningConnections(services, host, kubeconfig) });
}

function noCredentials(host: Host, message: string): AppError {
  return new AppError({ host: host.name, code: 'NODE_NO_CREDENTIALS', message, hint: HINT }, { exitCode: 3 });
}

function expired(host: Host, why: string): AppError {
  const hint = `Renew the certificate: kubeletadm certs renew-kubelet --host ${host.name} --kubeconfig admin.conf. To continue without a renewal, pass the kubeconfig of an administrator with --kubeconfig`;
  return new AppError({ host: host.name, code: 'NODE_NO_CREDENTIALS', message: why, hint }, { exitCode: 3 });
}
