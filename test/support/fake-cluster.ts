import { createAuthenticator, type UserInfo, userOf } from '../../lab/api-server/authenticate.ts';
import { authorize, refusal } from '../../lab/api-server/authorize.ts';
import { BOOTSTRAP_OBJECTS } from '../../lab/api-server/bootstrap-objects.ts';
import { startDisruption } from '../../lab/api-server/controllers/disruption.ts';
import { servedKind, servedTypes } from '../../lab/api-server/custom-resources.ts';
import { servedType } from '../../lab/api-server/discovery.ts';
import { evictPod } from '../../lab/api-server/eviction.ts';
import { type Answer, PAGE_NOT_FOUND } from '../../lab/api-server/exchange.ts';
import { answerNodeProxy, type NodeProxy } from '../../lab/api-server/node-proxy.ts';
import { createRegistry, type Registry } from '../../lab/api-server/registry.ts';
import { nameSelected, parseRequest, type RequestInfo } from '../../lab/api-server/request-info.ts';
import { answerReview } from '../../lab/api-server/reviews.ts';
import { StatusError } from '../../lab/api-server/status.ts';
import { createStore, type Store } from '../../lab/api-server/store.ts';
import { openWatch } from '../../lab/api-server/watch.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster, ListOptions, WatchEvent } from '../../src/kube/cluster.ts';
import { clusterNoSuchKind, clusterRefused } from '../../src/kube/cluster-problems.ts';
import { evictionResult } from '../../src/kube/eviction-result.ts';
import type { KubeObject, ObjectRef } from '../../src/kube/object.ts';
import { describeCollection, describeRef, refOf, removedObject } from '../../src/kube/object.ts';
import { REVIEWS, type ResourceType } from '../../src/kube/resources.ts';

export interface FakeClusterOptions {
  /** Objects in addition to the namespaces and roles of every cluster. */
  readonly objects?: readonly KubeObject[];
  /** The caller's user; default an administrator. */
  readonly user?: { readonly name: string; readonly groups: readonly string[] };
  readonly now?: () => Date;
  readonly gitVersion?: string;
  /** Keeps `spec.configSource` of Nodes, like API servers up to 1.21; default false. */
  readonly dynamicKubeletConfig?: boolean;
  /** Another client of the same objects: its store is used. */
  readonly sharedWith?: FakeCluster;
}

/** A Cluster in memory, without HTTP: the rules of the API server double applied directly. */
export interface FakeCluster extends Cluster {
  readonly store: Store;
  readonly proxies: Map<string, NodeProxy>;
  /** The calls, as `get ConfigMap kube-system/x`. */
  readonly calls: readonly string[];
  /** Simulates the kubelet of a node behind `nodes/NAME/proxy`. */
  proxyNode(name: string, proxy: NodeProxy): void;
  /** Makes the next call whose text contains this string fail with the error. */
  failNext(call: string, error: Error): void;
  /** Sends a bookmark to every watch. */
  bookmark(): void;
  /** Ends every watch, like a server that stops. */
  endWatches(): void;
}

const SERVER = 'https://cluster.test:6443';
const ADMIN = userOf('kubernetes-admin', ['system:masters']);

