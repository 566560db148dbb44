import { AppError, isAppError, type Problem } from '../../../base/errors.ts';
import type { Secret } from '../../../base/text/secret.ts';
import {
  credentialKinds,
  decodeDataField,
  discoveryCluster,
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigUser,
  resolveContext,
} from '../../../kube/kubeconfig.ts';
import type { Trust } from '../../../kube/web.ts';
import { parseCertificates } from '../../../x509/certificate.ts';
import { type BootstrapCredentials, tokenCredentials, userCredentials } from '../../config/bootstrap-credentials.ts';
import * as problems from '../../discovery/discovery-problems.ts';
import { type FoundCluster, readFoundCluster } from '../../discovery/found-cluster.ts';
import type { ApiServerTarget } from '../bootstrap-files.ts';
import { readClusterInfo } from './read-cluster-info.ts';
import { type Deadline, type DiscoveryContext, waitFor } from './wait-for.ts';

export interface KubeconfigDiscovery {
  readonly kubeconfig: Kubeconfig;
  /** Reads a file that the kubeconfig names; null: it comes from elsewhere and may name neither files nor programs. */
  readonly readFile: ((path: string) => Promise<string>) | null;
  /** In place of the credentials in the kubeconfig. */
  readonly tlsBootstrapToken: Secret | undefined;
  /** The API server is asked from here for hosts elsewhere. */
  readonly forOthers: boolean;
}

/** The cluster of a kubeconfig and what to log in with. */
export interface KubeconfigFinding {
  readonly apiServer: ApiServerTarget;
  readonly credentials: BootstrapCredentials;
}

/**
 * Finds the cluster by a kubeconfig that was got in a way that is trusted. The API server has to prove its name by the CA in it, else by those of this
 * machine. cluster-info is asked for what the file lacks, the CA; when it may not be read or is not there, the file is enough.
 * @throws AppError DISCOVERY_*: exit code 2 for what is wrong with the file, 3 for what is wrong there, 1 when the time is over
 * @see kubeadm 1.36 discovery/file ValidateConfigInfo, which waits for the end of its time when there is no cluster-info
 */
export async function discoverByKubeconfig(
  context: DiscoveryContext,
  deadline: Deadline,
  input: KubeconfigDiscovery,
): Promise<KubeconfigFinding> {
  const { kubeconfig, tlsBootstrapToken } = input;
  const cluster = discoveryCluster(kubeconfig);
  const user = kubeconfig.currentContext === '' ? null : resolveContext(kubeconfig).user;
  requireSecure(kubeconfig.file, cluster);
  requireEmbedded(input, cluster, user);
  const ownCa = await authorityOf(input, cluster);
  const credentials = tlsBootstrapToken === undefined ? await credentialsOf(input, user) : tokenCredentials(tlsBootstrapToken);
  const info = await waitFor(context, deadline, () => refresh(context, deadline, input, { cluster, ownCa }));
  const named = info === null ? null : clusterNamedBy(info, kubeconfig.file);
  if (named !== null && named.server !== cluster.server) {
    const message = `${kubeconfig.file} names ${cluster.server} as the API server, kube-public/cluster-info ${named.server}: the file is followed`;
    context.reporter.report({ level: 'warning', code: 'DISCOVERY_OTHER_SERVER', message });
  }
  const caPem = ownCa ?? named?.caPem;
  if (caPem === undefined) throw mistake(problems.noAuthority(kubeconfig.file));
  const { server, tlsServerName, proxyUrl } = cluster;
  const route = { ...(tlsServerName === undefined ? {} : { tlsServerName }), ...(proxyUrl === undefined ? {} : { proxyUrl }) };
  return { apiServer: { server, caPem, ...route }, credentials };
}

/** The text of cluster-info, over TLS that is verified; null when it is not for us. */
async function refresh(
  context: DiscoveryContext,
  deadline: Deadline,
  { kubeconfig, forOthers }: KubeconfigDiscovery,
  { cluster, ownCa }: { readonly cluster: KubeconfigCluster; readonly ownCa: string | null },
): Promise<{ readonly done: string | null } | { readonly wait: Problem }> {
  const trust: Trust = ownCa === null ? { kind: 'machine' } : { kind: 'ca', pem: ownCa };
  const { reading } = await readClusterInfo(context, deadline, {
    server: cluster.server,
    endpoint: cluster.server.replace(/^https:\/\//, ''),
    trust,
    authority: ownCa === null ? 'an authority that this machine trusts' : `the CA in ${kubeconfig.file}`,
    ...(cluster.tlsServerName === undefined ? {} : { serverName: cluster.tlsServerName }),
    ...(cluster.proxyUrl === undefined ? {} : { proxyUrl: cluster.proxyUrl }),
    remote: null,
    forOthers,
  });
  switch (reading.kind) {
    case 'found':
      return { done: reading.info.kubeconfig };
    case 'denied':
      return { done: null };
    case 'wait':
      return { wait: reading.problem };
    case 'refuse':
      throw new AppError(reading.problem, { exitCode: 3 });
  }
}

/** cluster-info adds to the file; where it is of no use, the file is enough. */
function clusterNamedBy(text: string, file: string): FoundCluster | null {
  try {
    return readFoundCluster(text, file);
  } catch (error) {
    if (isAppError(error)) return null;
    throw error;
  }
}

function requireSecure(file: string, { server, insecureSkipTlsVerify }: KubeconfigCluster): void {
  if (insecureSkipTlsVerify) throw mistake(problems.insecureKubeconfig(file, 'insecure-skip-tls-verify would have anybody believed'));
  if (!server.startsWith('https://'))
    throw mistake(problems.insecureKubeconfig(file, `${server} would have anybody believed: it is not https`));
}

function requireEmbedded({ readFile, kubeconfig }: KubeconfigDiscovery, cluster: KubeconfigCluster, user: KubeconfigUser | null): void {
  if (readFile !== null) return;
  const programs = [...(user?.exec === undefined ? [] : ['exec']), ...(user?.authProvider === undefined ? [] : ['auth-provider'])];
  if (programs.length > 0) throw mistake(problems.namesPrograms(kubeconfig.file, programs));
  const fields = [
    ['certificate-authority', cluster.caFile],
    ['client-certificate', user?.certFile],
    ['client-key', user?.keyFile],
    ['tokenFile', user?.tokenFile],
  ].flatMap(([field, path]) => (path === undefined ? [] : [field as string]));
  if (fields.length > 0) throw mistake(problems.namesLocalFiles(kubeconfig.file, fields));
}

async function authorityOf({ kubeconfig, readFile }: KubeconfigDiscovery, { caData, caFile }: KubeconfigCluster): Promise<string | null> {
  const pem = caData !== undefined ? decodeDataField(caData) : caFile === undefined ? null : await readFile?.(caFile);
  if (pem === null || pem === undefined) return null;
  const certificates = parseCertificates(pem);
  if (certificates === null || certificates.length === 0) throw mistake(problems.noCertificates(caFile ?? kubeconfig.file));
  return pem;
}

/** The credentials of the file, with what it keeps in other files: on the host there are none of those. */
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
