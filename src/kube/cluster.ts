import type { JsonObject } from '../base/json.ts';
import type { KubeObject, ObjectRef } from './object.ts';

export type { KubeObject, ObjectMeta, ObjectRef } from './object.ts';

export type PatchType = 'merge' | 'strategic' | 'json';

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: KubeObject;
}

export interface ListResult {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
}

/**
 * A Kubernetes API server. Absent is `null`; objects read are never changed in place.
 *
 * Errors (AppError): CLUSTER_UNREACHABLE (nothing listens, no route, time-out, TLS: the message says which), CLUSTER_UNAUTHORIZED (401),
 * CLUSTER_FORBIDDEN (403), CLUSTER_NOT_FOUND (404 where an object must exist), CLUSTER_CONFLICT (409: someone else changed it),
 * CLUSTER_ALREADY_EXISTS (409 on create), CLUSTER_INVALID (422), CLUSTER_NO_SUCH_KIND (a kind the
 * server does not serve), CLUSTER_ERROR (any other status). Headers and request bodies are never in a message.
 */
export interface Cluster {
  /** e.g. `https://10.0.0.1:6443`. */
  readonly server: string;
  /** Context of the kubeconfig that the connection was made with. */
  readonly context?: string | undefined;
  /** `gitVersion` of the server, e.g. `v1.36.2`. */
  version(): Promise<string>;
  get(ref: ObjectRef): Promise<KubeObject | null>;
  list(
    kind: { readonly apiVersion: string; readonly kind: string; readonly namespace?: string },
    options?: ListOptions,
  ): Promise<ListResult>;
  create(object: KubeObject): Promise<KubeObject>;
  /** Replaces it; with `metadata.resourceVersion` set only if nobody changed it since. */
  update(object: KubeObject): Promise<KubeObject>;
  patch(ref: ObjectRef, type: PatchType, patch: JsonObject | readonly JsonObject[], options?: PatchOptions): Promise<KubeObject>;
  /** Null when there was none. */
  delete(ref: ObjectRef): Promise<KubeObject | null>;
  /** Events after `resourceVersion`, until the signal aborts or the server ends the stream. Throws CLUSTER_GONE when that version is too old: list again. */
  watch(
    kind: { readonly apiVersion: string; readonly kind: string; readonly namespace?: string },
    options: WatchOptions,
  ): AsyncIterable<WatchEvent>;
  /**
   * The JSON object a path answers with, e.g. the configz of a kubelet through the API server's proxy. Asked once: what fails behind a proxy is not tried
   * again. An answer that is no object is an error with its first line (CLUSTER_NOT_FOUND, CLUSTER_FORBIDDEN, CLUSTER_ERROR by its status).
   * @param path begins with a slash, parts encoded
   */
  getRaw(path: string): Promise<JsonObject>;
  close(): Promise<void>;
}

export interface PatchOptions {
  readonly subresource?: string;
  /** Judged and answered as if, and not kept. */
  readonly dryRun?: boolean;
}

export interface ListOptions {
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface WatchOptions extends ListOptions {
  readonly resourceVersion?: string;
  readonly signal?: AbortSignal;
}
