import { AppError, type Position, type Problem } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { Secret } from '../base/text/secret.ts';
import { trimTrailing } from '../base/text/trim-trailing.ts';
import {
  entryOf,
  parseSource,
  type SourceDocument,
  type SourceLimits,
  type SourceMap,
  type SourceNode,
  sourceToJson,
} from '../codec/source.ts';
import { kubeconfigInvalid, kubeconfigNoContext, kubeconfigNotFound } from './kubeconfig-problems.ts';

/** Limits for kubeconfigs: an operator's file may contain hundreds of clusters with their certificates. */
export const KUBECONFIG_LIMITS: SourceLimits = {
  characters: 4 * 1024 * 1024,
  nodes: 200_000,
  hint: 'Check that this is a kubeconfig',
};

/** Another root directory (`--rootfs`), below which a kubeconfig and the files that it references lie. */
export interface KubeconfigRoot {
  /** Its path on the local host, for messages. */
  readonly directory: string;
  /** The path on the local host of a path below the root; links never lead out of the root. */
  pathOf(path: string): Promise<string>;
}

export interface KubeconfigCluster {
  readonly name: string;
  readonly position: Position;
  /** For example `https://10.0.0.1:6443`, without a trailing slash. */
  readonly server: string;
  /** Base64 of the PEM bundle, unchanged. */
  readonly caData?: string;
  readonly caFile?: string;
  readonly insecureSkipTlsVerify: boolean;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string | undefined;
}

export interface KubeconfigUser {
  readonly name: string;
  readonly position: Position;
  readonly token?: Secret;
  readonly tokenFile?: string;
  /** Base64 of the PEM, unchanged. */
  readonly certData?: string;
  readonly certFile?: string;
  /** Base64 of the PEM, unchanged. */
  readonly keyData?: Secret;
  readonly keyFile?: string;
  readonly username?: string;
  readonly password?: Secret;
  /** The `exec` entry: a credential plugin. */
  readonly exec?: JsonObject;
  /** The `auth-provider` entry, e.g. OIDC. */
  readonly authProvider?: JsonObject;
  readonly impersonate?: Impersonation;
  /** Members that require `as`, which is missing. */
  readonly withoutAs?: readonly string[];
}

/** `as`, `as-groups`, `as-uid`, `as-user-extra`. */
interface Impersonation {
  readonly user: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface KubeconfigContext {
  readonly name: string;
  readonly position: Position;
  readonly cluster: string;
  readonly user: string;
  readonly namespace?: string;
}

export interface Kubeconfig {
  readonly file: string;
  readonly start: Position;
  readonly currentContext: string;
  readonly currentContextPosition: Position;
  readonly clusters: readonly KubeconfigCluster[];
  readonly contexts: readonly KubeconfigContext[];
  readonly users: readonly KubeconfigUser[];
}

/** A resolved context with its cluster and user. `user` is null for anonymous access. */
export interface KubeconfigTarget {
  readonly context: string;
  readonly cluster: KubeconfigCluster;
  readonly user: KubeconfigUser | null;
  readonly namespace: string;
}

/**
 * Parses a kubeconfig (YAML or JSON). Only the structure is validated: unused entries may be incomplete.
 * @throws AppError with all problems, exit code 2: CONFIG_SYNTAX and similar codes, KUBECONFIG_INVALID
 */
export function parseKubeconfig(text: string, file: string): Kubeconfig {
  const { documents, problems } = parseSource(text, file, KUBECONFIG_LIMITS);
  const first = documents.find((document) => document.root !== null);
  if (problems.length > 0) throw new AppError(problems, { exitCode: 2 });
  if (first?.root?.kind !== 'map') {
    const what =
      first === undefined ? 'the kubeconfig is empty' : 'not a kubeconfig: the file must contain apiVersion: v1 and kind: Config';
    throw new AppError(kubeconfigInvalid(what, { file, line: 1, column: 1 }), { exitCode: 2 });
  }
  const reader = new KubeconfigReader(first, first.root);
  const config = reader.read();
  if (reader.problems.length > 0) throw new AppError(reader.problems, { exitCode: 2 });
  return config;
}

/** By default that of `current-context`. @throws AppError KUBECONFIG_NO_CONTEXT or KUBECONFIG_INVALID, exit code 2 */
export function resolveContext(config: Kubeconfig, context?: string): KubeconfigTarget {
  const refuse = (problem: Problem): never => {
    throw new AppError(problem, { exitCode: 2 });
  };
  const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name);
  const name = context ?? config.currentContext;
  if (name === '') return refuse(kubeconfigNoContext(config.start, names(config.contexts)));
  const chosen = config.contexts.find((each) => each.name === name);
  const asked = context === undefined ? config.currentContextPosition : config.start;
  if (!chosen) return refuse(kubeconfigNotFound('context', name, asked, names(config.contexts)));
  const cluster = config.clusters.find((each) => each.name === chosen.cluster);
  if (!cluster) return refuse(kubeconfigNotFound('cluster', chosen.cluster, chosen.position, names(config.clusters)));
  const user = config.users.find((each) => each.name === chosen.user) ?? null;
  if (user === null && chosen.user !== '') return refuse(kubeconfigNotFound('user', chosen.user, chosen.position, names(config.users)));
  const unusable = [clusterProblem(cluster), user && userProblem(user)].filter((problem) => problem !== null);
  if (unusable.length > 0) throw new AppError(unusable, { exitCode: 2 });
  return { context: name, cluster, user, namespace: chosen.namespace ?? 'default' };
}

