import { AppError, isAppError, type Position, type Problem } from '../base/errors.ts';
import { cleanPath } from '../base/text/clean-path.ts';
import { revealText, Secret, type SensitiveText } from '../base/text/secret.ts';
import { entryOf, parseSource, type SourceDocument, type SourceMap, type SourceNode } from '../codec/source.ts';
import { type PemBlock, pemBlocks } from '../x509/pem-blocks.ts';
import {
  decodeDataField,
  KUBECONFIG_LIMITS,
  type Kubeconfig,
  type KubeconfigCluster,
  type KubeconfigTarget,
  type KubeconfigUser,
  parseKubeconfig,
  resolveContext,
} from './kubeconfig.ts';
import { hostKubeconfigRefused, hostKubeconfigUnusable } from './kubeconfig-problems.ts';
import { clientCertificateKubeconfig, tokenKubeconfig } from './kubeconfig-render.ts';

/** A kubeconfig on a host, and access to the files that it references. */
export interface HostKubeconfigSource {
  readonly host: string;
  /** Path of the kubeconfig on the host; relative paths in it are relative to its folder. */
  readonly path: string;
  readonly text: string | SensitiveText;
  /** Reads a file of the host, never of the local host; null when it does not exist. */
  readonly readFile: (path: string) => Promise<string | null>;
  /** How to fix a rejected kubeconfig, a sentence without a final full stop. */
  readonly hint: string;
}

/** Not exported, and with a private field: only `rebuildHostKubeconfig` makes values of this type. */
class RebuiltKubeconfig {
  readonly #text: SensitiveText;
  /** `HOST:PATH`, for messages. */
  readonly file: string;
  /** `https://HOST:PORT`, as in the host's kubeconfig. */
  readonly server: string;
  /** PEM bundle, as on the host. */
  readonly caPem: string;

  constructor(text: SensitiveText, about: Pick<RebuiltKubeconfig, 'file' | 'server' | 'caPem'>) {
    this.#text = text;
    ({ file: this.file, server: this.server, caPem: this.caPem } = about);
  }

  /** A kubeconfig with one context that references no file and no program. */
  get text(): SensitiveText {
    return this.#text;
  }
}

/**
 * Server, CA and the host's own client certificate or token, embedded. `connectCluster` accepts no other text
 * from a host.
 */
export type HostKubeconfig = RebuiltKubeconfig;

/** Maximum size in characters; kubeconfigs and certificate bundles of hosts are far smaller. */
const MAX_LENGTH = 256 * 1024;

/**
 * Builds a new kubeconfig from the current context of a host's kubeconfig. The host's text is untrusted: it
 * must not make the local host run a program, read a local file, or send credentials to an unverified server.
 * @throws AppError with exit code 3, each problem with host, file, line and field: HOST_KUBECONFIG_REFUSED
 *   for fields that are not honoured (exec, auth-provider, username, password, impersonation,
 *   insecure-skip-tls-verify, proxy-url, a server that is not `https://HOST:PORT`); HOST_KUBECONFIG_UNUSABLE
 *   for a missing CA, certificate, key or token; the codes of `parseKubeconfig` and `resolveContext`
 * @see client-go tools/clientcmd (1.36) for the precedence of data over files, and of tokenFile over token
 */
export async function rebuildHostKubeconfig(source: HostKubeconfigSource): Promise<HostKubeconfig> {
  const text = revealText(source.text);
  const start: Position = { file: source.path, line: 1, column: 1 };
  if (text.length > MAX_LENGTH) {
    const place = { host: source.host, position: start, field: '', hint: source.hint };
    throw refusal([hostKubeconfigUnusable(place, `the kubeconfig has ${text.length} characters; the limit is ${MAX_LENGTH}`)]);
  }
  const { target, places } = readTarget(source, text);
  const reader = new HostFiles(source, places);
  const caPem = await reader.caBundle(target.cluster);
  const shared = {
    clusterName: target.cluster.name,
    context: target.context,
    server: target.cluster.server,
    caPem,
    user: target.user?.name ?? '',
    tlsServerName: target.cluster.tlsServerName,
  };
  const rebuilt = { file: `${source.host}:${source.path}`, server: target.cluster.server, caPem };
  const certificate = await reader.clientCertificate(target.user);
  if (certificate !== null) return new RebuiltKubeconfig(clientCertificateKubeconfig({ ...shared, ...certificate }), rebuilt);
  return new RebuiltKubeconfig(tokenKubeconfig({ ...shared, token: await reader.token(target.user) }), rebuilt);
}

/** The entries of the current context, for field names in messages. */
interface Places {
  readonly cluster: Entry;
  readonly user: Entry;
  readonly context: Entry;
}

interface Entry {
  /** For example `users[0].user`. */
  readonly path: string;
  readonly node: SourceMap | null;
  readonly document: SourceDocument;
}

