import { createPodRunner, type PodApi, type PodFiles } from '../../lab/hosts/pod-runner.ts';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { refOf } from '../../src/kube/object.ts';
import { podsOfNode } from '../../src/kubelet/workload/pod.ts';
import { type FakeCluster, fakeCluster } from './fake-cluster.ts';

export interface FakePodsOptions {
  readonly cluster: FakeCluster;
  readonly nodeName: string;
  readonly files: PodFiles;
  readonly now: () => Date;
}

/** The pods of a simulated kubelet. */
export interface FakePods {
  /**
   * Starts a kubelet process: it admits the pods of the node, and follows them until the next start.
   * @param config the configuration with the defaults that matter; without staticPodPath no static pods run
   */
  start(config: JsonObject): void;
  /** Ends the process; the pods keep their status. */
  stop(): void;
  /** Reads the static pod files again, after a change of the host's files. */
  filesChanged(): void;
  /** Waits until the requests so far have been processed. */
  settled(): Promise<void>;
}

/** Runs pods of a cluster in memory, with the credential of the node. */
export function fakePods({ cluster, nodeName, files, now }: FakePodsOptions): FakePods {
  const asNode = fakeCluster({ now, sharedWith: cluster, user: { name: `system:node:${nodeName}`, groups: ['system:nodes'] } });
  let process: { readonly stop: AbortController; readonly sync: () => void; passes: Promise<unknown> } | null = null;
  const stop = (): void => {
    process?.stop.abort();
    process = null;
  };
  cluster.store.subscribe(({ resource }) => {
    if (resource.plural === 'pods') process?.sync();
  });
  return {
    start: (config) => {
      stop();
      const ending = new AbortController();
      const api = clusterPods(asNode, nodeName);
      const runner = createPodRunner({ api, files, nodeName, address: '10.99.0.11', config, now, signal: ending.signal });
      const started = {
        stop: ending,
        sync: () => {
          started.passes = runner.sync();
          started.passes.catch(() => undefined);
        },
        passes: Promise.resolve() as Promise<unknown>,
      };
      process = started;
      started.sync();
    },
    stop,
    filesChanged: () => process?.sync(),
    settled: async () => {
      await process?.passes;
    },
  };
}

/** The pods of a node behind a client with the credential of that node. */
function clusterPods(cluster: Cluster, nodeName: string): PodApi {
  return {
    pods: async () => (await cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: podsOfNode(nodeName) })).items,
    nodeUid: async () => (await cluster.get({ apiVersion: 'v1', kind: 'Node', name: nodeName }))?.metadata.uid ?? '',
    create: async (object) => void (await cluster.create(object)),
    setStatus: async (pod, status) => void (await cluster.patch(refOf(pod), 'strategic', { status }, { subresource: 'status' })),
    remove: async (pod) => void (await cluster.delete(refOf(pod))),
  };
}