/**
 * The cluster of a discovery file or of cluster-info: without a name, else that of the current context.
 * @throws as `resolveContext`. @see kubernetes/kubernetes cmd/kubeadm/app/util/kubeconfig (1.36)
 */
export function discoveryCluster(config: Kubeconfig): KubeconfigCluster {
  const unnamed = config.clusters.find((cluster) => cluster.name === '');
  if (!unnamed) return resolveContext({ ...config, users: [], contexts: config.contexts.map((each) => ({ ...each, user: '' })) }).cluster;
  const problem = clusterProblem(unnamed);
  if (problem) throw new AppError(problem, { exitCode: 2 });
  return unnamed;
}

/** The credentials of a user entry, in client-go's order of precedence; empty: anonymous. */
export function credentialKinds(user: KubeconfigUser | null) {
  if (user === null) return [];
  const { certData, certFile, tokenFile, token, username, exec, authProvider } = user;
  const held = [
    ['client-certificate', certData ?? certFile],
    ['token-file', tokenFile],
    ['token', token],
    ['basic', username],
    ['exec', exec],
    ['auth-provider', authProvider],
  ] as const;
  return held.filter(([, value]) => value !== undefined).map(([kind]) => kind);
}

function clusterProblem(cluster: KubeconfigCluster): Problem | null {
  const at = (message: string, hint?: string) => kubeconfigInvalid(message, cluster.position, hint);
  const subject = `cluster ${JSON.stringify(cluster.name)}`;
  if (cluster.server === '')
    return at(`${subject} has no server`, 'Set server to the address of the API server, e.g. https://10.0.0.1:6443');
  if (!URL.canParse(cluster.server) || !/^https?:\/\//.test(cluster.server)) {
    const message = `${subject}: ${JSON.stringify(cluster.server)} is not the address of an API server`;
    return at(message, 'Write the address as https://HOST:PORT');
  }
  if (cluster.insecureSkipTlsVerify && (cluster.caData !== undefined || cluster.caFile !== undefined)) {
    return at(`${subject} has both insecure-skip-tls-verify and a CA certificate`, 'Remove insecure-skip-tls-verify');
  }
  if (cluster.caData !== undefined && !isBase64Pem(cluster.caData, CERTIFICATE)) {
    return at(`${subject}: certificate-authority-data is not the base64 of a PEM certificate`);
  }
  return null;
}

