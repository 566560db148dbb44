import { expect, it } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { drainRefused } from '../../../src/maintenance/drain/drain-problems.ts';
import { drainForecaster } from '../../../src/maintenance/forecast/forecast.ts';
import { readClusterView, readNodeView } from '../../../src/maintenance/forecast/read-cluster-view.ts';
import { drainBudget, drainNode, drainPod, scaled } from '../../support/drain-objects.ts';
import { drainWorld } from '../../support/drain-world.ts';
import { seededRandom } from '../../support/seeded-random.ts';

const RULES = { ignoreDaemonSets: true, deleteEmptyDirData: false, force: false, gracePeriodSeconds: null, selects: () => true };
const NODES = ['n1', 'n2', 'n3'];

/** Applications in two namespaces, with strict and with wide budgets, and pods without a controller. */
function randomObjects(seed: number): readonly KubeObject[] {
  const random = seededRandom(seed);
  const upTo = (most: number): number => Math.floor(random() * (most + 1));
  const anyNode = (): string => NODES[upTo(NODES.length - 1)] as string;
  const apps = ['web', 'db', 'queue'].flatMap((app) => {
    const namespace = random() < 0.5 ? 'shop' : 'default';
    const replicas = 1 + upTo(3);
    const of = random() < 0.2 ? `Job/${app}` : random() < 0.2 ? `Cluster/${app}` : `ReplicaSet/${app}`;
    const pods = Array.from({ length: replicas }, (_, i) =>
      drainPod(`${app}-${i}`, anyNode(), { of, app, namespace, isReady: random() > 0.2 }),
    );
    const spec = random() < 0.5 ? { minAvailable: upTo(replicas) } : { maxUnavailable: upTo(1) };
    const budgets = Array.from({ length: upTo(2) }, (_, i) => drainBudget(`${app}-${i}`, app, spec, namespace));
    return [scaled(`ReplicaSet/${app}`, replicas, namespace), ...pods, ...budgets];
  });
  const bare = random() < 0.2 ? [drainPod('alone', anyNode(), { of: null })] : [];
  return [...NODES.map((name) => drainNode(name)), ...apps, ...bare];
}

it('the view of a node refuses its drain for the same reasons as the view of the cluster', async () => {
  const counts = { refused: 0, permitted: 0 };
  for (let seed = 1; seed <= 100; seed++) {
    const { cluster } = drainWorld(randomObjects(seed));
    const whole = drainForecaster(await readClusterView(cluster));
    for (const node of NODES) {
      const { items } = await cluster.list({ apiVersion: 'v1', kind: 'Pod' }, { fieldSelector: `spec.nodeName=${node}` });
      const own = drainForecaster(await readNodeView(cluster, items));
      const expected = drainRefused(whole([node], RULES, 60_000))?.problems ?? null;
      expect(drainRefused(own([node], RULES, 60_000))?.problems ?? null, `seed ${seed}, ${node}`).toEqual(expected);
      counts[expected === null ? 'permitted' : 'refused']++;
    }
  }
  expect(Math.min(counts.refused, counts.permitted)).toBeGreaterThan(30);
});
