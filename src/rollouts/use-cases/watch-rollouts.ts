import type { RunTime } from '../../base/clock.ts';
import { isAppError, type Problem } from '../../base/errors.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { ROLLOUT_API_VERSION, ROLLOUT_KIND } from '../api/schema.ts';
import { REVISION_LABEL } from '../controller/revision.ts';
import { controllerNamespace, isControllerAlive } from './find-rollouts.ts';
import { REVISION_KIND } from './rollout-revisions.ts';

/** The objects that belong to rollouts, as the cluster showed them last. */
export interface RolloutObjects {
  readonly rollouts: readonly KubeObject[];
  readonly nodes: readonly KubeObject[];
  readonly revisions: readonly KubeObject[];
  /** Why some of them are missing or out of date. */
  readonly issues: readonly Problem[];
  /** Null: unknown. */
  readonly isControllerAlive: boolean | null;
}

const KINDS = {
  rollouts: { apiVersion: ROLLOUT_API_VERSION, kind: ROLLOUT_KIND },
  nodes: { apiVersion: 'v1', kind: 'Node' },
  revisions: { ...REVISION_KIND, labelSelector: REVISION_LABEL },
} as const;

const NAMES = ['rollouts', 'nodes', 'revisions'] as const;

const LEASE_POLL_MS = 10_000;

/**
 * Follows all rollouts, Nodes and revisions of a cluster until the signal is aborted.
 * @returns `version` changes with the objects; `ready`: each kind was listed, or its list has failed; `ended`: after the abort
 */
export function watchRollouts(cluster: Cluster, { clock, signal, random }: RunTime & { random(): number }) {
  const objects: Partial<Record<(typeof NAMES)[number], ReadonlyMap<string, KubeObject>>> = {};
  const issues = new Map<string, Problem>();
  let isAlive: boolean | null = null;
  let version = 0;
  const watches: Promise<void>[] = [];
  const follow = (name: (typeof NAMES)[number]): Promise<void> =>
    new Promise((resolve) => {
      const changed = (): void => {
        version++;
        resolve();
      };
      const onObjects = (found: ReadonlyMap<string, KubeObject>): void => {
        objects[name] = found;
        issues.delete(name);
        changed();
      };
      const onIssue = (error: unknown): void => {
        if (!isAppError(error)) throw error;
        issues.set(name, error.problems[0] as Problem);
        changed();
      };
      const watch = listWatch(KINDS[name], { cluster, clock, random, signal, onObjects, onIssue });
      watches.push(watch);
      // After an early abort, no list has an answer.
      watch.then(resolve, resolve);
    });
  const listOf = (name: (typeof NAMES)[number]): readonly KubeObject[] => [...(objects[name]?.values() ?? [])];
  const pollLease = async (): Promise<void> => {
    while (!signal.aborted) {
      const namespace = controllerNamespace(listOf('revisions'));
      const alive = await isControllerAlive(cluster, { namespace, now: clock.now() }).catch(() => null);
      if (alive !== isAlive) version++;
      isAlive = alive;
      await clock.sleep(LEASE_POLL_MS, signal).catch(() => undefined);
    }
  };
  const ready = Promise.all(NAMES.map(follow)).then(() => void watches.push(pollLease()));
  return {
    version: () => version,
    ready,
    objects: (): RolloutObjects => ({
      rollouts: listOf('rollouts'),
      nodes: listOf('nodes'),
      revisions: listOf('revisions'),
      issues: [...issues.values()],
      isControllerAlive: isAlive,
    }),
    ended: async (): Promise<void> => {
      await ready;
      await Promise.all(watches);
    },
  };
}
