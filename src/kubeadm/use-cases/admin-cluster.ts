import { AppError } from '../../base/errors.ts';
import { Secret, SensitiveText } from '../../base/text/secret.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { ADMIN_CONF } from '../../kube/well-known.ts';
import { readHostKubeconfig } from '../read-host-kubeconfig.ts';
import { hostOpeningConnections } from './api-server-access.ts';
import type { NodeClusterPorts } from './node-cluster.ts';

const HINT = 'Run the command for a control plane host, or pass the kubeconfig of an administrator with --kubeconfig';

/**
 * Connects to the API server with admin.conf of a control plane host. No credential is stored on the local host. The connection is
 * that of `hostOpeningConnections`.
 * @throws AppError NODE_NO_CREDENTIALS (exit code 3) when admin.conf does not exist; the errors of `readHostKubeconfig`
 */
export async function adminCluster(services: NodeClusterPorts, host: Host): Promise<Cluster> {
  const { signal } = services;
  const content = (await observe(host, fileFacts([ADMIN_CONF]), signal)).get(ADMIN_CONF)?.content;
  if (content === undefined) {
    const message = `${ADMIN_CONF} does not exist: the host is not a control plane`;
    throw new AppError({ host: host.name, code: 'NODE_NO_CREDENTIALS', message, hint: HINT }, { exitCode: 3 });
  }
  const kubeconfig = await readHostKubeconfig(host, {
    path: ADMIN_CONF,
    text: new SensitiveText([new Secret(content)]),
    hint: HINT,
    signal,
  });
  return services.connectCluster({ kubeconfig, from: await hostOpeningConnections(services, host, kubeconfig) });
}
