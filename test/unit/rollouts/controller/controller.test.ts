import { expect, it } from 'vitest';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { CONFIG_STATUS_ANNOTATION } from '../../../../src/kubelet/layers/config-source.ts';
import { rolloutWorld } from '../../../support/rollout-world.ts';

const forPool = (pool: string) => ({ nodeSelector: { matchLabels: { pool } }, payload: { overlay: { maxPods: 50 } } });

it('reads a Node again only after it changed', async () => {
  const world = await rolloutWorld(['n1', 'n2']);
  await world.create('even', forPool('even'));
  const reads: string[] = [];
  const watched = (node: KubeObject): KubeObject => {
    const { name, annotations = {} } = node.metadata;
    const text = annotations[CONFIG_STATUS_ANNOTATION];
    const get = (): string | undefined => {
      reads.push(name);
      return text;
    };
    const counted = Object.defineProperty({ ...annotations }, CONFIG_STATUS_ANNOTATION, { get });
    return { ...node, metadata: { ...node.metadata, annotations: counted } };
  };
  const { items } = await world.cluster.list({ apiVersion: 'v1', kind: 'Node' });
  const [first, second] = items.map(watched) as [KubeObject, KubeObject];
  const controller = world.controller();
  await controller.step([first, second]);
  expect(reads).toContain('n1');
  reads.length = 0;
  await controller.step([first, second]);
  expect(reads).toEqual([]);
  await controller.step([watched(items[0] as KubeObject), second]);
  expect(reads).toContain('n1');
});

it('decides about all rollouts before it validates a configuration', async () => {
  const world = await rolloutWorld(['n1', 'n2']);
  for (const pool of ['even', 'odd']) await world.create(pool, forPool(pool));
  const { calls } = world.fleet.cluster;
  const before = calls.length;
  await world.controller().step();
  const made = calls.slice(before);
  const validated = made.findIndex((call) => call.includes('/proxy/configz'));
  expect(validated).toBeGreaterThan(made.findLastIndex((call) => call.startsWith('patch KubeletConfigRollout')));
});
