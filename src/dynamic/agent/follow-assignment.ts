import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { KubeObject } from '../../kube/object.ts';
import { type ConfigSource, describeSource, sameSource } from '../../kubelet/config-source.ts';
import type { AgentEvent } from './next.ts';
import { preparationKey, readNodeAssignment, readNodeTerms } from './node-assignment.ts';
import type { AssignedObject } from './prepare-assigned.ts';

/** What is heard of a ConfigMap that is followed. */
export type ConfigMapMessage =
  /** Null: there is none. */
  | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly object: KubeObject | null }
  | { readonly kind: 'config-map-trouble'; readonly source: ConfigSource; readonly error: unknown };

/** What a node is assigned, from what is heard of its Node and of the ConfigMap that names. Each answers with what that means to the agent; null: nothing new. */
export interface AssignmentFollower {
  /** Null: the API server does not answer. What was assigned stays. */
  nodeIs(node: KubeObject | null): Promise<AgentEvent | null>;
  handle(message: ConfigMapMessage): Promise<AgentEvent | null>;
  /** The local configuration of the host was changed: what was prepared is prepared again with it. */
  localChanged(): Promise<AgentEvent | null>;
  /** When `wake` wants to be called though nothing was heard, in milliseconds since 1970; null: never. */
  readonly wakeAt: number | null;
  wake(): Promise<AgentEvent | null>;
}

export interface AssignmentOptions {
  /** ConfigMaps of other namespaces are not read. */
  readonly namespace: string;
  /** An edit of the ConfigMap in place reaches the nodes spread over that time. */
  readonly spreadMs: number;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Begins to follow a ConfigMap, until the signal is aborted; `hear` is told. */
  readonly follow: (source: ConfigSource, signal: AbortSignal) => void;
  /** Makes of it what the kubelet is to read, and stores that. */
  readonly prepare: (assigned: AssignedObject) => Promise<AgentEvent>;
}

/** Between one look at whether a payload is still what it was, and the next: up to twice that. */
const RESYNC_MS = 900_000;
/** After what could not be prepared or stored. */
const AGAIN_MS = 10_000;

/** Follows what a node is assigned. The same version of a ConfigMap, on the same terms, is prepared once; and now and then anew, for the local configuration may have changed. */
export function followAssignment({ namespace, spreadMs, clock, random, signal, follow, prepare }: AssignmentOptions): AssignmentFollower {
  let node: KubeObject | null = null;
  let followed: { readonly source: ConfigSource; readonly stop: AbortController } | null = null;
  /** Null: there is none, or it can't be read now. */
  let object: KubeObject | null = null;
  let lastVersion: string | null = null;
  let preparedFor = '';
  /** Until then an edit waits. */
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

  /** Once it can be had again it is told anew, though it is the same. */
  const unavailable = (issue: Extract<AgentEvent, { readonly kind: 'unavailable' }>['issue']): AgentEvent => {
    preparedFor = '';
    return { kind: 'unavailable', issue };
  };

  const prepareIfNew = async (): Promise<AgentEvent | null> => {
    if (node === null || object === null || followed === null || spreadUntil !== null) return null;
    const { source } = followed;
    const terms = readNodeTerms(node);
    const nodeUid = node.metadata.uid ?? null;
    const key = `${preparationKey(source, object, terms)} ${nodeUid}`;
    if (key === preparedFor) return null;
    try {
      const event = await prepare({ source, object, terms });
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
  /** A clock that was put back must not have it wait for long. */
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
      if (message.kind === 'config-map-trouble') {
        object = null;
        return unavailable({ code: 'DOWNLOAD_FAILED', cause: `${describeSource(source)} can't be read: ${messageOf(message.error)}` });
      }
      const before = lastVersion;
      object = message.object;
      lastVersion = object?.metadata.resourceVersion ?? null;
      if (object === null)
        return unavailable({ code: 'DOWNLOAD_FAILED', cause: `there is no ConfigMap ${source.namespace}/${source.name}` });
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

function unassignedBy({ metadata: { uid, creationTimestamp } }: KubeObject): AgentEvent {
  return uid === undefined
    ? { kind: 'unassigned' }
    : { kind: 'unassigned', node: { uid, createdAt: creationTimestamp ?? 'an unknown time' } };
}
