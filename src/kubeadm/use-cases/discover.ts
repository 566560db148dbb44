import type { RunTime } from '../../base/clock.ts';
import { isAppError, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/access/host.ts';
import { discoveryCluster, parseKubeconfig } from '../../kube/kubeconfig.ts';
import { readOperatorKubeconfig } from '../../kube/operator-kubeconfig.ts';
import type { JoinConfiguration } from '../config/model.ts';
import type { ClusterConnections } from '../ports.ts';
import { type DiscoveredCluster, type DiscoveryPlan, discoverCluster } from '../workflows/discovery/discover-cluster.ts';
import { withoutSecrets } from '../workflows/discovery/fetch.ts';
import { durationMs } from './node-options.ts';
import { resolveKubeconfigPath } from './open-cluster.ts';

type DiscoverPorts = Pick<LocalFiles, 'input'> & RunTime & Pick<ClusterConnections, 'web' | 'connectCluster'>;

/** Finds the cluster to join by the configured discovery method. Connects to no host. */
export async function discover(
  services: DiscoverPorts,
  {
    join,
    caFile,
    forOthers,
    from,
    reporter,
  }: {
    readonly join: JoinConfiguration;
    /** `--ca-cert`: a complete CA certificate instead of its pin. */
    readonly caFile: string | undefined;
    /** At least one host to join is not the local host. */
    readonly forOthers: boolean;
    /** The host whose connection reaches the API server; null: the local host reaches it directly. */
    readonly from: Host | null;
    readonly reporter: Reporter;
  },
): Promise<DiscoveredCluster> {
  const { clock, signal } = services;
  const ports = { ...(from === null ? services : overHost(services, from)), clock, reporter, signal };
  return discoverCluster(ports, await planDiscovery(services, join, caFile), {
    timeoutMs: durationMs(join.timeouts?.discovery, 300_000),
    forOthers,
  });
}

/**
 * URL of the API server to join, as far as the configuration names it.
 * @returns `https://ADDRESS:PORT`; null when discovery has to fetch a URL first, when a proxy is configured, or when
 * the file is invalid (discovery reports that error)
 */
export async function serverToJoin({ input }: Pick<LocalFiles, 'input'>, { discovery = {} }: JoinConfiguration): Promise<string | null> {
  const { bootstrapToken, file } = discovery;
  const path = file?.kubeConfigPath;
  if (path === undefined) return bootstrapToken?.apiServerEndpoint === undefined ? null : `https://${bootstrapToken.apiServerEndpoint}`;
  if (/^https:/i.test(path)) return null;
  try {
    const { server, proxyUrl } = discoveryCluster(parseKubeconfig(await input.readText(path), path));
    return proxyUrl === undefined ? server : null;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return null;
  }
}

function overHost({ web, connectCluster }: DiscoverPorts, from: Host): Pick<ClusterConnections, 'web' | 'connectCluster'> {
  const dial = from.dial === undefined ? {} : { dial: from.dial };
  return { web: { get: (request) => web.get({ ...request, ...dial }) }, connectCluster: (target) => connectCluster({ ...target, from }) };
}

async function planDiscovery(
  services: DiscoverPorts,
  { discovery = {} }: JoinConfiguration,
  caFile: string | undefined,
): Promise<DiscoveryPlan> {
  const { file, tlsBootstrapToken } = discovery;
  const path = file?.kubeConfigPath;
  if (path !== undefined) {
    if (/^https:/i.test(path)) return { kind: 'url', url: path, shown: withoutSecrets(path), tlsBootstrapToken };
    const kubeconfig = await readOperatorKubeconfig(services.input, [path]);
    return {
      kind: 'kubeconfig',
      kubeconfig,
      readFile: (named) => services.input.readText(resolveKubeconfigPath(path, named)),
      tlsBootstrapToken,
    };
  }
  const { apiServerEndpoint: endpoint, token, caCertHashes: pins = [] } = discovery.bootstrapToken ?? {};
  if (endpoint === undefined || token === undefined)
    throw usageError(
      'no cluster to join',
      'Pass ADDRESS:PORT of the API server with --token and --discovery-token-ca-cert-hash, or pass --discovery-file',
    );
  if (caFile === undefined) return { kind: 'token', endpoint, token, pins, tlsBootstrapToken: tlsBootstrapToken ?? token };
  const caPem = await services.input.readText(caFile);
  return { kind: 'ca', endpoint, caPem, file: caFile, pins, tlsBootstrapToken: tlsBootstrapToken ?? token };
}
