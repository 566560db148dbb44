import { groupBy } from '../../base/group-by.ts';
import { isJsonObject, type JsonObject } from '../../base/json.ts';
import { memoized } from '../../base/memoized.ts';
import { matchesExpressions, matchesLabels } from '../../kube/match-labels.ts';
import { isNodeReady } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';
import { entriesAt, isTrue, listAt, objectAt, objectsAt, textAt } from '../../kubelet/documents/values.ts';
import { containersOf, readPod } from '../../kubelet/workload/pod.ts';
import { resourceAmount } from './amounts.ts';
import type { DrainPod } from './drain-pod.ts';

/** Estimates whether other nodes can take the pods of a node. */
export interface PlacementEstimate {
  /**
   * Places the pods of a node one after the other on other nodes; nothing stays placed for the next node.
   * @returns the pods without a place, with the reasons of the other nodes as a clause
   */
  unplaced(node: string, pods: readonly DrainPod[]): readonly { readonly pod: string; readonly why: string }[];
}

interface Candidate {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Taints that keep new pods away. */
  readonly taints: readonly JsonObject[];
  readonly free: Map<string, number>;
}

/** Volumes that only some nodes can use: the required node affinity of the PersistentVolume, by `NAMESPACE/CLAIM`. */
export type LocalVolumes = ReadonlyMap<string, JsonObject>;

/**
 * Considers node selectors, required node affinity (of local volumes too), taints, required pod affinity and anti-affinity,
 * and free requests. Not considered: topology spread constraints, host ports, volume limits and preemption.
 * @param pods all pods of the cluster
 */
export function estimatePlacement(nodes: readonly KubeObject[], pods: readonly DrainPod[], volumes: LocalVolumes): PlacementEstimate {
  const active = pods.filter(({ kind, node }) => kind !== 'finished' && node !== '');
  const requests = memoized((pod: DrainPod) => requestsOf(pod));
  const candidates = nodes.filter((node) => isNodeReady(node) && !isTrue(node, 'spec.unschedulable')).map(candidateOf);
  const byName = new Map(candidates.map((one) => [one.name, one]));
  for (const pod of active) take(byName.get(pod.node)?.free, requests(pod), 1);
  const labelsOf = new Map(nodes.map(({ metadata }) => [metadata.name, metadata.labels ?? {}]));
  const neighbours = neighbourIndex(active, labelsOf);
  return {
    unplaced: (node, own) => {
      const placed: { readonly free: Map<string, number>; readonly amounts: readonly (readonly [string, number])[] }[] = [];
      const left = own.flatMap((pod) => {
        const reasons = new Map<string, number>();
        const terms = affinityOf(pod, volumes);
        for (const candidate of candidates) {
          if (candidate.name === node) continue;
          const why = whyNot(pod, candidate, { ...terms, node, neighbours, amounts: requests(pod) });
          if (why === null) {
            take(candidate.free, requests(pod), 1);
            placed.push({ free: candidate.free, amounts: requests(pod) });
            return [];
          }
          reasons.set(why, (reasons.get(why) ?? 0) + 1);
        }
        const counted = [...reasons].map(([why, count]) => `${count} ${why}`);
        const others = candidates.filter(({ name }) => name !== node).length;
        return [
          {
            pod: pod.name,
            why: others === 0 ? 'no other node is Ready and schedulable' : `of ${others} other nodes: ${counted.join(', ')}`,
          },
        ];
      });
      for (const { free, amounts } of placed) take(free, amounts, -1);
      return left;
    },
  };
}

function candidateOf(node: KubeObject): Candidate {
  const taints = objectsAt(node, 'spec.taints').filter(({ effect }) => effect === 'NoSchedule' || effect === 'NoExecute');
  const free = entriesAt(node, 'status.allocatable').map(([name, value]) => [name, resourceAmount(name, value)] as const);
  return { name: node.metadata.name, labels: node.metadata.labels ?? {}, taints, free: new Map(free) };
}

function take(free: Map<string, number> | undefined, amounts: readonly (readonly [string, number])[], sign: 1 | -1): void {
  if (free !== undefined) for (const [name, amount] of amounts) free.set(name, (free.get(name) ?? 0) - sign * amount);
}

/** All resources of a pod, and one of the places for pods. */
function requestsOf({ object }: DrainPod): readonly (readonly [string, number])[] {
  const { cpuMillis, memoryBytes, ephemeralBytes } = readPod(object).requests;
  const extended = new Map<string, number>();
  for (const container of containersOf(objectAt(object, 'spec')))
    for (const [name, value] of entriesAt(container, 'resources.requests'))
      if (name.includes('/')) extended.set(name, (extended.get(name) ?? 0) + resourceAmount(name, value));
  const all = [['pods', 1], ['cpu', cpuMillis], ['memory', memoryBytes], ['ephemeral-storage', ephemeralBytes], ...extended] as const;
  return all.filter(([, amount]) => amount > 0);
}

interface PodTerms {
  readonly nodeSelector: Readonly<Record<string, unknown>>;
  /** Each: one of the terms must match. */
  readonly required: readonly JsonObject[];
  readonly together: readonly JsonObject[];
  readonly apart: readonly JsonObject[];
  readonly tolerations: readonly JsonObject[];
}