function readTarget(source: HostKubeconfigSource, text: string): { readonly target: KubeconfigTarget; readonly places: Places } {
  try {
    const config = parseKubeconfig(text, source.path);
    const places = placesOf(config, parseSource(text, source.path, KUBECONFIG_LIMITS).documents);
    // Rejected fields are reported before unresolved entries, because they matter more.
    const refused = refusedFields(source, config, places);
    if (refused.length > 0) throw refusal(refused);
    return { target: resolveContext(config), places };
  } catch (error) {
    if (!isAppError(error)) throw error;
    throw new AppError(
      error.problems.map((problem) => ({ host: source.host, ...problem })),
      { exitCode: 3, cause: error },
    );
  }
}

function placesOf(config: Kubeconfig, documents: readonly SourceDocument[]): Places {
  const document = documents.find(({ root }) => root !== null) as SourceDocument;
  const entry = (list: 'clusters' | 'users' | 'contexts', member: string, name: string | undefined): Entry => {
    const index = config[list].findIndex((each) => each.name === name);
    const items = entryOf(document.root, list)?.value;
    const item = items?.kind === 'list' ? (items.items[index] ?? null) : null;
    const node = entryOf(item, member)?.value;
    return { path: index < 0 ? list : `${list}[${index}].${member}`, node: node?.kind === 'map' ? node : null, document };
  };
  const context = config.contexts.find(({ name }) => name === config.currentContext);
  return {
    cluster: entry('clusters', 'cluster', context?.cluster),
    user: entry('users', 'user', context?.user),
    context: entry('contexts', 'context', config.currentContext),
  };
}

const RUNS_A_PROGRAM = 'the local host would run a program that the host chooses';
const NO_BASIC = 'kube-apiserver has no basic authentication since 1.19';
const NO_IMPERSONATION = 'a host may use only its own identity';

/** Fields honoured in an operator's kubeconfig, and why a host's kubeconfig must not set them. */
const REFUSED_FIELDS: Readonly<Record<'cluster' | 'user', Readonly<Record<string, string>>>> = {
  cluster: {
    'insecure-skip-tls-verify': 'the API server would not be verified',
    'proxy-url': 'the local host would connect through a proxy that the file names',
  },
  user: {
    exec: RUNS_A_PROGRAM,
    'auth-provider': RUNS_A_PROGRAM,
    username: NO_BASIC,
    password: NO_BASIC,
    as: NO_IMPERSONATION,
    'as-uid': NO_IMPERSONATION,
    'as-groups': NO_IMPERSONATION,
    'as-user-extra': NO_IMPERSONATION,
  },
};

function refusedFields(source: HostKubeconfigSource, config: Kubeconfig, places: Places): readonly Problem[] {
  const fields = (['cluster', 'user'] as const).flatMap((kind) =>
    Object.entries(REFUSED_FIELDS[kind]).flatMap(([field, why]) => (isSet(places[kind], field) ? [{ kind, field, why }] : [])),
  );
  const context = config.contexts.find(({ name }) => name === config.currentContext);
  const cluster = config.clusters.find(({ name }) => name === context?.cluster);
  const refuse = (kind: keyof Places, field: string | null, why: string): Problem =>
    hostKubeconfigRefused(placeOf(source, places[kind], field), why);
  const server = whyServerIsRefused(cluster?.server ?? '');
  const isBadName = cluster?.tlsServerName !== undefined && !SERVER_NAME.test(cluster.tlsServerName);
  const names = [config.currentContext, context?.cluster, context?.user];
  const badNames = 'context, cluster and user names must have at most 253 characters and no control characters';
  return [
    ...fields.map(({ kind, field, why }) => refuse(kind, field, why)),
    ...(server === null ? [] : [refuse('cluster', 'server', server)]),
    ...(isBadName ? [refuse('cluster', 'tls-server-name', 'not a DNS name or IP address')] : []),
    ...(names.some((name) => name !== undefined && !NAME.test(name)) ? [refuse('context', null, badNames)] : []),
  ];
}

const SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$/;
/** Names that a terminal shows unchanged. */
const NAME = /^[^\p{C}]{0,253}$/u;

/** Null, false and empty values are treated as absent, as in client-go. */
function isSet({ node }: Entry, field: string): boolean {
  const value: SourceNode | undefined = entryOf(node, field)?.value;
  if (value === undefined) return false;
  if (value.kind === 'list') return value.items.length > 0;
  if (value.kind === 'map') return true;
  return value.scalar.type !== 'null' && value.text !== '' && !(value.scalar.type === 'bool' && !value.scalar.value);
}

