import { AppError, isAppError, type Problem } from '../../../base/errors.ts';
import { revealText, type Secret } from '../../../base/text/secret.ts';
import { partsOfToken } from '../../../kube/bootstrap-token.ts';
import type { Cluster } from '../../../kube/cluster.ts';
import { decodeDataField, type KubeconfigUser, parseKubeconfig, resolveContext } from '../../../kube/kubeconfig.ts';
import { clientKeyOf, clusterInfoKubeconfig } from '../../../kube/kubeconfig-render.ts';
import { composeCertificateKubeconfig, composeTokenKubeconfig, type OperatorKubeconfig } from '../../../kube/operator-kubeconfig.ts';
import { parseCertificates } from '../../../x509/read-certificate.ts';
import { type BootstrapCredentials, tokenCredentials } from '../../config/bootstrap-credentials.ts';
import type { OperatorClusterTarget } from '../../control-plane/cluster-target.ts';
import * as problems from '../../discovery/discovery-problems.ts';
import { type FoundCluster, pinnedCertificates } from '../../discovery/found-cluster.ts';
import type { ApiServerTarget } from '../node/bootstrap-files.ts';
import { discoverByKubeconfig } from './discover-by-kubeconfig.ts';
import { discoverByToken } from './discover-by-token.ts';
import { type Deadline, type DiscoveryContext, deadlineIn, fetchKubeconfig } from './fetch.ts';

/** Discovery method and its input. */
export type DiscoveryPlan =
  | {
      readonly kind: 'token';
      readonly endpoint: string;
      readonly token: Secret;
      /** Empty: the token alone is trusted. */
      readonly pins: readonly string[];
      readonly tlsBootstrapToken: Secret;
    }
  /** The CA certificate is a local file (`--ca-cert`). */
  | {
      readonly kind: 'ca';
      readonly endpoint: string;
      readonly caPem: string;
      readonly file: string;
      readonly pins: readonly string[];
      readonly tlsBootstrapToken: Secret;
    }
  | {
      readonly kind: 'kubeconfig';
      readonly kubeconfig: OperatorKubeconfig;
      /** Reads a file of the local host that the kubeconfig names. */
      readonly readFile: (path: string) => Promise<string>;
      readonly tlsBootstrapToken: Secret | undefined;
    }
  /** `shown` is the URL without secrets. */
  | { readonly kind: 'url'; readonly url: string; readonly shown: string; readonly tlsBootstrapToken: Secret | undefined };

interface DiscoveryPorts extends DiscoveryContext {
  connectCluster(target: OperatorClusterTarget): Promise<Cluster>;
}

interface DiscoveryOptions {
  /** `timeouts.discovery`. */
  readonly timeoutMs: number;
  /** The local host queries the API server on behalf of other hosts. */
  readonly forOthers: boolean;
}

/** The cluster to join, connected with the bootstrap credentials. */
export interface DiscoveredCluster {
  readonly cluster: Cluster;
  readonly apiServer: ApiServerTarget;
  readonly credentials: BootstrapCredentials;
}

/**
 * Discovers the cluster and authenticates: join requires a verified API server and accepted credentials.
 * @throws AppError DISCOVERY_*, and the errors of the kubeconfig and the API server
 */
export async function discoverCluster(ports: DiscoveryPorts, plan: DiscoveryPlan, options: DiscoveryOptions): Promise<DiscoveredCluster> {
  const deadline = deadlineIn(options.timeoutMs, ports.clock);
  const { connect, explain, apiServer, credentials } = await find(ports, deadline, plan, options);
  const cluster = await ports.connectCluster(connect);
  try {
    await cluster.version();
    return { cluster, apiServer, credentials };
  } catch (error) {
    await cluster.close();
    throw isAppError(error) ? explain(error) : error;
  }
}

interface Found extends Omit<DiscoveredCluster, 'cluster'> {
  readonly connect: OperatorClusterTarget;
  explain(error: AppError): AppError;
}

async function find(ports: DiscoveryPorts, deadline: Deadline, plan: DiscoveryPlan, { forOthers }: DiscoveryOptions): Promise<Found> {
  switch (plan.kind) {
    case 'token': {
      const found = await discoverByToken(ports, deadline, {
        ...plan,
        forOthers,
        acceptsToken: (cluster) => acceptsToken(ports, cluster, plan.token),
      });
      return byToken(withoutMore(found), plan, plan.tlsBootstrapToken, plan.token.equals(plan.tlsBootstrapToken));
    }
    case 'ca': {
      const certificates = parseCertificates(plan.caPem) ?? [];
      if (certificates.length === 0) throw new AppError(problems.noCertificates(plan.file), { exitCode: 2 });
      const server = `https://${plan.endpoint}`;
      if (plan.pins.length > 0) pinnedCertificates({ server, caPem: plan.caPem, certificates }, plan.pins, plan.file);
      const text = clusterInfoKubeconfig({ server, caPem: plan.caPem });
      const kubeconfig = parseKubeconfig(text, plan.file);
      const { apiServer } = await discoverByKubeconfig(ports, deadline, { ...plan, kubeconfig, readFile: null, forOthers });
      return byToken(apiServer, plan, plan.tlsBootstrapToken, false);
    }
    case 'kubeconfig':
      return byKubeconfig(ports, deadline, { ...plan, text: revealText(plan.kubeconfig.text), file: plan.kubeconfig.file }, forOthers);
    case 'url': {
      const text = await fetchKubeconfig(ports, deadline, plan.url);
      return byKubeconfig(ports, deadline, { ...plan, text, file: plan.shown, kubeconfig: null, readFile: null }, forOthers);
    }
  }
}