function userProblem(user: KubeconfigUser): Problem | null {
  const at = (message: string) => kubeconfigInvalid(message, user.position);
  const subject = `user ${JSON.stringify(user.name)}`;
  const hasCert = user.certData !== undefined || user.certFile !== undefined;
  const hasKey = user.keyData !== undefined || user.keyFile !== undefined;
  if (user.withoutAs !== undefined)
    return at(`${subject} has ${user.withoutAs.join(', ')}, but the field as (the user to impersonate) is missing`);
  if (user.impersonate !== undefined && impersonationTexts(user.impersonate).some((text) => CONTROL.test(text)))
    return at(`${subject}: the impersonation fields contain control characters`);
  if (hasCert && !hasKey) return at(`${subject} has a client certificate but no client-key or client-key-data`);
  if (hasKey && !hasCert) return at(`${subject} has a client key but no client-certificate or client-certificate-data`);
  if (user.certData !== undefined && !isBase64Pem(user.certData, CERTIFICATE)) {
    return at(`${subject}: client-certificate-data is not the base64 of a PEM certificate`);
  }
  if (user.keyData !== undefined && !isBase64Pem(user.keyData.reveal(), PRIVATE_KEY)) {
    return at(`${subject}: client-key-data is not the base64 of a PEM key`);
  }
  return null;
}

function impersonationTexts({ user, groups, uid, extra }: Impersonation): readonly string[] {
  return [user, ...groups, uid ?? '', ...Object.values(extra).flat()];
}

const CONTROL = /[\u0000-\u001f\u007f]/;

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

export function decodeDataField(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8');
}

const CERTIFICATE = /-----BEGIN [A-Z ]*CERTIFICATE-----/;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;

function isBase64Pem(base64: string, start: RegExp): boolean {
  // Trimmed first: two quantifiers that both match whitespace take quadratic time.
  return /^[A-Za-z0-9+/\s]+={0,2}$/.test(base64.trim()) && start.test(decodeDataField(base64));
}

class KubeconfigReader {
  readonly problems: Problem[] = [];
  readonly #document: SourceDocument;
  readonly #root: SourceMap;

  constructor(document: SourceDocument, root: SourceMap) {
    this.#document = document;
    this.#root = root;
  }

  read(): Kubeconfig {
    const kind = this.#text(this.#root, 'kind', '');
    if (kind !== undefined && kind !== 'Config')
      this.#problem(`the file is not a kubeconfig: kind is ${kind}, expected Config`, this.#root.offset);
    const current = entryOf(this.#root, 'current-context');
    return {
      file: this.#document.file,
      start: this.#document.positionAt(this.#root.offset),
      currentContext: this.#text(this.#root, 'current-context', '') ?? '',
      currentContextPosition: this.#document.positionAt(current?.keyOffset ?? this.#root.offset),
      clusters: this.#entries('clusters', 'cluster', (node, path) => this.#cluster(node, path)),
      contexts: this.#entries('contexts', 'context', (node, path) => this.#context(node, path)),
      users: this.#entries('users', 'user', (node, path) => this.#user(node, path)),
    };
  }

  #cluster(node: SourceMap, path: string) {
    const text = (key: string) => this.#text(node, key, path);
    return {
      server: trimTrailing(text('server') ?? '', '/'),
      ...optional('caData', text('certificate-authority-data')),
      ...optional('caFile', text('certificate-authority')),
      insecureSkipTlsVerify: this.#flag(node, 'insecure-skip-tls-verify', path),
      ...optional('tlsServerName', text('tls-server-name')),
      ...optional('proxyUrl', text('proxy-url')),
    };
  }

