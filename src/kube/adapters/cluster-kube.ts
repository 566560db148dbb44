import type { IncomingMessage } from 'node:http';
import { dirname } from 'node:path';
import { onAbort } from '../../base/abort.ts';
import { systemClock } from '../../base/adapters/clock-system.ts';
import type { Clock } from '../../base/clock.ts';
import { isAppError, usageError } from '../../base/errors.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { present } from '../../base/present.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import type { ExpectedObject } from '../api-answer.ts';
import type { Cluster, ListOptions, ListResult, PatchType, WatchEvent } from '../cluster.ts';
import { clusterNoSuchKind, clusterNotAnApi, clusterRefused, clusterWatchInvalid } from '../cluster-problems.ts';
import type { Dial } from '../dial.ts';
import { evictionResult } from '../eviction-result.ts';
import { type KubeconfigRoot, type KubeconfigTarget, parseKubeconfig, resolveContext } from '../kubeconfig.ts';
import { kubeconfigPluginRefused, kubeconfigUnreadable } from '../kubeconfig-problems.ts';
import { describeCollection, describeRef, type KubeObject, refOf, removedObject } from '../object.ts';
import { type ProxyEnvironment, proxyFor } from '../proxy.ts';
import type { RequestRateLimiter, RequestUrgency } from '../request-rate-limiter.ts';
import { apiVersionOf, parseApiVersion, REVIEWS, type ResourceType, resourceOf, resourcePath } from '../resources.ts';
import { createWatchLines, type RawWatchEvent } from '../watch-lines.ts';
import { createConnection } from './connection.ts';
import { decodeEvent, decodeList, decodeObject, type RequestContext } from './decode-answer.ts';
import { readTextFile } from './read-text-file.ts';
import { type ApiRequest, createSender, refusalOf, type Sender } from './send-request.ts';

interface KubeClusterOptions {
  /**
   * A path, or the text of a file; relative paths in it are relative to its folder. With `origin`, the source of the path,
   * errors name the kubeconfig.
   */
  readonly kubeconfig: { readonly path: string } | { readonly text: string; readonly file: string; readonly origin?: string | null };
  /** The root directory of the paths in the kubeconfig; credential plugins are refused then. Absent: that of the local host. */
  readonly root?: KubeconfigRoot | undefined;
  /** Default: the kubeconfig's current-context. */
  readonly context?: string | undefined;
  /** Replaces the address in the kubeconfig, e.g. with the local API server's. */
  readonly server?: string | undefined;
  /** Proxy variables (HTTPS_PROXY, NO_PROXY) for a kubeconfig without proxy-url; default: none. */
  readonly env?: ProxyEnvironment;
  /** Timeout of one call, retries included; default 10,000. */
  readonly requestTimeoutMs?: number;
  readonly credentialTimeoutMs?: number;
  readonly clock?: Clock;
  /** Opens the connections to the server, e.g. from a host in its network. The proxy is ignored then. */
  readonly dial?: Dial | undefined;
  readonly limiter?: RequestRateLimiter | undefined;
  /**
   * Ends the requests of `untilInterrupted` and `forPolls` that wait for `limiter`. Others continue: they may
   * remove what an interrupted run created.
   */
  readonly signal?: AbortSignal | undefined;
}

type Kind = { readonly apiVersion: string; readonly kind: string; readonly namespace?: string | undefined };

const PAGE_SIZE = 500;
/** The server ends a watch after this time; a client without data for longer has lost the connection. */
const WATCH_SECONDS = 300;
const WATCH_GRACE_MS = 30_000;
const CONTENT_TYPES: Readonly<Record<PatchType, string>> = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
};

/**
 * A client for the API server of a kubeconfig, over HTTPS. No request is sent before the first call.
 *
 * `delete` returns the object if the server sends it, else one with its name and uid only. A watch whose
 * connection breaks ends as if the server had ended it: watch again from the last resourceVersion.
 * @throws AppError, exit code 2: KUBECONFIG_FILE_UNREADABLE, KUBECONFIG_INVALID, KUBECONFIG_NO_CONTEXT,
 *   CONFIG_SYNTAX, KUBECONFIG_PLUGIN_REFUSED; USAGE for an invalid proxy URL
 */