/** The program sets path and query of requests. `resolveContext` reports a missing or malformed address. */
function whyServerIsRefused(server: string): string | null {
  if (!URL.canParse(server)) return null;
  const { protocol, username, password, pathname, search, hash } = new URL(server);
  if (protocol === 'http:') return 'the API server would not be verified without TLS';
  const isPlain = username === '' && password === '' && pathname === '/' && search === '' && hash === '';
  return isPlain ? null : 'must be https://HOST:PORT without user, path and query';
}

function placeOf({ host, hint }: HostKubeconfigSource, { path, node, document }: Entry, field: string | null) {
  const entry = field === null ? undefined : entryOf(node, field);
  const offset = entry?.keyOffset ?? node?.offset ?? document.root?.offset ?? 0;
  return { host, hint, position: document.positionAt(offset), field: field === null ? path : `${path}.${field}` };
}

/** Reads the data that kubeconfig entries embed or reference; files are read on the host. */
class HostFiles {
  readonly #source: HostKubeconfigSource;
  readonly #places: Places;

  constructor(source: HostKubeconfigSource, places: Places) {
    this.#source = source;
    this.#places = places;
  }

  async caBundle({ caData, caFile }: KubeconfigCluster): Promise<string> {
    const field = caData === undefined ? 'certificate-authority' : 'certificate-authority-data';
    const pem = await this.#content('cluster', field, caData, caFile);
    if (pem === null) throw this.#unusable('cluster', 'certificate-authority-data', 'the cluster has no CA certificate');
    return this.#blocks('cluster', field, pem, 'certificate', ({ label }) => label === 'CERTIFICATE').join('');
  }

  /** Null when the user has no client certificate. */
  async clientCertificate(user: KubeconfigUser | null): Promise<{ readonly certificatePem: string; readonly keyPem: Secret } | null> {
    if (user === null || (user.certData === undefined && user.certFile === undefined)) return null;
    const field = user.certData === undefined ? 'client-certificate' : 'client-certificate-data';
    const keyField = user.keyData === undefined ? 'client-key' : 'client-key-data';
    const certificate = await this.#content('user', field, user.certData, user.certFile);
    const key = await this.#content('user', keyField, user.keyData?.reveal(), user.keyFile);
    // A kubelet stores both in one file: split them.
    const certificates = this.#blocks('user', field, certificate ?? '', 'certificate', ({ label }) => label === 'CERTIFICATE');
    const [keyPem = ''] = this.#blocks('user', keyField, key ?? '', 'private key', ({ label }) => label.endsWith('PRIVATE KEY'));
    return { certificatePem: certificates.join(''), keyPem: new Secret(keyPem) };
  }

  /** @throws AppError HOST_KUBECONFIG_UNUSABLE when the user has no token */
  async token(user: KubeconfigUser | null): Promise<Secret> {
    const field = user?.tokenFile === undefined ? 'token' : 'tokenFile';
    const content = (await this.#content('user', field, undefined, user?.tokenFile)) ?? user?.token?.reveal() ?? '';
    const token = content.trim();
    if (token === '')
      throw this.#unusable('user', user?.tokenFile === undefined ? null : field, 'the user has neither a client certificate nor a token');
    if (!TOKEN.test(token)) throw this.#unusable('user', field, 'the token contains invalid characters');
    return new Secret(token);
  }

  /** The content of a `-data` field, else of the referenced file on the host. Null when neither is set. */
  async #content(kind: 'cluster' | 'user', field: string, data: string | undefined, file: string | undefined): Promise<string | null> {
    if (data !== undefined) return decodeDataField(data);
    if (file === undefined) return null;
    if (!PATH.test(file)) throw this.#unusable(kind, field, 'not a valid path');
    const path = cleanPath(file.startsWith('/') ? file : `${this.#source.path.slice(0, this.#source.path.lastIndexOf('/') + 1)}${file}`);
    const content = await this.#source.readFile(path);
    if (content === null) throw this.#unusable(kind, field, `the file ${path} does not exist on the host`);
    if (content.length > MAX_LENGTH)
      throw this.#unusable(kind, field, `${path} has ${content.length} characters; the limit is ${MAX_LENGTH}`);
    return content;
  }

  #blocks(kind: 'cluster' | 'user', field: string, pem: string, what: string, isDesired: (block: PemBlock) => boolean): readonly string[] {
    const found = pemBlocks(pem).filter(isDesired);
    if (found.length === 0) throw this.#unusable(kind, field, `contains no PEM ${what}`);
    return found.map((block) => block.pem);
  }

  #unusable(kind: 'cluster' | 'user', field: string | null, why: string): AppError {
    return refusal([hostKubeconfigUnusable(placeOf(this.#source, this.#places[kind], field), why)]);
  }
}

const PATH = /^[^\p{C}]{1,4096}$/u;
/** Characters that are valid in an Authorization header. */
const TOKEN = /^[\x21-\x7e]{1,65536}$/;

function refusal(problems: readonly Problem[]): AppError {
  return new AppError(problems, { exitCode: 3 });
}