  #context(node: SourceMap, path: string) {
    const text = (key: string) => this.#text(node, key, path);
    return { cluster: text('cluster') ?? '', user: text('user') ?? '', ...optional('namespace', text('namespace')) };
  }

  #user(node: SourceMap, path: string) {
    const text = (key: string) => this.#text(node, key, path);
    const secret = (key: string) => {
      const value = text(key);
      return value === undefined ? undefined : new Secret(value);
    };
    const as = text('as');
    const [groups, uid, extra] = [this.#groups(node, path), text('as-uid'), this.#userExtra(node, path)];
    const impersonate: Impersonation | undefined = as === undefined ? undefined : { user: as, groups, ...optional('uid', uid), extra };
    const given = { 'as-groups': groups.length > 0, 'as-uid': uid !== undefined, 'as-user-extra': Object.keys(extra).length > 0 };
    const withoutAs = Object.entries(given).flatMap(([key, isGiven]) => (isGiven && as === undefined ? [key] : []));
    return {
      ...optional('token', secret('token')),
      ...optional('tokenFile', text('tokenFile')),
      ...optional('certData', text('client-certificate-data')),
      ...optional('certFile', text('client-certificate')),
      ...optional('keyData', secret('client-key-data')),
      ...optional('keyFile', text('client-key')),
      ...optional('username', text('username')),
      ...optional('password', secret('password')),
      ...optional('exec', this.#object(node, 'exec', path)),
      ...optional('authProvider', this.#object(node, 'auth-provider', path)),
      ...optional('impersonate', impersonate),
      ...(withoutAs.length === 0 ? {} : { withoutAs }),
    };
  }

  #groups(node: SourceMap, path: string): readonly string[] {
    const value = entryOf(node, 'as-groups')?.value;
    if (value === undefined || isNull(value)) return [];
    const groups = sourceToJson(value);
    if (isStringList(groups)) return groups;
    this.#problem('must be a list of strings', value.offset, join(path, 'as-groups'));
    return [];
  }

  #userExtra(node: SourceMap, path: string): Impersonation['extra'] {
    const value = entryOf(node, 'as-user-extra')?.value;
    if (value === undefined || isNull(value)) return {};
    const entries = value.kind === 'map' ? value.entries.map((entry) => [entry.key, sourceToJson(entry.value)] as const) : null;
    const lists = entries?.filter((entry): entry is readonly [string, readonly string[]] => isStringList(entry[1]));
    if (lists !== undefined && lists.length === entries?.length) return Object.fromEntries(lists);
    this.#problem('must be an object whose values are lists of strings', value.offset, join(path, 'as-user-extra'));
    return {};
  }

  #entries<T>(list: string, member: string, read: (node: SourceMap, path: string) => T): (T & { name: string; position: Position })[] {
    const entry = entryOf(this.#root, list);
    if (!entry || isNull(entry.value)) return [];
    if (entry.value.kind !== 'list') {
      this.#problem('must be a list', entry.value.offset, list);
      return [];
    }
    return entry.value.items.flatMap((item, index) => {
      const path = `${list}[${index}]`;
      const value = item.kind === 'map' ? (entryOf(item, member)?.value ?? null) : null;
      if (item.kind !== 'map' || (value !== null && value.kind !== 'map' && !isNull(value))) {
        this.#problem(`must be an object with name and ${member}`, item.offset, path);
        return [];
      }
      const name = this.#text(item, 'name', path) ?? '';
      const inner: SourceMap = value?.kind === 'map' ? value : { kind: 'map', entries: [], offset: item.offset };
      return [{ ...read(inner, `${path}.${member}`), name, position: this.#document.positionAt(item.offset) }];
    });
  }

  /** Undefined when absent, null or empty: client-go treats empty members as absent. */
  #text(node: SourceMap, key: string, path: string): string | undefined {
    const value = entryOf(node, key)?.value;
    if (value === undefined || isNull(value)) return undefined;
    if (value.kind === 'scalar' && value.scalar.type === 'string') return value.text === '' ? undefined : value.text;
    this.#problem(value.kind === 'scalar' ? 'must be a string: quote it' : 'must be a string', value.offset, join(path, key));
    return undefined;
  }

  #flag(node: SourceMap, key: string, path: string): boolean {
    const value = entryOf(node, key)?.value;
    if (value === undefined || isNull(value)) return false;
    if (value.kind === 'scalar' && value.scalar.type === 'bool') return value.scalar.value;
    this.#problem('must be true or false', value.offset, join(path, key));
    return false;
  }

  #object(node: SourceMap, key: string, path: string): JsonObject | undefined {
    const value = entryOf(node, key)?.value;
    if (value === undefined || isNull(value)) return undefined;
    if (value.kind === 'map') return sourceToJson(value) as JsonObject;
    this.#problem('must be an object', value.offset, join(path, key));
    return undefined;
  }

  #problem(message: string, offset: number, path?: string): void {
    this.problems.push(kubeconfigInvalid(message, this.#document.positionAt(offset), undefined, path));
  }
}

function isNull(node: SourceNode): boolean {
  return node.kind === 'scalar' && node.scalar.type === 'null';
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

/** An object with the member only if it has a value, as `exactOptionalPropertyTypes` requires. */
function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: V };
}