export function kubeCluster(options: KubeClusterOptions): Cluster {
  const { root, clock = systemClock, requestTimeoutMs = 10_000, credentialTimeoutMs = 30_000, dial, limiter, signal } = options;
  const { target, file, folder } = loadTarget(options);
  const { server } = target.cluster;
  const origin = 'origin' in options.kubeconfig ? options.kubeconfig.origin : null;
  const kubeconfig = origin == null ? null : { file, context: target.context, user: target.user?.name ?? null, origin };
  const connection = createConnection({ target, file, folder, root, clock, credentialTimeoutMs, dial });
  const closing = new AbortController();
  const waiting = new AbortController();
  const forget = onAbort(signal, (reason) => waiting.abort(reason));
  const close = async (): Promise<void> => {
    forget();
    waiting.abort();
    closing.abort();
    connection.close();
  };
  const clientWith = (urgency: RequestUrgency, turnSignal?: AbortSignal): Cluster => {
    const sender = createSender({ server, kubeconfig, connection, clock, requestTimeoutMs, limiter, urgency, turnSignal });
    return clientOver({ server, context: target.context, sender, closed: closing.signal, close });
  };
  if (limiter === undefined) return clientWith('step');
  return { ...clientWith('step'), untilInterrupted: clientWith('step', waiting.signal), forPolls: clientWith('poll', waiting.signal) };
}

interface Client {
  readonly server: string;
  readonly context: string;
  readonly sender: Sender;
  readonly closed: AbortSignal;
  readonly close: () => Promise<void>;
}

function clientOver(client: Client): Cluster {
  const { server, context, sender, close } = client;
  const typeOf = createTypeLookup(server, sender);
  const call = async (request: ApiRequest, asked: ExpectedObject): Promise<KubeObject> =>
    decodeObject({ server, ...request }, (await sender.send(request)).body, asked);

  return {
    server,
    context,
    version: async () => {
      const { body, status } = await sender.send({ what: 'read the version', method: 'GET', path: '/version' });
      if (typeof body.gitVersion !== 'string') throw clusterNotAnApi(server, 'read the version', status, 'JSON of another kind');
      return body.gitVersion;
    },
    get: async (ref) => {
      const type = await typeOf(ref);
      const request = { what: `get ${describeRef(ref)}`, method: 'GET', path: resourcePath(type, ref), absent: ref.name } as const;
      const { status, body } = await sender.send(request);
      return status === 404 ? null : decodeObject({ server, ...request }, body, ref);
    },
    list: async (kind, listOptions) => listAll(client, await typeOf(kind), kind, listOptions ?? {}),
    create: async (object) => {
      const type = await typeOf(object);
      const ref = refOf(object);
      const path = resourcePath(type, inNamespaceOf(type, object));
      const asked = { kind: object.kind, isUnnamed: REVIEWS.includes(type) };
      return call({ what: `create ${describeRef(ref)}`, method: 'POST', path, body: object }, asked);
    },
    update: async (object) => {
      const type = await typeOf(object);
      const ref = refOf(object);
      return call({ what: `update ${describeRef(ref)}`, method: 'PUT', path: resourcePath(type, ref), body: object }, ref);
    },
    patch: async (ref, patchType, patch, { subresource, dryRun } = {}) => {
      const type = await typeOf(ref);
      const path = resourcePath(type, { ...ref, subresource });
      const query = dryRun === true ? { query: { dryRun: 'All' } } : {};
      const contentType = CONTENT_TYPES[patchType];
      return call({ what: `patch ${describeRef(ref)}`, method: 'PATCH', path, body: patch, contentType, ...query }, ref);
    },
    delete: async (ref) => {
      const type = await typeOf(ref);
      const request = { what: `delete ${describeRef(ref)}`, method: 'DELETE', ...deletedAs(type, ref), absent: ref.name } as const;
      const { status, body } = await sender.send(request);
      if (status === 404) return null;
      return body.kind === 'Status' ? removedObject(ref, uidOf(body)) : decodeObject({ server, ...request }, body, ref);
    },
    evict: (pod, evictOptions) => evict(sender, pod, evictOptions),
    getRaw: async (path) => (await sender.send({ what: `get ${path}`, method: 'GET', path, proxied: true })).body,
    watch: (kind, watchOptions) => watchKind(client, () => typeOf(kind), kind, watchOptions),
    close,
  };
}

