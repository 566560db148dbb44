import { AppError, isAppError, type Problem } from '../../../base/errors.ts';
import type { Secret } from '../../../base/text/secret.ts';
import type { Trust } from '../../../kube/https-client.ts';
import {
  credentialKinds,
  decodeDataField,
  discoveryCluster,
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigUser,
  resolveContext,
} from '../../../kube/kubeconfig.ts';
import { parseCertificates } from '../../../x509/read-certificate.ts';
import { type BootstrapCredentials, tokenCredentials, userCredentials } from '../../config/bootstrap-credentials.ts';
import * as problems from '../../discovery/discovery-problems.ts';
import { type FoundCluster, readFoundCluster } from '../../discovery/found-cluster.ts';
import type { ApiServerTarget } from '../node/bootstrap-files.ts';
import { type Deadline, type DiscoveryContext, fetchClusterInfo, waitFor } from './fetch.ts';

export interface KubeconfigDiscovery {
  readonly kubeconfig: Kubeconfig;
  /** Reads a file named in the kubeconfig; null: the kubeconfig is remote and must name neither files nor programs. */
  readonly readFile: ((path: string) => Promise<string>) | null;
  /** Overrides the credentials of the kubeconfig. */
  readonly tlsBootstrapToken: Secret | undefined;
  /** The local host queries the API server on behalf of other hosts. */
  readonly forOthers: boolean;
}

/**
 * Discovers the cluster by a trusted kubeconfig. The API server is verified with the kubeconfig's CA, or with the
 * system CAs of the local host if the kubeconfig has none; then cluster-info provides the CA. If cluster-info does not
 * exist or may not be read, the kubeconfig alone must be complete.
 * @throws AppError DISCOVERY_*: exit code 2 for an invalid kubeconfig, 3 for an error that waiting cannot fix, 1 after
 * the timeout
 * @see kubeadm 1.36 discovery/file ValidateConfigInfo, which waits until the timeout if cluster-info does not exist
 */
export async function discoverByKubeconfig(
  context: DiscoveryContext,
  deadline: Deadline,
  input: KubeconfigDiscovery,
): Promise<{
  readonly apiServer: ApiServerTarget;
  readonly credentials: BootstrapCredentials;
}> {
  const { kubeconfig, tlsBootstrapToken } = input;
  const cluster = discoveryCluster(kubeconfig);
  const user = kubeconfig.currentContext === '' ? null : resolveContext(kubeconfig).user;
  requireSecure(kubeconfig.file, cluster);
  requireEmbedded(input, cluster, user);
  const ownCa = await caOf(input, cluster);
  const credentials = tlsBootstrapToken === undefined ? await credentialsOf(input, user) : tokenCredentials(tlsBootstrapToken);
  const info = await waitFor(context, deadline, () => refresh(context, deadline, input, { cluster, ownCa }));
  const named = info === null ? null : clusterNamedBy(info, kubeconfig.file);
  if (named !== null && named.server !== cluster.server) {
    const message = `${kubeconfig.file} names ${cluster.server} as the API server, but ConfigMap kube-public/cluster-info names ${named.server}: using the server of the file`;
    context.reporter.report({ level: 'warning', code: 'DISCOVERY_OTHER_SERVER', message });
  }
  const caPem = ownCa ?? named?.caPem;
  if (caPem === undefined) throw mistake(problems.noCa(kubeconfig.file));
  const { server, tlsServerName, proxyUrl } = cluster;
  return { apiServer: { server, caPem, tlsServerName, proxyUrl }, credentials };
}

/** Reads cluster-info over verified TLS; null if the API server denies it. */
async function refresh(
  context: DiscoveryContext,
  deadline: Deadline,
  { kubeconfig, forOthers }: KubeconfigDiscovery,
  { cluster, ownCa }: { readonly cluster: KubeconfigCluster; readonly ownCa: string | null },
): Promise<{ readonly done: string | null } | { readonly retryReason: Problem }> {
  const trust: Trust = ownCa === null ? { kind: 'machine' } : { kind: 'ca', pem: ownCa };
  const { reading } = await fetchClusterInfo(context, deadline, {
    server: cluster.server,
    endpoint: cluster.server.replace(/^https:\/\//, ''),
    trust,
    expectedCa: ownCa === null ? 'a system CA of the local host' : `the CA in ${kubeconfig.file}`,
    serverName: cluster.tlsServerName,
    proxyUrl: cluster.proxyUrl,
    remote: null,
    forOthers,
  });
  switch (reading.kind) {
    case 'found':
      return { done: reading.info.kubeconfig };
    case 'denied':
      return { done: null };
    case 'wait':
      return { retryReason: reading.problem };
    case 'refuse':
      throw new AppError(reading.problem, { exitCode: 3 });
  }
}

/** The cluster in cluster-info; null if invalid: the kubeconfig alone may be complete. */
function clusterNamedBy(text: string, file: string): FoundCluster | null {
  try {
    return readFoundCluster(text, file);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

function requireSecure(file: string, { server, insecureSkipTlsVerify }: KubeconfigCluster): void {
  if (insecureSkipTlsVerify)
    throw mistake(problems.insecureKubeconfig(file, 'insecure-skip-tls-verify accepts any server as the API server'));
  if (!server.startsWith('https://'))
    throw mistake(problems.insecureKubeconfig(file, `${server} is not https, so any server could impersonate the API server`));
}

function requireEmbedded({ readFile, kubeconfig }: KubeconfigDiscovery, cluster: KubeconfigCluster, user: KubeconfigUser | null): void {
  if (readFile !== null) return;
  const programs = [...(user?.exec === undefined ? [] : ['exec']), ...(user?.authProvider === undefined ? [] : ['auth-provider'])];
  if (programs.length > 0) throw mistake(problems.kubeconfigRunsProgram(kubeconfig.file, programs));
  const fields = [
    ['certificate-authority', cluster.caFile],
    ['client-certificate', user?.certFile],
    ['client-key', user?.keyFile],
    ['tokenFile', user?.tokenFile],
  ].flatMap(([field, path]) => (path === undefined ? [] : [field as string]));
  if (fields.length > 0) throw mistake(problems.kubeconfigReadsLocalFiles(kubeconfig.file, fields));
}

async function caOf({ kubeconfig, readFile }: KubeconfigDiscovery, { caData, caFile }: KubeconfigCluster): Promise<string | null> {
  const pem = caData !== undefined ? decodeDataField(caData) : caFile === undefined ? null : await readFile?.(caFile);
  if (pem === null || pem === undefined) return null;
  const certificates = parseCertificates(pem);
  if (certificates === null || certificates.length === 0) throw mistake(problems.noCertificates(caFile ?? kubeconfig.file));
  return pem;
}

/** The credentials of the kubeconfig with embedded file contents: the files do not exist on the joining host. */
async function credentialsOf({ kubeconfig, readFile }: KubeconfigDiscovery, user: KubeconfigUser | null): Promise<BootstrapCredentials> {
  const context = kubeconfig.contexts.find(({ name }) => name === kubeconfig.currentContext);
  if (user === null || context === undefined || credentialKinds(user).length === 0) throw mistake(problems.noCredentials(kubeconfig.file));
  const read = async (path: string | undefined) => (path === undefined || readFile === null ? undefined : readFile(path));
  return userCredentials(user, context, {
    certificate: await read(user.certFile),
    key: await read(user.keyFile),
    token: await read(user.tokenFile),
  });
}

function mistake(problem: Problem): AppError {
  return new AppError(problem, { exitCode: 2 });
}
