import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { HttpsClient } from '../../src/kube/https-client.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { rolloutDefinition } from '../../src/rollouts/api/crd.ts';
import { readRollout, rolloutRef } from '../../src/rollouts/api/rollout.ts';
import type { RolloutStatus } from '../../src/rollouts/api/schema.ts';
import { RolloutController } from '../../src/rollouts/controller/controller.ts';
import { fencedCluster } from '../../src/rollouts/controller/fenced-cluster.ts';
import { ControllerMetrics } from '../../src/rollouts/controller/metrics.ts';
import { type AgentFleet, agentFleet } from './stand-in-agents.ts';

const NAMESPACE = 'kubeletadm-system';

/** A controller of a rollout world. */
export interface WorldController {
  isLeader: boolean;
  /** Lets time pass, with one step of the controller each second. */
  run(seconds: number): Promise<void>;
  /** @param nodes the Nodes as a watch that lags behind shows them */
  step(nodes?: readonly KubeObject[]): Promise<void>;
}

/** Nodes with agents, and controllers that act on rollouts. All on one clock. */
export interface RolloutWorld {
  readonly fleet: AgentFleet;
  readonly cluster: Cluster;
  /** The answer of Prometheus to each query: a value; null: no answer. */
  prometheus: { value: string | null };
  /** The metrics of all controllers. */
  metrics(): Promise<string>;
  controller(options?: { readonly cluster?: Cluster; readonly identity?: string; readonly namespace?: string }): WorldController;
  create(name: string, spec: JsonObject): Promise<void>;
  patch(name: string, spec: JsonObject): Promise<void>;
  status(name: string): Promise<RolloutStatus>;
  /** The Nodes with an assignment. */
  assigned(): Promise<readonly string[]>;
  /** The part of the ConfigMap's name before its hash, by node. */
  runs(): Readonly<Record<string, string>>;
  /** The value of maxPods that each node runs; 0: the local configuration. */
  maxPods(): Promise<Readonly<Record<string, number>>>;
}

export async function rolloutWorld(names: readonly string[], options: Parameters<typeof agentFleet>[1] = {}): Promise<RolloutWorld> {
  const fleet = await agentFleet(names, options);
  const { cluster } = fleet;
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  await cluster.create(rolloutDefinition());
  let serial = 0;
  const list = async (kind: string, apiVersion = 'v1'): Promise<readonly KubeObject[]> => (await cluster.list({ apiVersion, kind })).items;
  const metrics = new ControllerMetrics();
  const prometheus: RolloutWorld['prometheus'] = { value: null };
  const web: HttpsClient = {
    get: async () => {
      if (prometheus.value === null) return { kind: 'failed', issue: { kind: 'refused' } };
      const text = JSON.stringify({ status: 'success', data: { resultType: 'scalar', result: [1, prometheus.value] } });
      return { kind: 'answer', status: 200, contentType: 'application/json', date: null, location: null, text, peer: null };
    },
  };
  const self = { name: 'controller@test', id: 1, machine: 'test', isRunning: () => true };
  return {
    fleet,
    cluster,
    prometheus,
    metrics: () => metrics.text(),
    controller: ({ cluster: own = cluster, identity = `controller-${++serial}`, namespace = NAMESPACE } = {}) => {
      const abort = new AbortController();
      const leadership = { identity, isValid: () => controlled.isLeader };
      const ports = {
        cluster: fencedCluster(own, leadership),
        clock: fleet.clock,
        self,
        signal: abort.signal,
        reporter: { report: () => undefined },
      };
      const controller = new RolloutController(ports, leadership, {
        namespace,
        wake: () => undefined,
        systemTime: fleet.clock.now,
        web,
        metrics,
      });
      const controlled: WorldController = {
        isLeader: true,
        step: async (old) => {
          const [rollouts, nodes] = await Promise.all([list('KubeletConfigRollout', 'kubeletadm.dev/v1alpha1'), list('Node')]);
          await controller.step({ rollouts, nodes: old ?? nodes, events: [] });
          await controller.settled();
        },
        run: async (seconds) => {
          for (let i = 0; i < seconds; i++) {
            await fleet.pass(1);
            await controlled.step();
          }
        },
      };
      return controlled;
    },
    create: async (name, spec) => {
      await cluster.create({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name }, spec });
    },
    patch: async (name, spec) => {
      await cluster.patch(rolloutRef(name), 'merge', { spec });
    },
    status: async (name) => {
      const object = await cluster.get(rolloutRef(name));
      const read = object === null ? null : readRollout(object);
      return read !== null && 'rollout' in read ? read.rollout.status : {};
    },
    assigned: async () =>
      (await list('Node')).flatMap(({ metadata }) =>
        metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] === undefined ? [] : [metadata.name],
      ),
    runs: () => Object.fromEntries(Object.entries(fleet.runs()).map(([node, map]) => [node, map.replace(/-[^-]*$/, '')])),
    maxPods: async () => {
      const maps = new Map((await list('ConfigMap')).map((map) => [map.metadata.name, map]));
      const of = (name: string): number =>
        Number(/"maxPods": (\d+)/.exec(JSON.stringify(maps.get(name)?.data ?? {}).replaceAll('\\', ''))?.[1] ?? 0);
      return Object.fromEntries(Object.entries(fleet.runs()).map(([node, map]) => [node, of(map)]));
    },
  };
}