async function byKubeconfig(
  ports: DiscoveryPorts,
  deadline: Deadline,
  {
    text,
    file,
    kubeconfig: own,
    readFile,
    tlsBootstrapToken,
  }: {
    readonly text: string;
    readonly file: string;
    /** Null: the kubeconfig is remote, and only its embedded data are used. */
    readonly kubeconfig: OperatorKubeconfig | null;
    readonly readFile: ((path: string) => Promise<string>) | null;
    readonly tlsBootstrapToken: Secret | undefined;
  },
  forOthers: boolean,
): Promise<Found> {
  const kubeconfig = parseKubeconfig(text, file);
  const { apiServer, credentials } = await discoverByKubeconfig(ports, deadline, { kubeconfig, readFile, tlsBootstrapToken, forOthers });
  if (tlsBootstrapToken !== undefined) return byToken(apiServer, { endpoint: endpointOf(apiServer.server) }, tlsBootstrapToken, false);
  return {
    apiServer,
    credentials,
    connect: { kubeconfig: own ?? composeEmbedded(apiServer, resolveContext(kubeconfig).user, file) },
    explain: (error) =>
      error.code === 'CLUSTER_UNAUTHORIZED' ? refusal(problems.credentialsRefused(file, 'unknown or expired (401)'), error) : error,
  };
}

/** A kubeconfig that contains only the embedded data of a remote one. */
function composeEmbedded(apiServer: ApiServerTarget, user: KubeconfigUser | null, file: string): OperatorKubeconfig {
  const shared = { ...apiServer, clusterName: 'kubernetes', user: user?.name ?? '' };
  const keyPem = clientKeyOf(user?.keyData);
  if (user?.certData !== undefined && keyPem !== null) {
    return composeCertificateKubeconfig({ ...shared, certificatePem: decodeDataField(user.certData), keyPem }, file);
  }
  if (user?.token === undefined) throw new AppError(problems.noCredentials(file), { exitCode: 2 });
  return composeTokenKubeconfig({ ...shared, token: user.token }, file);
}

function byToken(apiServer: ApiServerTarget, { endpoint }: { readonly endpoint: string }, token: Secret, isSigned: boolean): Found {
  const credentials = tokenCredentials(token);
  const kubeconfig = composeTokenKubeconfig({ ...apiServer, clusterName: 'kubernetes', user: credentials.user, token }, JOIN_TOKEN);
  return {
    apiServer,
    credentials,
    connect: { kubeconfig },
    explain: (error) => {
      if (error.code === 'CLUSTER_UNAUTHORIZED')
        return refusal(problems.tokenRefused(endpointOf(apiServer.server), partsOfToken(token)?.id ?? '', isSigned), error);
      if (error.code !== 'CLUSTER_UNREACHABLE' || endpointOf(apiServer.server) === endpoint) return error;
      const why = (error.problems[0]?.message ?? '').replace(`cannot reach the API server ${apiServer.server}: `, '');
      return new AppError(problems.namedServerUnreachable(endpoint, apiServer.server, why), { cause: error });
    },
  };
}

const JOIN_TOKEN = 'the join token';

async function acceptsToken(
  { connectCluster }: DiscoveryPorts,
  { server, caPem }: Pick<FoundCluster, 'server' | 'caPem'>,
  token: Secret,
): Promise<boolean | null> {
  const user = 'tls-bootstrap-token-user';
  const kubeconfig = composeTokenKubeconfig({ server, caPem, clusterName: 'kubernetes', user, token }, JOIN_TOKEN);
  const cluster = await connectCluster({ kubeconfig });
  try {
    await cluster.version();
    return true;
  } catch (error) {
    if (!isAppError(error)) throw error;
    return error.code === 'CLUSTER_UNAUTHORIZED' ? false : null;
  } finally {
    await cluster.close();
  }
}

function withoutMore({ server, caPem }: FoundCluster): ApiServerTarget {
  return { server, caPem };
}

function endpointOf(server: string): string {
  return server.replace(/^https:\/\//, '');
}

function refusal(problem: Problem, cause: unknown): AppError {
  return new AppError(problem, { exitCode: 3, cause });
}
