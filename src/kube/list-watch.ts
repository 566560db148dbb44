import type { Clock } from '../base/clock.ts';
import { isAppError } from '../base/errors.ts';
import type { Cluster } from './cluster.ts';
import type { KubeObject } from './object.ts';

export interface FollowedKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly fieldSelector?: string;
  readonly labelSelector?: string;
}

export interface FollowCollectionOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Between tries, where it is not half a minute. */
  readonly longestDelayMs?: number;
  /** The objects as they are now, by name, and each time one of them changed. */
  readonly onObjects: (objects: ReadonlyMap<string, KubeObject>) => void;
  /** They can't be followed now. It is tried again. */
  readonly onIssue: (error: unknown) => void;
  /** Whether there is nothing more to follow: what is there can't change. */
  readonly isFinal?: (objects: ReadonlyMap<string, KubeObject>) => boolean;
}

const FIRST_DELAY_MS = 800;
const LONGEST_DELAY_MS = 30_000;

/**
 * Follows objects of a kind: a list, then one watch, which is opened again when the server ends it. Nothing is asked for while nothing changes. What fails is tried
 * again after 0.8 s, doubled up to 30 s, with a jitter that keeps many clients from coming back at once. Ends when the signal is aborted.
 */
export async function listWatch(kind: FollowedKind, options: FollowCollectionOptions): Promise<void> {
  const { signal, clock, random, onIssue, longestDelayMs = LONGEST_DELAY_MS } = options;
  for (let failures = 0; !signal.aborted; ) {
    try {
      if (await followOnce(kind, options, () => (failures = 0))) return;
    } catch (error) {
      if (signal.aborted) return;
      const isGone = isAppError(error, 'CLUSTER_GONE');
      if (!isGone) onIssue(error);
      const delayMs = Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures, 10), longestDelayMs);
      failures++;
      await clock.sleep(delayMs * (0.5 + random()), signal).catch(() => undefined);
    }
  }
}

/** True: there is nothing more to follow. */
async function followOnce(
  { fieldSelector, labelSelector, ...kind }: FollowedKind,
  options: FollowCollectionOptions,
  onAnswer: () => void,
): Promise<boolean> {
  const { cluster, signal, onObjects, isFinal = () => false, clock, random } = options;
  const selected = {
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
    ...(labelSelector === undefined ? {} : { labelSelector }),
  };
  const { items, resourceVersion } = await cluster.list(kind, selected);
  onAnswer();
  const objects = new Map(items.map((object) => [object.metadata.name, object]));
  onObjects(objects);
  if (isFinal(objects)) return true;
  for (let version = resourceVersion; !signal.aborted; ) {
    let events = 0;
    for await (const { type, object } of cluster.watch(kind, { ...selected, resourceVersion: version, signal })) {
      events++;
      version = object.metadata.resourceVersion ?? version;
      if (type === 'BOOKMARK') continue;
      if (type === 'DELETED') objects.delete(object.metadata.name);
      else objects.set(object.metadata.name, object);
      onObjects(objects);
      if (isFinal(objects)) return true;
    }
    // A server that ends every watch at once is not asked again at once.
    if (events === 0 && !signal.aborted) await clock.sleep(FIRST_DELAY_MS * (0.5 + random()), signal).catch(() => undefined);
  }
  return false;
}
