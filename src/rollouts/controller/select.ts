import { matchesLabels } from '../../kube/match-labels.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Rollout } from '../api/rollout.ts';
import type { Observed } from '../reconcile/observed.ts';

/** A rollout and the names of its Nodes. */
export interface Selection {
  readonly rollout: Rollout;
  readonly names: readonly string[];
  /** Another rollout selects the same nodes. */
  readonly refusal: Observed['refusal'];
}

/**
 * The nodes of each rollout. If several select a node, only the oldest one is rolled out, by creation time, then by name; a refused
 * rollout selects no node. The result depends on no order of events.
 */
export function selectNodes(rollouts: readonly Rollout[], nodes: readonly KubeObject[]): readonly Selection[] {
  const owners = new Map<string, string>();
  return oldestFirst(rollouts).map((rollout) => {
    const { nodeSelector, deletionPolicy } = rollout.spec;
    const selected = nodes.filter(({ metadata }) => matchesLabels(nodeSelector, metadata.labels ?? {}));
    const names = selected.map(({ metadata }) => metadata.name).toSorted();
    if (rollout.isDeleted && deletionPolicy === 'Leave') return { rollout, names: [], refusal: null };
    const taken = names.filter((name) => owners.has(name));
    const [first] = taken;
    if (rollout.isDeleted) {
      // A deleted object resets its own nodes only; those of an older one may use the same ConfigMap.
      const own = names.filter((name) => !owners.has(name));
      for (const name of own) owners.set(name, rollout.name);
      return { rollout, names: own, refusal: null };
    }
    if (first === undefined) {
      for (const name of names) owners.set(name, rollout.name);
      return { rollout, names, refusal: null };
    }
    const others = [...new Set(taken.map((name) => owners.get(name)))].join(', ');
    const more = taken.length === 1 ? '' : ` and ${taken.length - 1} more`;
    const message = `Node ${first}${more} ${taken.length === 1 ? 'is' : 'are'} selected by an older KubeletConfigRollout: ${others}`;
    return { rollout, names, refusal: { reason: 'Conflict', message } };
  });
}

/** By creation time, then by name. */
export function oldestFirst(rollouts: readonly Rollout[]): readonly Rollout[] {
  return rollouts.toSorted((a, b) => compare(a.createdAt, b.createdAt) || compare(a.name, b.name));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
