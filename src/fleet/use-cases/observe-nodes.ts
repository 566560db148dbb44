import type { RunTime } from '../../base/clock.ts';
import { groupBy } from '../../base/group-by.ts';
import { namesText, sortedNames } from '../../base/text/name-ranges.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { conditionOf, isNodeReady } from '../../kube/node-conditions.ts';
import type { KubeObject } from '../../kube/object.ts';

/** The Nodes of a cluster as observed after a command. */
interface ObservedNodes {
  readonly ready: readonly string[];
  /** The others, with the message of their condition Ready. */
  readonly others: readonly { readonly name: string; readonly why: string }[];
  readonly waitedMs: number;
}

/** Without a pod network no Node becomes Ready: waiting is pointless. */
const WITHOUT_NETWORK = /NetworkPluginNotReady|network not ready|cni plugin/i;

/**
 * Observes the Nodes until all are Ready, until none of the others can become Ready without a pod network, or until the time
 * limit.
 * @throws errors of `Cluster.list`
 */
export async function observeNodes({ clock, signal }: RunTime, cluster: Cluster, timeoutMs: number): Promise<ObservedNodes> {
  const read = async (): Promise<Omit<ObservedNodes, 'waitedMs'>> => {
    const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Node' });
    const named = (nodes: readonly KubeObject[]) => sortedNames(nodes.map(({ metadata: { name } }) => name));
    const others = new Map(items.filter((node) => !isNodeReady(node)).map((node) => [node.metadata.name, whyNotReady(node)]));
    return {
      ready: named(items.filter(isNodeReady)),
      others: sortedNames([...others.keys()]).map((name) => ({ name, why: others.get(name) ?? '' })),
    };
  };
  return waitUntil(
    { clock, signal },
    {
      probe: async (elapsedMs) => {
        const nodes = await read();
        const isFinal = nodes.others.every(({ why }) => WITHOUT_NETWORK.test(why)) && nodes.ready.length + nodes.others.length > 0;
        return isFinal ? { done: { ...nodes, waitedMs: elapsedMs() } } : { pending: nodes };
      },
      timeoutMs,
      pauseMs: () => 1_000,
      timedOut: (nodes, waitedMs) => ({ ...nodes, waitedMs }),
    },
  );
}

function whyNotReady(node: KubeObject): string {
  return conditionOf(node, 'Ready')?.message ?? 'the kubelet has not reported condition Ready';
}

/** `Ready: cp1, w1; NotReady after 10s: w2 (message)`. */
export function nodesText({ ready, others, waitedMs }: ObservedNodes): string {
  if (ready.length + others.length === 0) return `no Node is registered after ${Math.round(waitedMs / 1000)}s`;
  const reasons = groupBy(others, ({ why }) => why);
  const parts = [
    ...(ready.length > 0 ? [`Ready: ${namesText(ready)}`] : []),
    ...[...reasons].map(
      ([why, nodes]) => `NotReady after ${Math.round(waitedMs / 1000)}s: ${namesText(nodes.map(({ name }) => name))} (${why})`,
    ),
  ];
  return parts.join('; ');
}