/** As kubectl deletes: without a policy, the API would keep the pods of a Job. */
function deletedAs(type: ResourceType, ref: Parameters<Cluster['delete']>[0]) {
  return { path: resourcePath(type, ref), ...(type.kind === 'Job' ? { query: { propagationPolicy: 'Background' } } : {}) };
}

/** Before 1.22, API servers know evictions of policy/v1beta1 only. */
const EVICTION_VERSIONS = ['policy/v1', 'policy/v1beta1'] as const;

async function evict(sender: Sender, { namespace, name, uid }: Parameters<Cluster['evict']>[0], options: Parameters<Cluster['evict']>[1]) {
  const what = `evict Pod ${namespace}/${name}`;
  const deleteOptions = { preconditions: { uid }, ...present({ ...options }) };
  const path = resourcePath(resourceOf('v1', 'Pod') as ResourceType, { namespace, name, subresource: 'eviction' });
  const [newer, older] = EVICTION_VERSIONS;
  for (const apiVersion of [newer, older]) {
    const body = { apiVersion, kind: 'Eviction', metadata: { namespace, name }, deleteOptions };
    const request = { what, method: 'POST', path, body, absent: name, answers: [400, 403, 404, 409, 429, 500, 504] } as const;
    const { status, body: answer } = await sender.send(request);
    if (status === 400 && apiVersion === newer) continue;
    return evictionResult(what, name, status, answer);
  }
  throw new Error('unreachable');
}

function loadTarget({ kubeconfig, root, context, server, env = {} }: KubeClusterOptions) {
  const file = 'path' in kubeconfig ? kubeconfig.path : kubeconfig.file;
  const text = 'path' in kubeconfig ? readTextFile(file, (why, cause) => kubeconfigUnreadable(file, why, { cause })) : kubeconfig.text;
  const target = resolveContext(parseKubeconfig(text, file), context);
  if (root !== undefined) refusePlugins(target, root);
  const cluster = server === undefined ? target.cluster : { ...target.cluster, server: trimTrailing(server, '/') };
  const proxyUrl = cluster.proxyUrl ?? environmentProxy(cluster.server, env);
  return { target: { ...target, cluster: { ...cluster, proxyUrl } }, file, folder: dirname(file) };
}

/** @throws AppError KUBECONFIG_PLUGIN_REFUSED (exit code 2): a plugin would run outside of the root directory */
function refusePlugins({ user }: KubeconfigTarget, { directory }: KubeconfigRoot): void {
  const field = user?.exec !== undefined ? 'exec' : user?.authProvider !== undefined ? 'auth-provider' : null;
  if (user !== null && field !== null) throw kubeconfigPluginRefused({ user: user.name, field, position: user.position, directory });
}

function environmentProxy(server: string, env: ProxyEnvironment): string | undefined {
  try {
    return proxyFor(new URL(server), env)?.href;
  } catch (cause) {
    throw usageError((cause as Error).message, 'Set the proxy variable to a URL such as http://proxy.example.com:3128');
  }
}

/** Resolves kinds without a built-in type through the server's discovery, once each. */
function createTypeLookup(server: string, sender: Sender): (kind: Pick<Kind, 'apiVersion' | 'kind'>) => Promise<ResourceType> {
  const found = new Map<string, ResourceType>();
  return async ({ apiVersion, kind }) => {
    const known = resourceOf(apiVersion, kind) ?? found.get(`${apiVersion} ${kind}`);
    if (known) return known;
    const type = await discover(sender, server, apiVersion, kind);
    found.set(`${apiVersion} ${kind}`, type);
    return type;
  };
}

