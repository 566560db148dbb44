import { credentialKinds, parseKubeconfig, resolveContext } from '../core/config/kubeconfig.ts';
import { tokenKubeconfig } from '../core/config/kubeconfig-render.ts';
import type { JoinConfiguration } from '../core/config/model.ts';
import { AppError, usageError } from '../core/errors.ts';
import type { Secret } from '../core/text/secret.ts';
import { parseCertificates } from '../core/tls/certificate.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Services } from '../ports/services.ts';
import { addressOf } from './open-cluster.ts';
import type { CommandOptions } from './program.ts';
import { flagText } from './read-options.ts';

/** The cluster a node is to join, and what its kubelet logs in with at first. */
export interface DiscoveredCluster {
  readonly cluster: Cluster;
  readonly apiServer: { readonly server: string; readonly caPem: string };
  readonly token: Secret;
}

const CA_MEND = 'Give the CA of the cluster (on a control plane: /etc/kubernetes/pki/ca.crt)';

/**
 * Finds the cluster by a discovery file, or by endpoint, token and `--ca-cert`.
 * @throws AppError with exit code 2 when something needed was not given
 */
export async function discoverCluster(services: Services, join: JoinConfiguration, options: CommandOptions): Promise<DiscoveredCluster> {
  const { discovery = {} } = join;
  if (discovery.file?.kubeConfigPath !== undefined)
    return discoverByFile(services, discovery.file.kubeConfigPath, discovery.tlsBootstrapToken);
  const { apiServerEndpoint, token } = discovery.bootstrapToken ?? {};
  const bootstrapToken = discovery.tlsBootstrapToken ?? token;
  if (apiServerEndpoint === undefined || bootstrapToken === undefined)
    throw usageError('no cluster to join', 'Give ADDRESS:PORT with --token and --ca-cert, or --discovery-file');
  const caFile = flagText(options, 'caCert');
  if (caFile === undefined)
    throw usageError('the CA of the cluster is not known', 'Give its certificate with --ca-cert, or a --discovery-file');
  const caPem = await services.input.readText(caFile);
  if ((parseCertificates(caPem) ?? []).length === 0) throw usageError(`--ca-cert ${caFile}: there is no PEM certificate in it`, CA_MEND);
  const apiServer = { server: `https://${apiServerEndpoint}`, caPem };
  const kubeconfig = tokenKubeconfig({ ...apiServer, clusterName: 'kubernetes', user: 'tls-bootstrap-token-user', token: bootstrapToken });
  return {
    cluster: await services.connectCluster({ kubeconfig: kubeconfig.reveal(), file: 'the join token' }),
    apiServer,
    token: bootstrapToken,
  };
}

async function discoverByFile(services: Services, file: string, tlsBootstrapToken: Secret | undefined): Promise<DiscoveredCluster> {
  const text = await services.input.readText(file);
  const kubeconfig = parseKubeconfig(text, file);
  const target = resolveContext(kubeconfig);
  const apiServer = await addressOf(services, target.cluster, kubeconfig);
  if (apiServer === null)
    throw new AppError(
      { code: 'DISCOVERY_NO_CA', message: `${file} has no certificate authority`, mend: 'Put certificate-authority-data into it' },
      { exitCode: 2 },
    );
  const token = tlsBootstrapToken ?? target.user?.token;
  if (token === undefined) {
    const message = `${file} holds no token (${credentialKinds(target.user).join(', ') || 'no credentials'}) for the kubelet to bootstrap itself with`;
    throw new AppError({ code: 'DISCOVERY_NO_TOKEN', message, mend: 'Give one with --tls-bootstrap-token' }, { exitCode: 2 });
  }
  const withToken = tokenKubeconfig({ ...apiServer, clusterName: 'kubernetes', user: 'tls-bootstrap-token-user', token });
  const useFile = credentialKinds(target.user).length > 0;
  return { cluster: await services.connectCluster({ kubeconfig: useFile ? text : withToken.reveal(), file }), apiServer, token };
}
