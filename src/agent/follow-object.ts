import { isAppError } from '../core/errors.ts';
import type { KubeObject, ObjectRef } from '../core/kubernetes/object.ts';
import type { Clock } from '../ports/clock.ts';
import type { Cluster } from '../ports/cluster.ts';

export interface FollowOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** The object as it is now, and each time it changed; null: it is not there. */
  readonly onObject: (object: KubeObject | null) => void;
  /** It can't be followed now. It is tried again. */
  readonly onTrouble: (error: unknown) => void;
  /** Whether there is nothing more to follow: an object that can't change. */
  readonly isFinal?: (object: KubeObject) => boolean;
}

const FIRST_DELAY_MS = 800;
const LONGEST_DELAY_MS = 30_000;

/**
 * Follows one object: a list, then one watch, which is opened again when the server ends it. Nothing is asked for while nothing changes. What fails is tried
 * again after 0.8 s, doubled up to 30 s, with a jitter that keeps many agents from coming back at once. Ends when the signal is aborted.
 */
export async function followObject(ref: ObjectRef, options: FollowOptions): Promise<void> {
  const { signal, clock, random, onTrouble } = options;
  for (let failures = 0; !signal.aborted; ) {
    try {
      if (await followOnce(ref, options, () => (failures = 0))) return;
    } catch (error) {
      if (signal.aborted) return;
      const isGone = isAppError(error, 'CLUSTER_GONE');
      if (!isGone) onTrouble(error);
      const delayMs = Math.min(FIRST_DELAY_MS * 2 ** Math.min(failures, 10), LONGEST_DELAY_MS);
      failures++;
      await clock.sleep(delayMs * (0.5 + random()), signal).catch(() => undefined);
    }
  }
}

/** True: there is nothing more to follow. */
async function followOnce(ref: ObjectRef, options: FollowOptions, onAnswer: () => void): Promise<boolean> {
  const { cluster, signal, onObject, isFinal = () => false, clock, random } = options;
  const kind = { apiVersion: ref.apiVersion, kind: ref.kind, ...(ref.namespace === undefined ? {} : { namespace: ref.namespace }) };
  const fieldSelector = `metadata.name=${ref.name}`;
  const { items, resourceVersion } = await cluster.list(kind, { fieldSelector });
  onAnswer();
  const [found = null] = items;
  onObject(found);
  if (found !== null && isFinal(found)) return true;
  for (let version = resourceVersion; !signal.aborted; ) {
    let events = 0;
    for await (const { type, object } of cluster.watch(kind, { fieldSelector, resourceVersion: version, signal })) {
      events++;
      version = object.metadata.resourceVersion ?? version;
      if (type === 'BOOKMARK') continue;
      onObject(type === 'DELETED' ? null : object);
      if (type !== 'DELETED' && isFinal(object)) return true;
    }
    // A server that ends every watch at once is not asked again at once.
    if (events === 0 && !signal.aborted) await clock.sleep(FIRST_DELAY_MS * (0.5 + random()), signal).catch(() => undefined);
  }
  return false;
}