async function discover(sender: Sender, server: string, apiVersion: string, kind: string): Promise<ResourceType> {
  const { group, version } = parseApiVersion(apiVersion);
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const noSuchKind = () => clusterNoSuchKind(server, apiVersion, kind);
  const { body } = await sender.send({ what: `discover ${kind} in ${apiVersion}`, method: 'GET', path }).catch((error: unknown) => {
    // The server answers an unknown group with plain text.
    if (isAppError(error, 'CLUSTER_NOT_FOUND') || (isAppError(error, 'CLUSTER_ERROR') && / answered 404 /.test(error.message)))
      throw noSuchKind();
    throw error;
  });
  const resources = Array.isArray(body.resources) ? body.resources.filter(isJsonObject) : [];
  const resource = resources.find((each) => each.kind === kind && typeof each.name === 'string' && !each.name.includes('/'));
  if (!resource) throw noSuchKind();
  return { group, version, kind, plural: String(resource.name), namespaced: resource.namespaced === true };
}

async function listAll({ server, sender }: Client, type: ResourceType, kind: Kind, options: ListOptions): Promise<ListResult> {
  const request = { what: `list ${describeCollection(kind)}`, method: 'GET', path: resourcePath(type, kind) } as const;
  const pages = async (): Promise<ListResult> => {
    const items: KubeObject[] = [];
    let next: string | undefined;
    let resourceVersion = '';
    do {
      const query = { ...options, limit: String(PAGE_SIZE), continue: next };
      const page = decodeList({ server, ...request }, (await sender.send({ ...request, query })).body, type.kind);
      for (const item of page.items) items.push({ apiVersion: apiVersionOf(type), kind: type.kind, ...item } as KubeObject);
      ({ resourceVersion, next } = page);
    } while (next !== undefined);
    return { items, resourceVersion };
  };
  // All pages of a list have one resourceVersion, which may expire during paging.
  return pages().catch((error: unknown) => {
    if (isAppError(error, 'CLUSTER_GONE')) return pages();
    throw error;
  });
}

async function* watchKind(
  { server, sender, closed }: Client,
  typeOf: () => Promise<ResourceType>,
  kind: Kind,
  { signal, resourceVersion, fieldSelector, labelSelector }: Parameters<Cluster['watch']>[1],
): AsyncGenerator<WatchEvent> {
  const type = await typeOf();
  const stop = new AbortController();
  const unlink = [signal, closed].map((each) => onAbort(each, () => stop.abort()));
  const watchdog = setTimeout(() => stop.abort(), WATCH_SECONDS * 1000 + WATCH_GRACE_MS);
  const request = { what: `watch ${describeCollection(kind)}`, method: 'GET', path: resourcePath(type, kind) } as const;
  const query = {
    watch: 'true',
    allowWatchBookmarks: 'true',
    timeoutSeconds: String(WATCH_SECONDS),
    resourceVersion,
    fieldSelector,
    labelSelector,
  };
  let response: IncomingMessage | undefined;
  try {
    if (stop.signal.aborted) return;
    response = await sender.stream({ ...request, query }, stop.signal);
    for await (const event of eventsOf(response, request.what)) yield readEvent({ server, ...request }, event, kind.kind);
  } catch (error) {
    if (isAppError(error) && !stop.signal.aborted) throw error;
    if (!stop.signal.aborted && response === undefined) throw error;
  } finally {
    clearTimeout(watchdog);
    for (const each of unlink) each();
    response?.destroy();
  }
}

async function* eventsOf(response: IncomingMessage, what: string): AsyncGenerator<RawWatchEvent> {
  const lines = createWatchLines();
  const read = (chunk: Uint8Array) => {
    try {
      return lines.push(chunk);
    } catch (error) {
      throw clusterWatchInvalid(what, (error as Error).message);
    }
  };
  for await (const chunk of response as AsyncIterable<Uint8Array>) yield* read(chunk);
}

function readEvent(answered: RequestContext, event: RawWatchEvent, kind: string): WatchEvent {
  const { type, object } = event;
  switch (type) {
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
    case 'BOOKMARK':
      return decodeEvent(answered, type, event, kind);
    default:
      throw clusterRefused(answered.what, { ...refusalOf(object), httpStatus: Number(object.code ?? 0) });
  }
}

function inNamespaceOf(type: ResourceType, { metadata }: KubeObject): { readonly namespace?: string } {
  return type.namespaced && metadata.namespace !== undefined ? { namespace: metadata.namespace } : {};
}

function uidOf({ details }: JsonObject): string | undefined {
  return isJsonObject(details) && typeof details.uid === 'string' ? details.uid : undefined;
}
