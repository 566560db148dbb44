import { applyPatch } from '../lab/api-server/patch.ts';
import type { Clock } from '../src/base/clock.ts';
import type { JsonObject } from '../src/base/json.ts';
import type { Cluster, KubeObject } from '../src/kube/cluster.ts';
import { parseLabelSelector } from '../src/kube/label-selector.ts';
import { type ResourceType, resourceOf } from '../src/kube/resources.ts';
import { isCordoned } from '../src/maintenance/node-hold.ts';

const NODE = resourceOf('v1', 'Node') as ResourceType;
/** Time until the replacement of an evicted pod is Ready. */
const START_MS = 3_000;

/**
 * A cluster in memory whose requests are counted, with a disruption controller and a scheduler. Each pod has a label `app`, and
 * the budget of that name covers it. A list is a request for each 500 objects.
 */
export function drainCluster(objects: Readonly<Record<string, readonly KubeObject[]>>, clock: Clock) {
  const requests = new Map<string, number>();
  const count = (verb: string, kind: string, pages = 1): void =>
    void requests.set(`${verb} ${kind}`, (requests.get(`${verb} ${kind}`) ?? 0) + pages);
  const nodes = new Map((objects.Node ?? []).map((node) => [node.metadata.name, node]));
  const pods = new Map((objects.Pod ?? []).map((pod, i) => [`${i}`, { ...pod, metadata: { ...pod.metadata, uid: `${i}` } } as KubeObject]));
  const byNode = new Map([...nodes.keys()].map((name) => [name, new Set<string>()]));
  const byApp = new Map<string, Set<string>>();
  const appOf = ({ metadata }: KubeObject): string => metadata.labels?.app ?? '';
  const add = (uid: string, pod: KubeObject): void => {
    pods.set(uid, pod);
    byNode.get(nodeOf(pod))?.add(uid);
    const own = byApp.get(appOf(pod)) ?? new Set();
    byApp.set(appOf(pod), own.add(uid));
  };
  for (const [uid, pod] of pods) add(uid, pod);
  const healthy = new Map([...byApp].map(([app, own]) => [app, own.size]));
  const allowed = new Map(
    (objects.PodDisruptionBudget ?? []).map(({ metadata, spec }) => [
      metadata.name,
      Number((spec as { maxUnavailable?: number }).maxUnavailable ?? 0),
    ]),
  );
  const wanted = new Map(healthy);
  const placesOf = placesInTurn([...nodes.keys()], (name) => !isCordoned(nodes.get(name) as KubeObject));
  let created = 0;
  const replace = (uid: string, pod: KubeObject): void => {
    const app = appOf(pod);
    pods.delete(uid);
    byNode.get(nodeOf(pod))?.delete(uid);
    byApp.get(app)?.delete(uid);
    healthy.set(app, (healthy.get(app) ?? 0) - 1);
    const next = `new-${++created}`;
    const metadata = { ...pod.metadata, name: next, uid: next };
    const started = {
      ...pod,
      metadata,
      spec: { ...(pod.spec as object), nodeName: placesOf() },
      status: { phase: 'Pending' },
    } as KubeObject;
    add(next, started);
    void clock.sleep(START_MS).then(() => {
      if (!pods.has(next)) return;
      pods.set(next, { ...started, status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } } as KubeObject);
      healthy.set(app, (healthy.get(app) ?? 0) + 1);
    });
  };
  const list = (kind: string, options: Parameters<Cluster['list']>[1] = {}, namespace?: string): readonly KubeObject[] => {
    if (kind !== 'Pod') return kind === 'Node' ? [...nodes.values()] : (objects[kind] ?? []);
    const node = options.fieldSelector?.replace('spec.nodeName=', '');
    const app = /^app=([^,]+)$/.exec(options.labelSelector ?? '')?.[1];
    const uids = node === undefined ? (app === undefined ? pods.keys() : (byApp.get(app) ?? [])) : (byNode.get(node) ?? []);
    const found = [...uids].flatMap((uid) => pods.get(uid) ?? []);
    const { matches } = parseLabelSelector(options.labelSelector ?? '');
    return found.filter(({ metadata }) => (namespace === undefined || metadata.namespace === namespace) && matches(metadata.labels ?? {}));
  };
  const cluster: Pick<Cluster, 'version' | 'get' | 'list' | 'patch' | 'evict' | 'create'> = {
    version: async () => {
      count('get', 'version');
      return 'v1.36.2';
    },
    get: async ({ kind, name }) => {
      count('get', kind);
      return kind === 'Node' ? (nodes.get(name) ?? null) : (objects[kind]?.find(({ metadata }) => metadata.name === name) ?? null);
    },
    list: async ({ kind, namespace }, options) => {
      const items = list(kind, options, namespace);
      count('list', kind, Math.max(1, Math.ceil(items.length / 500)));
      return { items, resourceVersion: '1' };
    },
    patch: async ({ name }, type, patch) => {
      count('patch', 'Node');
      const node = applyPatch(NODE, nodes.get(name) as unknown as JsonObject, type, patch as JsonObject) as unknown as KubeObject;
      nodes.set(name, node);
      return node;
    },
    evict: async ({ uid }) => {
      count('evict', 'Pod');
      const pod = pods.get(uid);
      if (pod === undefined) return { kind: 'gone' };
      const app = appOf(pod);
      const missing = (wanted.get(app) ?? 0) - (healthy.get(app) ?? 0);
      if (missing >= (allowed.get(app) ?? Number.POSITIVE_INFINITY))
        return { kind: 'refused', httpStatus: 429, why: 'a budget', retryAfterMs: null };
      replace(uid, pod);
      return { kind: 'evicted' };
    },
    create: async (object) => {
      count('create', object.kind);
      return { ...object, status: { allowed: true } } as unknown as KubeObject;
    },
  };
  return { cluster: cluster as Cluster, requests };
}

function nodeOf({ spec }: KubeObject): string {
  return (spec as { nodeName: string }).nodeName;
}

/** One schedulable node after the other. */
function placesInTurn(names: readonly string[], isSchedulable: (name: string) => boolean): () => string {
  let last = 0;
  return () => {
    do last = (last + 1) % names.length;
    while (!isSchedulable(names[last] as string));
    return names[last] as string;
  };
}
