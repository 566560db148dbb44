import { messageOf } from '../../base/errors.ts';
import { waitUntil } from '../../base/wait-until.ts';
import type { Cluster } from '../../kube/cluster.ts';
import { listWatch } from '../../kube/list-watch.ts';
import type { KubeObject } from '../../kube/object.ts';
import { podsOfNode } from '../workload/pod.ts';
import { type PodWatch, podWatch } from './pod-watch.ts';
import { type StaticProbePorts, staticProbe } from './run-probe.ts';
import { PROBE_MS } from './signals.ts';

/** Time for the first list of the pods. */
const LIST_MS = 5_000;
const POLL_MS = 250;
/** After this time the journal is read for an error about the probe pod. */
const EXPLAINED_MS = 3_000;
const NOT_LISTED = 'the pods of the node could not be listed';

/** Watches the pods of a node during the trials of an agent, with static probe pods. */
export function trialPods(options: StaticProbePorts & { readonly cluster: Cluster }): PodWatch {
  const { host, nodeName, clock, signal } = options;
  const list = podList(options);
  return podWatch({
    ...{ host, nodeName, clock, signal },
    source: {
      read: async ({ isFirst }) => {
        list.start();
        const probe = async () => (list.pods === null ? { pending: null } : { done: list.pods });
        const wait = { probe, timeoutMs: isFirst ? LIST_MS : 0, pauseMs: () => POLL_MS, timedOut: () => null };
        return (await waitUntil<readonly KubeObject[] | null, null>({ clock, signal }, wait)) ?? NOT_LISTED;
      },
      end: list.end,
    },
    newProbe: (kubelet) => staticProbe(options, kubelet, () => list.pods),
    before: { failedMs: 0, pauseMs: () => POLL_MS },
    after: { explainedMs: EXPLAINED_MS, lateMs: PROBE_MS.agent, needsImage: false },
  });
}

/** The pods of a node, kept up to date between `start` and `end`; null: not known. */
function podList({ cluster, clock, random, nodeName, onIssue, signal }: Parameters<typeof trialPods>[0]) {
  let watching: AbortController | null = null;
  let pods: readonly KubeObject[] | null = null;
  return {
    get pods(): readonly KubeObject[] | null {
      return pods;
    },
    start: () => {
      if (watching !== null) return;
      watching = new AbortController();
      void listWatch(
        { apiVersion: 'v1', kind: 'Pod', fieldSelector: podsOfNode(nodeName) },
        {
          ...{ cluster, clock, random, signal: AbortSignal.any([signal, watching.signal]) },
          onObjects: (objects) => {
            pods = [...objects.values()];
          },
          onIssue: (error) => {
            // Pods seen earlier may have changed since.
            pods = null;
            onIssue(`${NOT_LISTED}: ${messageOf(error)}`);
          },
        },
      );
    },
    end: () => {
      watching?.abort();
      watching = null;
      pods = null;
    },
  };
}
