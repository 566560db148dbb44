import { createHash, type X509Certificate } from 'node:crypto';
import { type Agent, Agent as HttpAgent, type OutgoingHttpHeaders } from 'node:http';
import { type AgentOptions, Agent as HttpsAgent, type RequestOptions } from 'node:https';
import { isAbsolute, join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { x509CertificateOf } from '../../x509/read-certificate.ts';
import { partsOfToken } from '../bootstrap-token.ts';
import { clusterCredentials } from '../cluster-problems.ts';
import type { Dial } from '../dial.ts';
import { decodeDataField, type KubeconfigRoot, type KubeconfigTarget, type KubeconfigUser } from '../kubeconfig.ts';
import { kubeconfigReferenceUnreadable } from '../kubeconfig-problems.ts';
import type { PrepareRequestOptions } from './client-node-options.ts';
import { DialingAgent } from './dialing-agent.ts';
import { readTextFile } from './read-text-file.ts';
import { checkServerIdentity } from './server-identity.ts';
import { tunnelAgent } from './tunnel.ts';

/** Connects to one API server with the credentials of one kubeconfig context. */
export interface Connection {
  /**
   * Files and credential plugins are read again periodically.
   * @throws AppError KUBECONFIG_FILE_UNREADABLE, CLUSTER_UNAUTHORIZED when a plugin returns no credentials
   */
  open(): Promise<{
    /** Keeps connections alive, so that many requests share one TLS handshake. */
    readonly agent: Agent;
    readonly headers: OutgoingHttpHeaders;
  }>;
  /** Discards credentials that the server rejected. False: the kubeconfig has no source of new ones. */
  renew(): boolean;
  /** Why the server may reject them: an expired client certificate, or a bootstrap token, which is short-lived. */
  credentialFailure(): string | undefined;
  close(): void;
}

export interface ConnectionOptions {
  readonly target: KubeconfigTarget;
  readonly file: string;
  /** Base of relative paths in the kubeconfig. */
  readonly folder: string;
  /** The root directory of the paths in the kubeconfig. Absent: that of the local host. */
  readonly root?: KubeconfigRoot | undefined;
  readonly clock: Clock;
  /** Opens connections to the server instead of the local host; the proxy is ignored then. */
  readonly dial?: Dial | undefined;
  readonly credentialTimeoutMs: number;
}

/** Plugins, token files and certificate files are read again after this time. */
const REFRESH_MS = 30_000;

/** Creates a connection that opens with the first request. */
export function createConnection(options: ConnectionOptions): Connection {
  const { target, clock, file, folder } = options;
  const dynamic = isDynamic(target);
  let prepare: PrepareRequestOptions | null = null;
  let current: Awaited<ReturnType<typeof openNow>> | null = null;
  const refresh = async (): Promise<NonNullable<typeof current>> => {
    const material = await readMaterial(options);
    prepare ??= needsClientNode(target) ? await loadClientNode(target, folder) : plainOptions(options);
    const prepared = await withinTime(prepare(material), options);
    const identity = identityOf(prepared);
    if (current !== null && current.identity !== identity) retire(current.agent);
    const agent = current?.identity === identity ? current.agent : agentOf(options, prepared);
    current = openNow(options, prepared, { agent, identity });
    return current;
  };
  return {
    open: async () => (current !== null && (!dynamic || clock.now().getTime() - current.since < REFRESH_MS) ? current : refresh()),
    renew: () => {
      if (!dynamic) return false;
      prepare = null;
      current = current && { ...current, since: Number.NEGATIVE_INFINITY };
      return true;
    },
    credentialFailure: () => {
      const token = target.user?.token && partsOfToken(target.user.token);
      if (token) return `Create a new token with kubeletadm token create: the bootstrap token ${token.id} has expired or was deleted`;
      const expires = current?.certificate ? new Date(current.certificate.validTo) : null;
      if (expires === null || expires > clock.now()) return undefined;
      return `Renew the client certificate in ${file}, which expired on ${expires.toISOString().slice(0, 10)}, or use another kubeconfig`;
    },
    close: () => current?.agent.destroy(),
  };
}

function openNow(
  { target: { user }, clock }: ConnectionOptions,
  prepared: RequestOptions,
  { agent, identity }: { readonly agent: Agent; readonly identity: string },
) {
  const headers = { ...(prepared.headers as OutgoingHttpHeaders | undefined), ...basicAuth(user), ...impersonationHeaders(user) };
  return { agent, headers, identity, since: clock.now().getTime(), certificate: certificateOf(prepared) };
}

/** Files are read at their path below the root directory each time: their links may change. */
async function readMaterial({
  target: { cluster, user },
  file,
  folder,
  root,
}: ConnectionOptions): Promise<Parameters<PrepareRequestOptions>[0]> {
  const read = async (path: string, field: string): Promise<string> => {
    const full = isAbsolute(path) ? path : join(folder, path);
    const local = root === undefined ? full : await root.pathOf(full);
    return readTextFile(local, (why, cause) => kubeconfigReferenceUnreadable({ file, field, path: full, why }, { cause }));
  };
  const base64 = async (path: string | undefined, field: string): Promise<string | undefined> =>
    path === undefined ? undefined : Buffer.from(await read(path, field), 'utf8').toString('base64');
  const found = {
    caData: (await base64(cluster.caFile, 'certificate-authority')) ?? cluster.caData,
    certData: (await base64(user?.certFile, 'client-certificate')) ?? user?.certData,
    keyData: (await base64(user?.keyFile, 'client-key')) ?? user?.keyData?.reveal(),
    token: user?.tokenFile === undefined ? user?.token?.reveal() : (await read(user.tokenFile, 'tokenFile')).trim(),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/** Only plugins need the library, whose loading takes longer than a request. */
function needsClientNode({ user }: KubeconfigTarget): boolean {
  return user?.exec !== undefined || user?.authProvider !== undefined;
}

async function loadClientNode(target: KubeconfigTarget, folder: string): Promise<PrepareRequestOptions> {
  const { clientNodeOptions } = await import('./client-node-options.ts');
  return clientNodeOptions(target, folder);
}

function plainOptions({ target: { cluster } }: ConnectionOptions): PrepareRequestOptions {
  return async ({ caData, certData, keyData, token }) => {
    const pem = (name: 'ca' | 'cert' | 'key', data: string | undefined) => (data === undefined ? {} : { [name]: decodeDataField(data) });
    const tls = {
      // Accepts an intermediate CA as a trust anchor, as client-go does.
      ...(caData === undefined ? {} : { ...pem('ca', caData), allowPartialTrustChain: true }),
      ...pem('cert', certData),
      ...pem('key', keyData),
      ...(cluster.tlsServerName === undefined ? {} : { servername: cluster.tlsServerName }),
      ...(cluster.insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
    };
    return { ...tls, ...(token === undefined ? {} : { headers: { Authorization: `Bearer ${token}` } }) };
  };
}

/** The check belongs to the agent: connections of requests that bring their own are not used again. */
function agentOf({ target: { cluster }, dial }: ConnectionOptions, prepared: RequestOptions): Agent {
  const { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized, allowPartialTrustChain } = prepared;
  const given = { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized, allowPartialTrustChain };
  const tls: AgentOptions = {
    // Node takes a member that is undefined for one that was given.
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    checkServerIdentity,
    keepAlive: true,
  };
  if (dial !== undefined) return new DialingAgent(dial, tls);
  if (cluster.server.startsWith('http:')) return new HttpAgent({ keepAlive: true });
  return cluster.proxyUrl === undefined ? new HttpsAgent(tls) : tunnelAgent(new URL(cluster.proxyUrl), tls);
}

async function withinTime(
  prepared: Promise<RequestOptions>,
  { target, credentialTimeoutMs, clock }: ConnectionOptions,
): Promise<RequestOptions> {
  const stop = new AbortController();
  const tooSlow = `no response within ${credentialTimeoutMs / 1000} s`;
  const timeout = clock.sleep(credentialTimeoutMs, stop.signal).then(() => {
    throw new Error(tooSlow);
  });
  try {
    return await Promise.race([prepared, timeout]);
  } catch (error) {
    const { exec } = target.user ?? {};
    const source = exec ? `the credential plugin ${JSON.stringify(exec.command ?? '')}` : 'the auth-provider';
    const { code } = error as NodeJS.ErrnoException;
    // execvp(3) also returns EACCES when the program does not exist and one directory of PATH is not
    // searchable.
    const refused = (why: string, hint: string) => clusterCredentials(target.cluster.server, `${source}: ${why}`, hint, { cause: error });
    if (code === 'EACCES') {
      const hint = 'Install the credential plugin, or check its mode, PATH and users[].user.exec.command in the kubeconfig';
      throw refused('program not found or not executable by this user', hint);
    }
    if (code === 'ENOENT')
      throw refused('program not found', 'Install the credential plugin, or check users[].user.exec.command in the kubeconfig');
    const why = error instanceof Error && error.message === tooSlow ? tooSlow : 'execution failed';
    const hint = exec
      ? 'Run the credential plugin by hand: the plugin must print an ExecCredential'
      : 'Authenticate again, or check users[].user.auth-provider in the kubeconfig';
    throw refused(why, hint);
  } finally {
    stop.abort();
  }
}

/** Pending requests finish, then the agent's connections are closed. */
function retire(agent: Agent): void {
  agent.maxFreeSockets = 0;
  for (const socket of Object.values(agent.freeSockets).flat()) socket?.destroy();
}

/** Identifies the TLS credentials: connections with other keys are not reused. */
function identityOf({ ca, cert, key, servername, rejectUnauthorized }: RequestOptions): string {
  const parts = [ca, cert, key, servername, rejectUnauthorized].map((part) => String(part ?? ''));
  return createHash('sha256').update(parts.join('\0')).digest('hex');
}

function certificateOf({ cert }: RequestOptions): X509Certificate | null {
  return cert === undefined ? null : x509CertificateOf(cert as string | Buffer);
}

function isDynamic({ cluster, user }: KubeconfigTarget): boolean {
  const files = [cluster.caFile, user?.certFile, user?.keyFile, user?.tokenFile];
  return files.some((path) => path !== undefined) || user?.exec !== undefined || user?.authProvider !== undefined;
}

function basicAuth(user: KubeconfigUser | null): OutgoingHttpHeaders {
  if (user?.username === undefined) return {};
  return { Authorization: `Basic ${Buffer.from(`${user.username}:${user.password?.reveal() ?? ''}`, 'utf8').toString('base64')}` };
}

/** None without `as` in a user entry. @see k8s.io/client-go transport.NewImpersonatingRoundTripper (1.36) */
export function impersonationHeaders(user: KubeconfigUser | null): OutgoingHttpHeaders {
  const as = user?.impersonate;
  if (!as) return {};
  const extra = Object.entries(as.extra).map(([key, values]) => [`Impersonate-Extra-${escapeHeaderKey(key)}`, values.map(utf8Header)]);
  return {
    'Impersonate-User': utf8Header(as.user),
    ...(as.groups.length > 0 ? { 'Impersonate-Group': as.groups.map(utf8Header) } : {}),
    ...(as.uid === undefined ? {} : { 'Impersonate-Uid': utf8Header(as.uid) }),
    ...Object.fromEntries(extra),
  };
}

/** Go sends the bytes of UTF-8; Node sends one byte per character. */
function utf8Header(value: string): string {
  return Buffer.from(value, 'utf8').toString('latin1');
}

/** Percent-encodes each byte that is invalid in a header name, and the percent sign itself. */
function escapeHeaderKey(key: string): string {
  return utf8Header(key).replace(
    /[^!#$&'*+.^_`|~0-9A-Za-z-]/g,
    (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}
