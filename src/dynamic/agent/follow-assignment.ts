import type { Clock } from '../../base/clock.ts';
import { isAppError, messageOf } from '../../base/errors.ts';
import { type FollowCollectionOptions, listWatch } from '../../kube/list-watch.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { type ConfigSource, describeSource, sameSource } from '../../kubelet/config-source.ts';
import type { AgentEvent } from './next.ts';
import { preparationKey, readNodeAssignment, readNodeProperties } from './node-assignment.ts';
import type { AssignedObject } from './prepare-assigned.ts';

/** Event of a watched ConfigMap. */
export type ConfigMapMessage =
  /** Null: the ConfigMap does not exist. */
  | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly object: KubeObject | null }
  | { readonly kind: 'config-map-issue'; readonly source: ConfigSource; readonly error: unknown };

/**
 * Derives the assignment of a node from its Node and the assigned ConfigMap. Each method returns an event for
 * the agent; null: no change.
 */
export interface AssignmentFollower {
  /** Null: the API server is unreachable. The assignment is kept. */
  nodeIs(node: KubeObject | null): Promise<AgentEvent | null>;
  handle(message: ConfigMapMessage): Promise<AgentEvent | null>;
  /** The local configuration of the host changed: the payload is prepared again. */
  localChanged(): Promise<AgentEvent | null>;
  /** Time at which to call `wake` without an event, in milliseconds since 1970; null: never. */
  readonly wakeAt: number | null;
  wake(): Promise<AgentEvent | null>;
}

export interface AssignmentOptions {
  /** ConfigMaps of other namespaces are not read. */
  readonly namespace: string;
  /** Period over which nodes apply an in-place edit of the ConfigMap. */
  readonly spreadMs: number;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Watches a ConfigMap until the signal is aborted. */
  readonly follow: (source: ConfigSource, signal: AbortSignal) => void;
  /** Builds and stores the payload of the kubelet. */
  readonly prepare: (assigned: AssignedObject) => Promise<AgentEvent>;
}

/** Interval at which a payload is prepared again, up to twice this time. */
const RESYNC_MS = 900_000;
/** Delay after a failed preparation. */
const AGAIN_MS = 10_000;

/**
 * Follows the assignment of a node. A version of a ConfigMap is prepared once for the same properties of the Node, and
 * again at intervals because the local configuration may have changed.
 */