function affinityOf({ object, namespace }: DrainPod, volumes: LocalVolumes): PodTerms {
  const path = 'requiredDuringSchedulingIgnoredDuringExecution';
  const ofNode = objectAt(object, `spec.affinity.nodeAffinity.${path}`);
  const claims = objectsAt(object, 'spec.volumes').map((volume) => `${namespace}/${textAt(volume, 'persistentVolumeClaim.claimName')}`);
  return {
    nodeSelector: objectAt(object, 'spec.nodeSelector'),
    required: [
      ...(listAt(ofNode, 'nodeSelectorTerms').length === 0 ? [] : [ofNode]),
      ...claims.flatMap((claim) => {
        const ofVolume = volumes.get(claim);
        return ofVolume === undefined ? [] : [ofVolume];
      }),
    ],
    together: objectsAt(object, `spec.affinity.podAffinity.${path}`),
    apart: objectsAt(object, `spec.affinity.podAntiAffinity.${path}`),
    tolerations: objectsAt(object, 'spec.tolerations'),
  };
}

type Neighbours = ReturnType<typeof neighbourIndex>;

/** The reason why a node cannot take a pod, as the end of `3 ...`; null: it can. */
function whyNot(
  pod: DrainPod,
  { name, labels, taints, free }: Candidate,
  terms: PodTerms & { readonly node: string; readonly neighbours: Neighbours; readonly amounts: readonly (readonly [string, number])[] },
): string | null {
  const { nodeSelector, required, together, apart, tolerations, node, neighbours, amounts } = terms;
  if (Object.entries(nodeSelector).some(([key, value]) => labels[key] !== value)) return 'do not match its nodeSelector';
  if (required.some((selector) => !matchesNodeSelector(selector, name, labels))) return 'do not match its required node affinity or volume';
  const taint = taints.find((one) => !tolerations.some((toleration) => tolerates(toleration, one)));
  if (taint !== undefined) return `have the taint ${textAt(taint, 'key')}`;
  if (apart.some((term) => neighbours.count(pod, term, labels, node) > 0)) return 'have pods that its anti-affinity excludes';
  if (together.some((term) => neighbours.count(pod, term, labels, node) === 0)) return 'lack pods that its affinity requires';
  const short = amounts.find(([resource, amount]) => amount > (free.get(resource) ?? 0));
  return short === undefined ? null : short[0] === 'pods' ? 'have no place for another pod' : `have too little free ${short[0]}`;
}

function matchesNodeSelector(selector: JsonObject, name: string, labels: Readonly<Record<string, string>>): boolean {
  return objectsAt(selector, 'nodeSelectorTerms').some(
    ({ matchExpressions, matchFields }) =>
      (matchExpressions !== undefined || matchFields !== undefined) &&
      matchesExpressions(matchExpressions, labels) &&
      matchesExpressions(matchFields, { 'metadata.name': name }),
  );
}

function tolerates(toleration: JsonObject, taint: JsonObject): boolean {
  const [key, value, effect] = [textAt(toleration, 'key'), textAt(toleration, 'value'), textAt(toleration, 'effect')];
  const operator = textAt(toleration, 'operator') || 'Equal';
  if (effect !== '' && effect !== taint.effect) return false;
  if (key === '') return operator === 'Exists';
  return key === taint.key && (operator === 'Exists' || value === textAt(taint, 'value'));
}

/** Counts the pods near a node that a term of affinity selects, without those of the node that is drained. */
function neighbourIndex(pods: readonly DrainPod[], labelsOf: ReadonlyMap<string, Readonly<Record<string, string>>>) {
  const byNamespace = groupBy(pods, ({ namespace }) => namespace);
  /** Selected pods by value of the topology key, then by node. */
  const found = new Map<string, Map<string, Map<string, number>>>();
  const countsOf = (namespace: string, term: JsonObject): Map<string, Map<string, number>> => {
    const key = `${namespace} ${JSON.stringify(term)}`;
    const known = found.get(key);
    if (known !== undefined) return known;
    const counts = new Map<string, Map<string, number>>();
    const named = listAt(term, 'namespaces').filter((name) => typeof name === 'string');
    // Terms with a selector of namespaces are estimated by the pod's own.
    for (const pod of (named.length > 0 ? named : [namespace]).flatMap((name) => byNamespace.get(name) ?? [])) {
      const value = labelsOf.get(pod.node)?.[textAt(term, 'topologyKey')];
      if (value === undefined || !isJsonObject(term.labelSelector) || !matchesLabels(term.labelSelector, pod.labels)) continue;
      const nodes = counts.get(value) ?? new Map<string, number>();
      counts.set(value, nodes.set(pod.node, (nodes.get(pod.node) ?? 0) + 1));
    }
    found.set(key, counts);
    return counts;
  };
  return {
    count: (pod: DrainPod, term: JsonObject, labels: Readonly<Record<string, string>>, drained: string): number => {
      const value = labels[textAt(term, 'topologyKey')];
      const nodes = value === undefined ? undefined : countsOf(pod.namespace, term).get(value);
      return [...(nodes ?? [])].reduce((sum, [node, count]) => sum + (node === drained ? 0 : count), 0);
    },
  };
}
