import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { apiVersionOf, type ResourceType } from '../../src/kube/resources.ts';
import { withMetadata } from './members.ts';
import type { Selector } from './selectors.ts';
import { qualifiedResource } from './served-kinds.ts';
import { expired, StatusError } from './status.ts';
import type { Store, StoreEvent } from './store.ts';

export interface WatchRequest {
  readonly type: ResourceType;
  /** Empty: all namespaces. */
  readonly namespace: string;
  readonly selector: Selector;
  /** Empty or `0`: existing objects are sent first, as ADDED. */
  readonly resourceVersion: string;
  /** Sends existing objects first and a bookmark after them. */
  readonly sendInitialEvents?: boolean;
}

/** Receives the events of a watch. `ERROR` has a Status and is the last event. */
export interface WatchSink {
  send(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR', object: JsonObject): void;
  /** No further events follow. */
  end(): void;
}

export interface Watch {
  /** Sends the current resourceVersion to the client. */
  bookmark(): void;
  stop(): void;
}

/**
 * Watches the changes of a kind.
 * @throws StatusError for an invalid resourceVersion
 * @see k8s.io/apiserver pkg/storage/cacher (1.36)
 */
export function openWatch(store: Store, request: WatchRequest, sink: WatchSink): Watch {
  const { type, namespace, selector, resourceVersion } = request;
  const watched = qualifiedResource(type);
  if (resourceVersion !== '' && !/^\d+$/.test(resourceVersion)) {
    const quoted = JSON.stringify(resourceVersion);
    throw new StatusError(500, `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: invalid syntax`);
  }
  const after = Number(resourceVersion);
  const bookmark = (annotations?: JsonObject) => sink.send('BOOKMARK', bookmarkOf(type, store.revision(), annotations));
  const deliver = (event: StoreEvent): void => {
    // Types of custom resources are read from their definition each time.
    if (qualifiedResource(event.resource) !== watched || event.revision <= after) return;
    if (namespace !== '' && event.object.metadata.namespace !== namespace) return;
    const seen = seenThrough(selector, event);
    if (seen) sink.send(seen.type, seen.object);
  };
  if (after === 0 || request.sendInitialEvents) {
    const existing = store.list(type, namespace === '' ? undefined : namespace).filter(selector);
    for (const object of existing) sink.send('ADDED', object);
    if (request.sendInitialEvents) bookmark({ 'k8s.io/initial-events-end': 'true' });
  } else {
    const missed = store.since(after);
    if (missed === null) {
      sink.send('ERROR', expired(`too old resource version: ${resourceVersion} (${store.revision()})`).status);
      sink.end();
      return { bookmark: () => {}, stop: () => {} };
    }
    missed.forEach(deliver);
  }
  return { bookmark: () => bookmark(), stop: store.subscribe(deliver) };
}

/**
 * A change as seen through a selector: an object that starts to match is ADDED, one that no longer matches is
 * DELETED with its last content.
 */
function seenThrough(selector: Selector, { type, object, previous }: StoreEvent): { type: StoreEvent['type']; object: KubeObject } | null {
  const before = previous !== null && selector(previous);
  const now = type !== 'DELETED' && selector(object);
  if (now) return { type: before ? 'MODIFIED' : 'ADDED', object };
  return before && previous
    ? { type: 'DELETED', object: withMetadata(previous, { resourceVersion: object.metadata.resourceVersion }) }
    : null;
}

function bookmarkOf(type: ResourceType, revision: number, annotations?: JsonObject): JsonObject {
  return {
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: { resourceVersion: String(revision), ...(annotations ? { annotations } : {}) },
  };
}
