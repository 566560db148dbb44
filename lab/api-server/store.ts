import { randomUUID } from 'node:crypto';
import { jsonEqual } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { ResourceType } from '../../src/kube/resources.ts';
import { qualifiedResource } from './served-kinds.ts';

/**
 * A change of one object. `previous` is the state before; for a deleted object, `object` is its last state
 * under a new version.
 */
export interface StoreEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: ResourceType;
  readonly object: KubeObject;
  readonly previous: KubeObject | null;
  readonly revision: number;
}

export interface StoreOptions {
  /** Number of changes that a watch can resume from; older ones are discarded. Default 1000. */
  readonly historyLimit?: number | undefined;
}

/**
 * Objects with one increasing version over all of them, as etcd stores them for a Kubernetes API server. The
 * store validates nothing.
 */
export interface Store {
  /** The version of the last change. */
  revision(): number;
  get(type: ResourceType, namespace: string, name: string): KubeObject | null;
  /** Sorted by namespace and name; without `namespace` those of all namespaces. */
  list(type: ResourceType, namespace?: string): readonly KubeObject[];
  /** Stores an object under a new version; unchanged content keeps its version. Returns the stored object. */
  put(type: ResourceType, object: KubeObject): KubeObject;
  /**
   * Removes an object; null when it did not exist. Returns its last state under the version of the removal.
   */
  remove(type: ResourceType, namespace: string, name: string): KubeObject | null;
  /** All changes after a version, or null when the history does not reach back that far. */
  since(revision: number): readonly StoreEvent[] | null;
  /** Discards the history, as etcd's compaction does. */
  compact(): void;
  /** Calls `listener` with each change, in order, until the returned function is called. */
  subscribe(listener: (event: StoreEvent) => void): () => void;
}

/** Creates an empty store. */
export function createStore({ historyLimit = 1000 }: StoreOptions = {}): Store {
  const collections = new Map<string, Map<string, KubeObject>>();
  const listeners = new Set<(event: StoreEvent) => void>();
  const undelivered: StoreEvent[] = [];
  let history: StoreEvent[] = [];
  let revision = 0;
  let compacted = 0;

  const collectionOf = (type: ResourceType): Map<string, KubeObject> => {
    const key = qualifiedResource(type);
    const known = collections.get(key);
    if (known) return known;
    const fresh = new Map<string, KubeObject>();
    collections.set(key, fresh);
    return fresh;
  };
  const record = (event: StoreEvent): void => {
    history.push(event);
    if (history.length > historyLimit * 2) forget(history.length - historyLimit);
    undelivered.push(event);
    if (undelivered.length > 1) return;
    // A listener may change the store: those events are queued, so that all listeners receive the same order.
    for (let next = undelivered[0]; next !== undefined; undelivered.shift(), next = undelivered[0]) {
      for (const listener of [...listeners]) listener(next);
    }
  };
  const forget = (count: number): void => {
    const last = history[count - 1];
    compacted = last?.revision ?? compacted;
    history = history.slice(count);
  };

  return {
    revision: () => revision,
    get: (type, namespace, name) => collectionOf(type).get(keyOf(namespace, name)) ?? null,
    list: (type, namespace) => {
      const all = [...collectionOf(type).entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
      return namespace === undefined ? all : all.filter((object) => object.metadata.namespace === namespace);
    },
    put: (type, object) => {
      const collection = collectionOf(type);
      const key = keyOf(object.metadata.namespace ?? '', object.metadata.name);
      const previous = collection.get(key) ?? null;
      const version = previous?.metadata.resourceVersion;
      if (previous && version && jsonEqual(withVersion(object, version), previous)) return previous;
      revision += 1;
      const stored = withVersion(
        { ...object, metadata: { ...object.metadata, uid: object.metadata.uid ?? randomUUID() } },
        String(revision),
      );
      collection.set(key, stored);
      record({ type: previous ? 'MODIFIED' : 'ADDED', resource: type, object: stored, previous, revision });
      return stored;
    },
    remove: (type, namespace, name) => {
      const collection = collectionOf(type);
      const previous = collection.get(keyOf(namespace, name));
      if (!previous) return null;
      revision += 1;
      collection.delete(keyOf(namespace, name));
      const removed = withVersion(previous, String(revision));
      record({ type: 'DELETED', resource: type, object: removed, previous, revision });
      return removed;
    },
    since: (from) => (from < compacted ? null : history.filter((event) => event.revision > from)),
    compact: () => forget(history.length),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}

function keyOf(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

function withVersion(object: KubeObject, resourceVersion: string): KubeObject {
  return { ...object, metadata: { ...object.metadata, resourceVersion } };
}
