import { dirname, isAbsolute, resolve } from 'node:path';
import type { JoinConfiguration } from '../core/config/model.ts';
import { usageError } from '../core/errors.ts';
import type { Reporter } from '../ports/reporter.ts';
import type { Services } from '../ports/services.ts';
import { type DiscoveredCluster, type DiscoveryPlan, discoverCluster } from '../workflows/discovery/discover-cluster.ts';
import { withoutSecrets } from '../workflows/discovery/fetch-kubeconfig.ts';
import { durationMs } from './node-options.ts';

export interface DiscoveryInput {
  readonly join: JoinConfiguration;
  /** `--ca-cert`: says more than a pin of it. */
  readonly caFile: string | undefined;
  /** Some of the hosts are not this machine. */
  readonly forOthers: boolean;
  readonly reporter: Reporter;
}

/** Finds the cluster to join as the configuration says, before any host is asked. */
export async function discover(services: Services, { join, caFile, forOthers, reporter }: DiscoveryInput): Promise<DiscoveredCluster> {
  const { web, clock, signal, connectCluster } = services;
  return discoverCluster({ web, clock, reporter, signal, connectCluster }, await planDiscovery(services, join, caFile), {
    timeoutMs: durationMs(join.timeouts?.discovery, 300_000),
    forOthers,
  });
}

async function planDiscovery(
  services: Services,
  { discovery = {} }: JoinConfiguration,
  caFile: string | undefined,
): Promise<DiscoveryPlan> {
  const { file, tlsBootstrapToken } = discovery;
  const path = file?.kubeConfigPath;
  if (path !== undefined) {
    if (/^https:/i.test(path)) return { kind: 'url', url: path, shown: withoutSecrets(path), tlsBootstrapToken };
    const text = await services.input.readText(path);
    return { kind: 'kubeconfig', text, file: path, readFile: (named) => services.input.readText(besides(path, named)), tlsBootstrapToken };
  }
  const { apiServerEndpoint: endpoint, token, caCertHashes: pins = [] } = discovery.bootstrapToken ?? {};
  if (endpoint === undefined || token === undefined)
    throw usageError('no cluster to join', 'Give ADDRESS:PORT with --token and --discovery-token-ca-cert-hash, or --discovery-file');
  if (caFile === undefined) return { kind: 'token', endpoint, token, pins, tlsBootstrapToken: tlsBootstrapToken ?? token };
  const caPem = await services.input.readText(caFile);
  return { kind: 'authority', endpoint, caPem, file: caFile, pins, tlsBootstrapToken: tlsBootstrapToken ?? token };
}

/** Paths in a kubeconfig count from its folder. */
function besides(file: string, path: string): string {
  return isAbsolute(path) ? path : resolve(dirname(file), path);
}
