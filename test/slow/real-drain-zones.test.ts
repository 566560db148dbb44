import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { CONFIG_SOURCE_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { readDrainPod } from '../../src/maintenance/forecast/drain-pod.ts';
import { isCordoned } from '../../src/maintenance/node-hold.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer, whyNoControlPlane } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';
import { runStandInNodes } from '../support/stand-in-nodes.ts';
import { createAgentNode, reportTrials } from '../support/stand-in-reports.ts';
import { untilTrue } from '../support/until-true.ts';

const TITLE = 'a drained rollout over two zones with kube-apiserver and the controllers of kube-controller-manager';
const binaries = findRealBinaries();
const missing = whyNoControlPlane();
const ZONES = { n1: 'a', n2: 'b', n3: 'a', n4: 'b', n5: 'a', n6: 'b' } as const;
const NAMES = Object.keys(ZONES) as readonly (keyof typeof ZONES)[];
const ZONE_LABEL = 'topology.kubernetes.io/zone';
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\ntopologyManagerScope: pod\n';
const BUDGET = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', namespace: 'default', name: 'web' } as const;
const LABELS = { app: 'web' };

/** What one look at the API server shows. */
interface Sample {
  readonly healthy: number;
  readonly needed: number;
  readonly cordoned: readonly (keyof typeof ZONES)[];
  /** Nodes with the condition MaintenancePlanned. */
  readonly planned: number;
}

describe.skipIf(requirement(TITLE, typeof binaries === 'string' ? binaries : missing))(TITLE, () => {
  let server: RealApiServer;
  let cluster: Cluster;
  let directory: string;
  const stop = new AbortController();
  const running: Promise<void>[] = [];

  beforeAll(async () => {
    server = await startRealApiServer(binaries as Exclude<typeof binaries, string>, { withControllerManager: true });
    const text = server.adminKubeconfig();
    cluster = kubeCluster({ kubeconfig: { text, file: 'admin.conf' } });
    directory = await mkdtemp(join(tmpdir(), 'kubeletadm-real-zones-'));
    await writeFile(join(directory, 'admin.conf'), text);
    await writeFile(join(directory, 'kubelet.yaml'), OVERLAY);
    for (const name of NAMES) await createAgentNode(cluster, name, { [ZONE_LABEL]: ZONES[name], pool: name === 'n4' ? 'first' : 'rest' });
    running.push(runStandInNodes(cluster, NAMES, stop.signal), reportTrials(cluster, stop.signal));
    await cluster.create(deployment(6));
    const spec = { minAvailable: 5, selector: { matchLabels: LABELS } };
    await cluster.create({ apiVersion: BUDGET.apiVersion, kind: BUDGET.kind, metadata: { name: 'web', namespace: 'default' }, spec });
    await untilTrue(async () => (await sample()).healthy === 6, 60_000);
  }, 180_000);

  afterAll(async () => {
    stop.abort();
    await Promise.all(running);
    await cluster?.close();
    await server?.close();
    if (directory) await rm(directory, { recursive: true });
  });

  async function sample(): Promise<Sample> {
    const [budget, nodes] = await Promise.all([cluster.get(BUDGET), cluster.list({ apiVersion: 'v1', kind: 'Node' })]);
    const { currentHealthy: healthy = 0, desiredHealthy: needed = 0 } = (budget?.status ?? {}) as {
      currentHealthy?: number;
      desiredHealthy?: number;
    };
    const cordoned = nodes.items.filter(isCordoned).map(({ metadata }) => metadata.name as keyof typeof ZONES);
    const planned = nodes.items.filter(({ status }) => JSON.stringify(status).includes('MaintenancePlanned')).length;
    return { healthy, needed, cordoned, planned };
  }

  it('never violates the budget, keeps to one zone after the canary, and returns all nodes to service', async () => {
    const samples: Sample[] = [];
    const sampling = new AbortController();
    const sampler = (async () => {
      for (; !sampling.signal.aborted; await sleep(100)) samples.push(await sample());
    })();
    const options = ['--canary', 'pool=first', '--order', 'zone', '--max-unavailable', '2', '--min-ready', '1s', '--timeout', '2m'];
    const access = ['--kubeconfig', join(directory, 'admin.conf')];
    const argv = ['dynamic', 'assign', ...NAMES, '--file', join(directory, 'kubelet.yaml'), ...options, ...access];
    const kubeletconfig = effectiveConfiguration({}, { catalogue: await loadCatalogue(), minor: 36 });
    // No kubelet answers /configz.
    const { untilInterrupted: _, forPolls: __, ...requests } = cluster;
    const withConfigz: Cluster = {
      ...requests,
      getRaw: (path) => (path.endsWith('/configz') ? Promise.resolve({ kubeletconfig }) : cluster.getRaw(path)),
      close: () => Promise.resolve(),
    };
    const { code, stdout, stderr } = await runCommand(argv, { services: () => ({ connectCluster: async () => withConfigz }) });
    sampling.abort();
    await sampler;
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('6 nodes: 6 changed.');
    expect(samples.length).toBeGreaterThan(50);
    expect(samples.filter(({ healthy, needed }) => healthy < needed)).toEqual([]);
    expect(Math.min(...samples.map(({ healthy }) => healthy))).toBe(5);
    // The canary of zone b alone, then zone a, then the rest of zone b: at most two nodes, never of both zones.
    expect(Math.max(...samples.map(({ cordoned }) => cordoned.length))).toBeLessThanOrEqual(2);
    const turns = samples.map(({ cordoned }) => cordoned.map((name) => (name === 'n4' ? 'canary' : ZONES[name])).join('+'));
    expect(distinctTurns(turns)).toEqual(['canary', 'a', 'b']);
    // All were announced before the first drain; the condition left each with its drain.
    expect(samples.find(({ cordoned }) => cordoned.length > 0)?.planned).toBe(NAMES.length);
    expect((await sample()).planned).toBe(0);
    const nodes = (await cluster.list({ apiVersion: 'v1', kind: 'Node' })).items;
    expect(nodes.map((node) => [isCordoned(node), typeof node.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION]])).toEqual(
      NAMES.map(() => [false, 'string']),
    );
    const pods = (await cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'default' })).items.map(readDrainPod);
    expect(pods.filter(({ isReady }) => isReady)).toHaveLength(6);
  }, 300_000);
});

/** `['', 'a', 'a', 'a+a', '', 'b']` → `['a', 'b']`; nodes of two turns at once stay visible. */
function distinctTurns(turns: readonly string[]): readonly string[] {
  const named = turns.filter((turn) => turn !== '').map((turn) => [...new Set(turn.split('+'))].join('+'));
  return named.filter((turn, i) => turn !== named[i - 1]);
}

function deployment(replicas: number): KubeObject {
  // Without a kubelet, nothing ends a grace period.
  const spec = {
    terminationGracePeriodSeconds: 0,
    automountServiceAccountToken: false,
    containers: [{ name: 'web', image: 'example.org/web:1' }],
  };
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'default' } },
    spec: { replicas, selector: { matchLabels: LABELS }, template: { metadata: { labels: LABELS }, spec } },
  };
}
