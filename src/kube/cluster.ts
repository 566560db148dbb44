import type { JsonObject } from '../base/json.ts';
import type { KubeObject, ObjectRef } from './object.ts';

export type { KubeObject, ObjectMeta, ObjectRef } from './object.ts';

export type PatchType = 'merge' | 'strategic' | 'json';

/**
 * `evicted`: the pod is being deleted · `gone`: no such pod · `refused` with the HTTP status (429: by a budget or for
 * overload, 500, 403) and the reason as a clause.
 */
export type EvictionResult =
  | { readonly kind: 'evicted' | 'gone' }
  | { readonly kind: 'refused'; readonly httpStatus: number; readonly why: string; readonly retryAfterMs: number | null };

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubeObject;
}

export interface ListResult {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
}

/**
 * Absent objects are `null`; objects read are never modified in place.
 * Errors (AppError): CLUSTER_UNREACHABLE (connection refused, no route, timeout, TLS: the message names the
 * cause), CLUSTER_UNAUTHORIZED (401), CLUSTER_FORBIDDEN (403), CLUSTER_NOT_FOUND (404 where an object must
 * exist), CLUSTER_CONFLICT (409: changed by another client), CLUSTER_ALREADY_EXISTS (409 on create),
 * CLUSTER_INVALID (422), CLUSTER_NO_SUCH_KIND (a kind the server does not serve), CLUSTER_ERROR (any other
 * status). Headers and request bodies are never in a message.
 */
export interface Cluster {
  /** For example `https://10.0.0.1:6443`. */
  readonly server: string;
  readonly context?: string | undefined;
  /** `gitVersion` of the server, e.g. `v1.36.2`. */
  version(): Promise<string>;
  get(ref: ObjectRef): Promise<KubeObject | null>;
  list(
    kind: { readonly apiVersion: string; readonly kind: string; readonly namespace?: string | undefined },
    options?: ListOptions,
  ): Promise<ListResult>;
  create(object: KubeObject): Promise<KubeObject>;
  /** Replaces the object; with `metadata.resourceVersion` set, only if the object is unchanged since. */
  update(object: KubeObject): Promise<KubeObject>;
  patch(
    ref: ObjectRef,
    type: PatchType,
    patch: JsonObject | readonly JsonObject[],
    options?: {
      readonly subresource?: string | undefined;
      /** Validates the request without storing the result. */
      readonly dryRun?: boolean;
    },
  ): Promise<KubeObject>;
  /** Returns null when the object did not exist. */
  delete(ref: ObjectRef): Promise<KubeObject | null>;
  /**
   * Evicts a pod through the Eviction API, which respects PodDisruptionBudgets. A pod of another UID is not evicted.
   * Refusals that a later attempt may overcome are results.
   */
  evict(
    pod: { readonly namespace: string; readonly name: string; readonly uid: string },
    options?: { readonly gracePeriodSeconds?: number | undefined },
  ): Promise<EvictionResult>;
  /**
   * Events after `resourceVersion`, until an end of the stream. Throws CLUSTER_GONE when it has expired: list
   * again.
   */
  watch(
    kind: { readonly apiVersion: string; readonly kind: string; readonly namespace?: string | undefined },
    options: ListOptions & { readonly resourceVersion?: string; readonly signal?: AbortSignal },
  ): AsyncIterable<WatchEvent>;
  /**
   * The JSON object at a path, e.g. the configz of a kubelet through the API server's proxy. Failures behind
   * a proxy are not retried. Any other response is an error by its status, with its first line. The segments
   * of the path are encoded.
   */
  getRaw(path: string): Promise<JsonObject>;
  /**
   * For requests of a wait: with `--kube-api-qps`, an interruption of the run ends those that have not
   * started. Absent: no difference. Closed with this one.
   */
  readonly untilInterrupted?: Cluster;
  /**
   * As `untilInterrupted`, for the repeated requests of a wait: other requests start first, except at every third turn.
   */
  readonly forPolls?: Cluster;
  close(): Promise<void>;
}

export function untilInterrupted(cluster: Cluster): Cluster {
  return cluster.untilInterrupted ?? cluster;
}

export function pollClient(cluster: Cluster): Cluster {
  return cluster.forPolls ?? cluster;
}

/**
 * The first request of a wait is not a poll: the wait may be over, and a host that can continue must not wait
 * for its turn like the others.
 */
export function firstThenPollClient(cluster: Cluster | null): () => Cluster | null {
  let next = cluster && untilInterrupted(cluster);
  return () => {
    const current = next;
    next = cluster && pollClient(cluster);
    return current;
  };
}

export interface ListOptions {
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
}
