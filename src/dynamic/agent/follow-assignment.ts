import { isAppError, messageOf } from '../../base/errors.ts';
import { type FollowCollectionOptions, listWatch } from '../../kube/list-watch.ts';
import type { KubeObject, ObjectRef } from '../../kube/object.ts';
import { type ConfigSource, describeSource, sameSource } from '../../kubelet/layers/config-source.ts';
import type { AgentOptions } from './agent-options.ts';
import { type AssignedObject, preparationKey, readNodeAssignment, readNodeProperties } from './prepare-assigned.ts';
import type { AgentEvent, SyncFailure } from './state.ts';

export type AssignmentMessage =
  /** Null: the ConfigMap does not exist. */
  | { readonly kind: 'config-map'; readonly source: ConfigSource; readonly object: KubeObject | null }
  | { readonly kind: 'config-map-issue'; readonly source: ConfigSource; readonly error: unknown }
  /** Null: the API server is unreachable. The assignment is kept. */
  | { readonly kind: 'node'; readonly node: KubeObject | null }
  /** The local configuration of the host changed: the payload is prepared again. */
  | { readonly kind: 'local-config' }
  | { readonly kind: 'wake' };

type AssignmentOptions = Pick<AgentOptions, 'namespace' | 'spreadMs' | 'clock' | 'random' | 'signal'> & {
  readonly follow: (source: ConfigSource, signal: AbortSignal) => void;
  readonly prepare: (assigned: AssignedObject) => Promise<AgentEvent>;
};

/** Interval at which a payload is prepared again, up to twice this time. */
const RESYNC_MS = 900_000;
const AGAIN_MS = 10_000;

interface Following {
  /** Null: the API server is unreachable. */
  readonly node: KubeObject | null;
  readonly source: ConfigSource | null;
  /** Null: the ConfigMap does not exist or cannot be read. */
  readonly object: KubeObject | null;
  readonly lastVersion: string | null;
  readonly preparedFor: string;
  /** An edit in place is delayed until this time. */
  readonly spreadUntil: number | null;
  readonly againAt: number | null;
}

const NOTHING: Following = { node: null, source: null, object: null, lastVersion: null, preparedFor: '', spreadUntil: null, againAt: null };

/** The next state, and the event that follows from it; `prepare`: the payload is prepared if it is new. */
type Step = readonly [Following, AgentEvent | 'prepare' | null];

/**
 * Derives the assignment of a node from its Node and the assigned ConfigMap. A version of a ConfigMap is prepared once for
 * the same properties of the Node, and again at intervals because the local configuration may have changed.
 * `handle` returns the event for the agent that follows from a message; null: no change.
 */
export function followAssignment(options: AssignmentOptions) {
  const { clock, random, signal, follow, prepare } = options;
  const now = (): number => clock.now().getTime();
  let state = NOTHING;
  let watch = new AbortController();

  const prepareIfNew = async (): Promise<AgentEvent | null> => {
    const { node, object, source, spreadUntil } = state;
    if (node === null || object === null || source === null || spreadUntil !== null) return null;
    const properties = readNodeProperties(node);
    const nodeUid = node.metadata.uid ?? null;
    const preparedFor = `${preparationKey(source, object, properties)} ${nodeUid}`;
    if (preparedFor === state.preparedFor) return null;
    try {
      const event = await prepare({ source, object, node: properties });
      // A cordoned node may still be draining.
      const mayBeDrained = properties.isCordoned && event.kind === 'assigned' && event.refusal?.code === 'NOT_ALLOWED';
      const pauseMs = mayBeDrained ? AGAIN_MS * (0.5 + random()) : RESYNC_MS * (1 + random());
      state = { ...state, preparedFor, againAt: now() + pauseMs };
      return event.kind === 'assigned' ? { ...event, nodeUid } : event;
    } catch (error) {
      if (signal.aborted) throw error;
      state = { ...state, preparedFor: '', againAt: now() + AGAIN_MS * (0.5 + random()) };
      return { kind: 'unavailable', issue: { code: 'SYNC_INTERNAL_FAILURE', cause: messageOf(error) } };
    }
  };

  const handle = async (input: AssignmentMessage): Promise<AgentEvent | null> => {
    const { source } = state;
    const [following, result] = step(state, input, options);
    state = following;
    if (following.source !== source) {
      watch.abort();
      watch = new AbortController();
      if (following.source !== null) follow(following.source, AbortSignal.any([signal, watch.signal]));
    }
    return result === 'prepare' ? prepareIfNew() : result;
  };

  return {
    handle,
    /** Time at which to send `wake`, in milliseconds since 1970; null: never. */
    get wakeAt(): number | null {
      const { spreadUntil, againAt } = state;
      return spreadUntil === null || againAt === null ? (spreadUntil ?? againAt) : Math.min(spreadUntil, againAt);
    },
  };
}

