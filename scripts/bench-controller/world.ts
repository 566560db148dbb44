import type { NodeProxy } from '../../lab/api-server/node-proxy.ts';
import type { Clock } from '../../src/base/clock.ts';
import { AGENT_NAMESPACE } from '../../src/kube/agent-namespace.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { rolloutDefinition } from '../../src/rollouts/api/crd.ts';
import { ROLLOUT_API_VERSION, ROLLOUT_KIND } from '../../src/rollouts/api/schema.ts';
import { type FakeCluster, fakeCluster } from '../../test/support/fake-cluster.ts';
import { createAgentNode, reportTrial } from '../../test/support/stand-in-reports.ts';

export const ROLLOUTS = 20;
/** An agent reports a healthy trial this long after its assignment. */
const REPORT_MS = 1_000;
/** `nodeStatusReportFrequency` of kubelets. */
const HEARTBEAT_SECONDS = 300;
const GROUP_LABEL = 'group';

/** As many as a kubelet reports, which are most of a Node. */
const IMAGES = Array.from({ length: 50 }, (_, i) => ({
  names: [`registry.example.com/team/image-${i}@sha256:${'0123456789abcdef'.repeat(4)}`, `registry.example.com/team/image-${i}:v1.2.${i}`],
  sizeBytes: 50_000_000 + i,
}));

export const groupOf = (i: number): string => `group-${i % ROLLOUTS}`;
export const maxPodsOf = (i: number): number => 60 + (i % ROLLOUTS);
const ref = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });

/** A cluster in memory with Ready nodes that report the local configuration. */
export async function benchCluster(nodes: number, clock: Clock): Promise<{ readonly cluster: FakeCluster; readonly proxy: NodeProxy }> {
  const cluster = fakeCluster({ now: clock.now });
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: AGENT_NAMESPACE } });
  await cluster.create(rolloutDefinition());
  const kubeletconfig = effectiveConfiguration({}, { catalogue: await loadCatalogue(), minor: 36 });
  const proxy: NodeProxy = () => ({ status: 200, body: { kubeletconfig } });
  for (let i = 0; i < nodes; i++) {
    await createAgentNode(cluster, `n${i}`, { [GROUP_LABEL]: groupOf(i) });
    await cluster.patch(ref(`n${i}`), 'strategic', { status: { images: IMAGES } }, { subresource: 'status' });
    cluster.proxyNode(`n${i}`, proxy);
  }
  return { cluster, proxy };
}

/** Stand-in agents and kubelets: each takes over an assignment and reports it, and sends heartbeats. Ends when the signal is aborted. */
export async function runNodes({ store }: FakeCluster, nodes: number, clock: Clock, signal: AbortSignal): Promise<void> {
  // The cluster in memory records the calls of each client; those of agents are not counted.
  const own = fakeCluster({ now: clock.now, sharedWith: { store, proxies: new Map() } as unknown as FakeCluster });
  const sourceOf = (node: KubeObject | null): string | undefined => node?.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION];
  const takeOver = async (name: string): Promise<void> => {
    await clock.sleep(REPORT_MS, signal);
    const node = await own.get(ref(name));
    if (node !== null) await reportTrial(own, node, false, clock.now());
  };
  store.subscribe(({ object, previous }) => {
    if (object.kind === 'Node' && sourceOf(object) !== sourceOf(previous)) void takeOver(object.metadata.name).catch(fail(signal));
  });
  const each = Math.ceil(nodes / HEARTBEAT_SECONDS);
  for (let i = 0; !signal.aborted; i = (i + each) % nodes) {
    for (let k = i; k < Math.min(i + each, nodes); k++) {
      const conditions = [{ type: 'Ready', status: 'True', lastHeartbeatTime: clock.now().toISOString().replace(/\.\d+/, '') }];
      await own.patch(ref(`n${k}`), 'strategic', { status: { conditions } }, { subresource: 'status' });
    }
    await clock.sleep(1_000, signal).catch(() => undefined);
  }
}

function fail(signal: AbortSignal): (error: unknown) => void {
  return (error) => {
    if (!signal.aborted) throw error;
  };
}

/** The rollouts of all nodes, each with its own configuration. */
export async function createRollouts(cluster: Cluster, minReadySeconds: number): Promise<void> {
  for (let i = 0; i < ROLLOUTS; i++) {
    const spec = {
      nodeSelector: { matchLabels: { [GROUP_LABEL]: groupOf(i) } },
      payload: { overlay: { maxPods: maxPodsOf(i) } },
      strategy: { maxUnavailable: '10%', minReadySeconds },
    };
    await cluster.create({ apiVersion: ROLLOUT_API_VERSION, kind: ROLLOUT_KIND, metadata: { name: groupOf(i) }, spec });
  }
}