/** A cluster with its system namespaces and roles only. */
export function fakeCluster(options: FakeClusterOptions = {}): FakeCluster {
  const { now = () => new Date(), gitVersion = 'v1.36.2', dynamicKubeletConfig = false, sharedWith } = options;
  const store = sharedWith?.store ?? createStore();
  const registry = createRegistry({ store, now, gates: { dynamicKubeletConfig } });
  const authenticator = createAuthenticator({ store, now });
  if (!sharedWith) startDisruption({ store, now });
  const user = options.user ? userOf(options.user.name, options.user.groups) : ADMIN;
  for (const object of [...(sharedWith ? [] : BOOTSTRAP_OBJECTS), ...(options.objects ?? [])]) createAsAdmin(store, registry, object);

  const calls: string[] = [];
  const failures: { call: string; error: Error }[] = [];
  const proxies = sharedWith?.proxies ?? new Map<string, NodeProxy>();
  const watches = new Set<{ bookmark: () => void; end: () => void }>();
  const enter = (call: string): void => {
    calls.push(call);
    const index = failures.findIndex((each) => call.includes(each.call));
    const [failure] = index < 0 ? [] : failures.splice(index, 1);
    if (failure) throw failure.error;
  };
  const attempt = async <T>(what: string, asked: Asked, work: (type: ResourceType) => T, call = what): Promise<T> => {
    enter(call);
    const type = typeOf(store, asked);
    return translated(what, () => {
      allow(store, user, type, asked);
      return work(type);
    });
  };
  return {
    server: SERVER,
    store,
    proxies,
    calls,
    failNext: (call, error) => failures.push({ call, error }),
    bookmark: () => {
      for (const { bookmark } of watches) bookmark();
    },
    endWatches: () => {
      for (const { end } of [...watches]) end();
    },
    version: async () => {
      enter('read the version');
      return gitVersion;
    },
    get: (ref) => attempt(`get ${describeRef(ref)}`, { ...ref, verb: 'get' }, (type) => store.get(type, placeIn(type, ref), ref.name)),
    list: (kind, listOptions = {}) =>
      attempt(
        `list ${describeCollection(kind)}`,
        { ...kind, ...selection(listOptions), verb: 'list' },
        (type) => {
          const selector = registry.selector(type, listOptions);
          const items = store.list(type, type.namespaced ? kind.namespace : undefined).filter(selector);
          return { items, resourceVersion: String(store.revision()) };
        },
        `list ${placeOfCall(kind)}`,
      ),
    create: (object) =>
      attempt(`create ${describeRef(refOf(object))}`, { ...refOf(object), name: '', verb: 'create' }, (type) =>
        REVIEWS.includes(type)
          ? (answerReview(type, object, { store, authenticator, user, now: now() }) as unknown as KubeObject)
          : registry.create(type, placeIn(type, object.metadata), object, { user }),
      ),
    update: (object) => {
      const ref = refOf(object);
      return attempt(
        `update ${describeRef(ref)}`,
        { ...ref, verb: 'update' },
        (type) => registry.update(type, atOf(type, ref), object, { user }).object,
      );
    },
    patch: (ref, patchType, patch, { subresource = '', dryRun = false } = {}) =>
      attempt(`patch ${describeRef(ref)}`, { ...ref, verb: 'patch', subresource }, (type) =>
        registry.patch(type, atOf(type, ref), patchType, patch, { user, subresource, dryRun }),
      ),
    delete: (ref) =>
      attempt(`delete ${describeRef(ref)}`, { ...ref, verb: 'delete' }, (type) => {
        const old = store.get(type, placeIn(type, ref), ref.name);
        if (old === null) return null;
        const answer = registry.delete(type, atOf(type, ref), {}, { user });
        return answer.kind === 'Status' ? removedObject(ref, old.metadata.uid) : (answer as KubeObject);
      }),
    evict: async ({ namespace, name, uid }, { gracePeriodSeconds } = {}) => {
      const what = `evict Pod ${namespace}/${name}`;
      const pods = typeOf(store, { apiVersion: 'v1', kind: 'Pod' });
      enter(what);
      const preconditions = { uid };
      const deleteOptions = { preconditions, ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }) };
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, deleteOptions };
      try {
        allow(store, user, pods, { apiVersion: 'v1', kind: 'Pod', namespace, name, verb: 'create', subresource: 'eviction' });
        evictPod({ store, registry, now: now() }, { namespace, name }, body, { user });
        return { kind: 'evicted' };
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
        return evictionResult(what, name, error.httpStatus, error.status);
      }
    },
    proxyNode: (node, proxy) => void proxies.set(node, proxy),
    getRaw: async (path) => {
      const what = `get ${path}`;
      enter(what);
      return translated(what, () => getThroughProxy({ store, user, proxies }, what, path));
    },
    watch: (kind, watchOptions) => watchFake({ store, registry, user, enter, watches }, kind, watchOptions),
    close: async () => {
      for (const { end } of [...watches]) end();
    },
  };
}

interface Asked {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly verb: string;
  readonly subresource?: string;
  readonly fieldSelector?: string;
}

function selection({ fieldSelector = '' }: ListOptions): Pick<Asked, 'name' | 'fieldSelector'> {
  return { name: nameSelected(fieldSelector), fieldSelector };
}

function createAsAdmin(store: Store, registry: Registry, object: KubeObject): void {
  const type = typeOf(store, object);
  registry.create(type, placeIn(type, object.metadata), object, { user: ADMIN });
}