function step(state: Following, input: AssignmentMessage, { namespace, spreadMs, clock, random }: AssignmentOptions): Step {
  const now = clock.now().getTime();
  if (input.kind === 'node') return nodeStep(state, input.node, namespace);
  if (input.kind === 'local-config') return [{ ...state, preparedFor: '' }, 'prepare'];
  if (input.kind === 'wake') {
    // The limit keeps a clock that was set back from causing a long wait.
    const isOver = (at: number | null, longestMs: number): boolean => at !== null && (now >= at || at - now > longestMs);
    const [isSpread, isAgain] = [isOver(state.spreadUntil, spreadMs), isOver(state.againAt, 2 * RESYNC_MS)];
    if (!isSpread && !isAgain) return [state, null];
    const spread = isSpread ? { ...state, spreadUntil: null } : state;
    return [isAgain ? { ...spread, againAt: null, preparedFor: '' } : spread, 'prepare'];
  }
  const { source } = input;
  if (state.source === null || !sameSource(state.source, source)) return [state, null];
  if (input.kind === 'config-map-issue') {
    const cause = `${describeSource(source)} cannot be read: ${whyUnreadable(input.error)}`;
    return unavailable({ ...state, object: null }, { code: 'DOWNLOAD_FAILED', cause });
  }
  const { object } = input;
  const lastVersion = object?.metadata.resourceVersion ?? null;
  const next = { ...state, object, lastVersion };
  if (object === null)
    return unavailable(next, { code: 'DOWNLOAD_FAILED', cause: `ConfigMap ${source.namespace}/${source.name} does not exist` });
  const isEdited = state.lastVersion !== null && state.lastVersion !== lastVersion && spreadMs > 0;
  return [isEdited ? { ...next, spreadUntil: state.spreadUntil ?? now + random() * spreadMs } : next, 'prepare'];
}

function nodeStep(state: Following, node: KubeObject | null, namespace: string): Step {
  if (node === null) return [{ ...state, node }, null];
  const assignment = readNodeAssignment(node, namespace);
  const source = assignment.kind === 'source' ? assignment.source : null;
  const isSame = state.source !== null && source !== null && sameSource(state.source, source);
  const next = isSame ? { ...state, node } : { ...NOTHING, node, source };
  if (assignment.kind === 'nothing') return [next, unassignedBy(node)];
  return assignment.kind === 'unusable' ? unavailable(next, assignment.issue) : [next, 'prepare'];
}

/** The same version is reported again once it can be read. */
function unavailable(state: Following, issue: SyncFailure): Step {
  return [
    { ...state, preparedFor: '' },
    { kind: 'unavailable', issue },
  ];
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

/**
 * Watches one object with `listWatch`. Ends when the signal is aborted or the object is final.
 * @param options.onObject called with the current object and after each change; null: the object does not exist
 * @param options.isFinal whether the object is immutable, so that watching can end
 */
export async function watchObject(
  ref: ObjectRef,
  {
    onObject,
    isFinal = () => false,
    ...options
  }: Omit<FollowCollectionOptions, 'onObjects' | 'isFinal'> & {
    readonly onObject: (object: KubeObject | null) => void;
    readonly isFinal?: (object: KubeObject) => boolean;
  },
): Promise<void> {
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