export function followAssignment({ namespace, spreadMs, clock, random, signal, follow, prepare }: AssignmentOptions): AssignmentFollower {
  let node: KubeObject | null = null;
  let followed: { readonly source: ConfigSource; readonly stop: AbortController } | null = null;
  /** Null: the ConfigMap does not exist or cannot be read. */
  let object: KubeObject | null = null;
  let lastVersion: string | null = null;
  let preparedFor = '';
  /** An edit in place is delayed until this time. */
  let spreadUntil: number | null = null;
  let againAt: number | null = null;
  const now = (): number => clock.now().getTime();

  const followOnly = (source: ConfigSource | null): void => {
    if (followed !== null && source !== null && sameSource(followed.source, source)) return;
    followed?.stop.abort();
    followed = null;
    [object, lastVersion] = [null, null];
    preparedFor = '';
    spreadUntil = null;
    againAt = null;
    if (source === null) return;
    const stop = new AbortController();
    followed = { source, stop };
    follow(source, AbortSignal.any([signal, stop.signal]));
  };

  /** The same version is reported again once it can be read. */
  const unavailable = (issue: Extract<AgentEvent, { readonly kind: 'unavailable' }>['issue']): AgentEvent => {
    preparedFor = '';
    return { kind: 'unavailable', issue };
  };

  const prepareIfNew = async (): Promise<AgentEvent | null> => {
    if (node === null || object === null || followed === null || spreadUntil !== null) return null;
    const { source } = followed;
    const properties = readNodeProperties(node);
    const nodeUid = node.metadata.uid ?? null;
    const key = `${preparationKey(source, object, properties)} ${nodeUid}`;
    if (key === preparedFor) return null;
    try {
      const event = await prepare({ source, object, node: properties });
      preparedFor = key;
      againAt = now() + RESYNC_MS * (1 + random());
      return event.kind === 'assigned' ? { ...event, nodeUid } : event;
    } catch (error) {
      if (signal.aborted) throw error;
      againAt = now() + AGAIN_MS * (0.5 + random());
      return unavailable({ code: 'SYNC_INTERNAL_FAILURE', cause: messageOf(error) });
    }
  };

  const isFollowed = (source: ConfigSource): boolean => followed !== null && sameSource(followed.source, source);
  /** The limit keeps a clock that was set back from causing a long wait. */
  const isOver = (at: number | null, longestMs: number): boolean => at !== null && (now() >= at || at - now() > longestMs);

  return {
    nodeIs: async (next) => {
      node = next;
      if (node === null) return null;
      const assignment = readNodeAssignment(node, namespace);
      followOnly(assignment.kind === 'source' ? assignment.source : null);
      if (assignment.kind === 'nothing') return unassignedBy(node);
      return assignment.kind === 'unusable' ? unavailable(assignment.issue) : prepareIfNew();
    },
    handle: async (message) => {
      const { source } = message;
      if (!isFollowed(source)) return null;
      if (message.kind === 'config-map-issue') {
        object = null;
        return unavailable({ code: 'DOWNLOAD_FAILED', cause: `${describeSource(source)} cannot be read: ${whyUnreadable(message.error)}` });
      }
      const before = lastVersion;
      object = message.object;
      lastVersion = object?.metadata.resourceVersion ?? null;
      if (object === null)
        return unavailable({ code: 'DOWNLOAD_FAILED', cause: `ConfigMap ${source.namespace}/${source.name} does not exist` });
      if (before !== null && before !== lastVersion && spreadMs > 0) spreadUntil ??= now() + random() * spreadMs;
      return prepareIfNew();
    },
    localChanged: () => {
      preparedFor = '';
      return prepareIfNew();
    },
    get wakeAt() {
      return spreadUntil === null || againAt === null ? (spreadUntil ?? againAt) : Math.min(spreadUntil, againAt);
    },
    wake: async () => {
      const [isSpread, isAgain] = [isOver(spreadUntil, spreadMs), isOver(againAt, 2 * RESYNC_MS)];
      if (!isSpread && !isAgain) return null;
      if (isSpread) spreadUntil = null;
      if (isAgain) [againAt, preparedFor] = [null, ''];
      return prepareIfNew();
    },
  };
}

/** The RBAC rules of the agent are deleted with the Node, and are missing on a Node that was created again. */
function whyUnreadable(error: unknown): string {
  const why = messageOf(error);
  return isAppError(error, 'CLUSTER_FORBIDDEN')
    ? `${why}. To create the RBAC rules of the agent again, run kubeletadm dynamic assign with an administrator kubeconfig, or kubeletadm dynamic enable HOST`
    : why;
}

function unassignedBy({ metadata: { uid, creationTimestamp } }: KubeObject): AgentEvent {
  return uid === undefined
    ? { kind: 'unassigned' }
    : { kind: 'unassigned', node: { uid, createdAt: creationTimestamp ?? 'an unknown time' } };
}

export interface FollowOptions extends Pick<FollowCollectionOptions, 'cluster' | 'clock' | 'random' | 'signal' | 'onIssue'> {
  /** Called with the current object and after each change; null: the object does not exist. */
  readonly onObject: (object: KubeObject | null) => void;
  /** Whether the object is immutable, so that watching can end. */
  readonly isFinal?: (object: KubeObject) => boolean;
}

/** Watches one object with `listWatch`. Ends when the signal is aborted or the object is final. */
export async function watchObject(ref: ObjectRef, { onObject, isFinal = () => false, ...options }: FollowOptions): Promise<void> {
  const { apiVersion, kind, namespace, name } = ref;
  const followed = { apiVersion, kind, namespace, fieldSelector: `metadata.name=${name}` };
  await listWatch(followed, {
    ...options,
    onObjects: (objects) => onObject(objects.get(name) ?? null),
    isFinal: (objects) => {
      const object = objects.get(name);
      return object !== undefined && isFinal(object);
    },
  });
}
