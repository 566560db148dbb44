import type { RunTime } from '../../base/clock.ts';
import { isAppError, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import type { Reporter } from '../../base/reporter.ts';
import type { Host } from '../../host/host.ts';
import { discoveryCluster, parseKubeconfig } from '../../kube/kubeconfig.ts';
import { readOperatorKubeconfig } from '../../kube/operator-kubeconfig.ts';
import type { JoinConfiguration } from '../config/model.ts';
import type { ClusterConnections } from '../ports.ts';
import { type DiscoveredCluster, type DiscoveryPlan, discoverCluster } from '../workflows/discovery/discover-cluster.ts';
import { withoutSecrets } from '../workflows/discovery/fetch-kubeconfig.ts';
import { durationMs } from './node-options.ts';
import { besideKubeconfig } from './open-cluster.ts';

/** What discovery needs. */
export type DiscoverPorts = Pick<LocalFiles, 'input'> & RunTime & Pick<ClusterConnections, 'web' | 'connectCluster'>;

export interface DiscoveryInput {
  readonly join: JoinConfiguration;
  /** `--ca-cert`: says more than a pin of it. */
  readonly caFile: string | undefined;
  /** Some of the hosts are not this machine. */
  readonly forOthers: boolean;
  /** The API server is asked over the connection to this host; null: from here. */
  readonly from: Host | null;
  readonly reporter: Reporter;
}

/** Finds the cluster to join as the configuration says, before any host is asked. */
export async function discover(
  services: DiscoverPorts,
  { join, caFile, forOthers, from, reporter }: DiscoveryInput,
): Promise<DiscoveredCluster> {
  const { clock, signal } = services;
  const ports = { ...(from === null ? services : overHost(services, from)), clock, reporter, signal };
  return discoverCluster(ports, await planDiscovery(services, join, caFile), {
    timeoutMs: durationMs(join.timeouts?.discovery, 300_000),
    forOthers,
  });
}

/**
 * Where the API server is that is to be joined, as far as that is known before it is asked.
 * @returns `https://ADDRESS:PORT`; null: a URL has to be read first, a proxy is on the way, or the file is not right, which discovery says
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
      readFile: (named) => services.input.readText(besideKubeconfig(path, named)),
      tlsBootstrapToken,
    };
  }
  const { apiServerEndpoint: endpoint, token, caCertHashes: pins = [] } = discovery.bootstrapToken ?? {};
  if (endpoint === undefined || token === undefined)
    throw usageError('no cluster to join', 'Give ADDRESS:PORT with --token and --discovery-token-ca-cert-hash, or --discovery-file');
  if (caFile === undefined) return { kind: 'token', endpoint, token, pins, tlsBootstrapToken: tlsBootstrapToken ?? token };
  const caPem = await services.input.readText(caFile);
  return { kind: 'authority', endpoint, caPem, file: caFile, pins, tlsBootstrapToken: tlsBootstrapToken ?? token };
}
