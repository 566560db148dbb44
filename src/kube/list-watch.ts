import type { Clock } from '../base/clock.ts';
import { isAppError } from '../base/errors.ts';
import type { Cluster, ListOptions } from './cluster.ts';
import type { KubeObject } from './object.ts';

export interface FollowCollectionOptions {
  readonly cluster: Cluster;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signal: AbortSignal;
  /** Maximum delay between attempts; default: 30 s. */
  readonly longestDelayMs?: number;
  /**
   * Receives the current objects by name (`NAMESPACE/NAME` for several namespaces), initially and after each
   * change.
   */
  readonly onObjects: (objects: ReadonlyMap<string, KubeObject>) => void;
  /** Removes the parts of an object that are not needed, so that they take no memory. Default: none. */
  readonly reduce?: (object: KubeObject) => KubeObject;
  /** Receives each error of a list or watch; a retry follows. */
  readonly onIssue: (error: unknown) => void;
  /** Whether the objects cannot change any more, so that the watch can end. */
  readonly isFinal?: (objects: ReadonlyMap<string, KubeObject>) => boolean;
}

const FIRST_DELAY_MS = 800;
const LONGEST_DELAY_MS = 30_000;

/**
 * One list, then a watch, which is reopened when the server ends it. Failures are retried after 0.8 s,
 * doubled up to 30 s, with jitter so that many clients do not retry at once. Ends when the signal is aborted.
 */
export async function listWatch(kind: Parameters<Cluster['list']>[0] & ListOptions, options: FollowCollectionOptions): Promise<void> {
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

/** Returns true when `isFinal` ended the watch. */
async function followOnce(
  { fieldSelector, labelSelector, ...kind }: Parameters<typeof listWatch>[0],
  options: FollowCollectionOptions,
  onAnswer: () => void,
): Promise<boolean> {
  const { cluster, signal, onObjects, isFinal = () => false, clock, random, reduce = (object) => object } = options;
  const selected = { fieldSelector, labelSelector };
  const keyOf = ({ metadata: { namespace, name } }: KubeObject): string =>
    kind.namespace === undefined && namespace !== undefined ? `${namespace}/${name}` : name;
  // In a function, so that the complete list is not kept while the watch runs.
  const listed = async () => {
    const { items, resourceVersion } = await cluster.list(kind, selected);
    return { objects: new Map(items.map((object) => [keyOf(object), reduce(object)])), resourceVersion };
  };
  const { objects, resourceVersion } = await listed();
  onAnswer();
  onObjects(objects);
  if (isFinal(objects)) return true;
  for (let version = resourceVersion; !signal.aborted; ) {
    let events = 0;
    for await (const { type, object } of cluster.watch(kind, { ...selected, resourceVersion: version, signal })) {
      events++;
      version = object.metadata.resourceVersion ?? version;
      if (type === 'BOOKMARK') continue;
      if (type === 'DELETED') objects.delete(keyOf(object));
      else objects.set(keyOf(object), reduce(object));
      onObjects(objects);
      if (isFinal(objects)) return true;
    }
    // A server that ends every watch immediately is not queried again immediately.
    if (events === 0 && !signal.aborted) await clock.sleep(FIRST_DELAY_MS * (0.5 + random()), signal).catch(() => undefined);
  }
  return false;
}