function allow(store: Store, user: UserInfo, type: ResourceType, asked: Asked): void {
  const { verb, subresource = '', name, namespace = '', fieldSelector = '' } = asked;
  const { group, version, plural: resource } = type;
  const query = new URLSearchParams({ fieldSelector });
  const request = {
    kind: 'resource',
    path: '',
    verb,
    group,
    version,
    resource,
    subresource,
    namespace,
    name,
    named: name !== '',
    query,
  } as const;
  const verdict = authorize(store, user, request);
  if (!verdict.allowed) throw refusal(user, request, verdict.reason);
}

interface ProxyContext {
  readonly store: Store;
  readonly user: UserInfo;
  readonly proxies: ReadonlyMap<string, NodeProxy>;
}

function getThroughProxy({ store, user, proxies }: ProxyContext, what: string, path: string): JsonObject {
  const info = parseRequest('GET', path);
  const verdict = authorize(store, user, info);
  if (!verdict.allowed) throw refusal(user, info, verdict.reason);
  const answer = answerRaw(store, proxies, info);
  if (answer === 'streamed') throw new Error('the fake cluster streams nothing');
  if ('body' in answer && answer.status < 400) return answer.body;
  throw clusterRefused(what, {
    httpStatus: answer.status,
    message: 'text' in answer ? answer.text.split('\n')[0] : String(answer.body.message),
  });
}

function answerRaw(store: Store, proxies: ProxyContext['proxies'], info: RequestInfo): Answer {
  const type = info.kind === 'resource' ? servedType(servedTypes(store), info.group, info.version, info.resource) : null;
  if (info.kind === 'path' || type === null) return PAGE_NOT_FOUND;
  if (type.plural === 'nodes' && info.subresource === 'proxy') return answerNodeProxy(store, proxies, type, info);
  const found = store.get(type, type.namespaced ? info.namespace : '', info.name);
  return found === null ? PAGE_NOT_FOUND : { status: 200, body: found };
}

function translated<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof StatusError ? fromStatus(what, error.status) : error;
  }
}

function fromStatus(what: string, status: JsonObject): Error {
  return clusterRefused(what, { httpStatus: Number(status.code), reason: String(status.reason ?? ''), message: String(status.message) });
}

interface WatchContext {
  readonly store: Store;
  readonly registry: Registry;
  readonly user: UserInfo;
  readonly enter: (call: string) => void;
  readonly watches: Set<{ bookmark: () => void; end: () => void }>;
}

/** `Event in default`, `Node`: a collection in `calls`. */
function placeOfCall({ kind, namespace }: { kind: string; namespace?: string | undefined }): string {
  return namespace === undefined ? kind : `${kind} in ${namespace}`;
}

async function* watchFake(
  context: WatchContext,
  kind: { apiVersion: string; kind: string; namespace?: string | undefined },
  options: Parameters<Cluster['watch']>[1],
): AsyncGenerator<WatchEvent> {
  const { store, registry, user, enter, watches } = context;
  const what = `watch ${describeCollection(kind)}`;
  enter(`watch ${placeOfCall(kind)}`);
  const type = typeOf(store, kind);
  const queue: { type: string; object: JsonObject }[] = [];
  let ended = false;
  let wake = (): void => {};
  const end = () => {
    ended = true;
    wake();
  };
  const watch = translated(what, () => {
    allow(store, user, type, { ...kind, ...selection(options), verb: 'watch' });
    const selector = registry.selector(type, options);
    const send = (event: string, object: JsonObject) => {
      queue.push({ type: event, object });
      wake();
    };
    return openWatch(
      store,
      { type, namespace: kind.namespace ?? '', selector, resourceVersion: options.resourceVersion ?? '' },
      { send, end },
    );
  });
  const entry = { bookmark: watch.bookmark, end };
  watches.add(entry);
  options.signal?.addEventListener('abort', end, { once: true });
  try {
    while (!options.signal?.aborted) {
      const event = queue.shift();
      if (event?.type === 'ERROR') throw fromStatus(what, event.object);
      if (event) yield event as WatchEvent;
      else if (ended) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    watch.stop();
    watches.delete(entry);
    options.signal?.removeEventListener('abort', end);
  }
}

function typeOf(store: Store, { apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): ResourceType {
  const type = servedKind(store, apiVersion, kind);
  if (!type) throw clusterNoSuchKind(SERVER, apiVersion, kind);
  return type;
}

function placeIn(type: ResourceType, { namespace }: { readonly namespace?: string | undefined }): string {
  return type.namespaced ? (namespace ?? '') : '';
}

function atOf(type: ResourceType, ref: ObjectRef): { readonly namespace: string; readonly name: string } {
  return { namespace: placeIn(type, ref), name: ref.name };
}
