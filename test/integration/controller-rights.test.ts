import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { UNAVAILABLE_REASON } from '../../src/dynamic/agent/status.ts';
import { planMissingRights, restoreRights } from '../../src/dynamic/use-cases/restore-agent-rights.ts';
import { readNodes } from '../../src/dynamic/workflows/read-nodes.ts';
import { refOf } from '../../src/kube/object.ts';
import { agentRights } from '../../src/kubeadm/node-agent/agent-rights.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import { CONTROLLER_USER, installController, recordingForbidden } from '../support/controller-account.ts';
import { drainPod } from '../support/drain-objects.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { type RolloutWorld, rolloutWorld } from '../support/rollout-world.ts';

/** A world whose controller has the rights of the installed ServiceAccount only. */
async function limitedWorld(names: readonly string[]) {
  const world = await rolloutWorld(names);
  expect(await installController(world.cluster)).toBeGreaterThan(8);
  expect(await installController(world.cluster)).toBe(0);
  const limited = recordingForbidden(fakeCluster({ user: CONTROLLER_USER, sharedWith: world.fleet.cluster }));
  return {
    world,
    limited: limited.cluster,
    controller: world.controller({ cluster: limited.cluster }),
    forbidden: () => [...new Set(limited.forbidden)],
  };
}

function spec(maxPods: number, more: JsonObject = {}): JsonObject {
  return { nodeSelector: {}, payload: { overlay: { maxPods } }, progressDeadlineSeconds: 60, strategy: { minReadySeconds: 10 }, ...more };
}

const phase = async (world: RolloutWorld) => (await world.status('pods')).phase;

it('rolls out, reverts, keeps a limited history and resets with the rights of its ServiceAccount', async () => {
  const { world, controller, forbidden } = await limitedWorld(['n1', 'n2', 'n3']);
  await world.create('pods', spec(40, { revisionHistoryLimit: 0, deletionPolicy: 'Reset', onFailure: 'Revert' }));
  await controller.run(90);
  expect(await phase(world)).toBe('Complete');
  world.fleet.behaviours.set('"maxPods": 66', (seconds, node) =>
    seconds < 3 || node !== 'n3' ? {} : { healthz: { ok: false, why: 'connection refused' } },
  );
  await world.patch('pods', { payload: { overlay: { maxPods: 66 } } });
  await controller.run(200);
  expect(await phase(world)).toBe('Reverted');
  for (const maxPods of [50, 40]) {
    await world.patch('pods', { payload: { overlay: { maxPods } } });
    await controller.run(90);
    expect([maxPods, await phase(world)]).toEqual([maxPods, 'Complete']);
  }
  await world.cluster.delete(rolloutRef('pods'));
  await controller.run(120);
  expect(await world.maxPods()).toEqual({ n1: 0, n2: 0, n3: 0 });
  expect(await world.cluster.get(rolloutRef('pods'))).toBeNull();
  expect(forbidden()).toEqual([]);
}, 60_000);

it('drains nodes with the rights of its ServiceAccount', async () => {
  const { world, controller, forbidden } = await limitedWorld(['n1', 'n2']);
  const kubeletconfig = effectiveConfiguration({}, { catalogue: await loadCatalogue(), minor: 36 });
  for (const node of ['n1', 'n2']) world.fleet.cluster.proxyNode(node, () => ({ status: 200, body: { kubeletconfig } }));
  await world.cluster.create(drainPod('web-1', 'n1'));
  await world.create('pods', {
    ...spec(0, { payload: { overlay: { topologyManagerScope: 'pod' } } }),
    strategy: { minReadySeconds: 10, allow: 'drain' },
  });
  await controller.run(120);
  expect([await phase(world), forbidden()]).toEqual(['Complete', []]);
  expect((await world.cluster.list({ apiVersion: 'v1', kind: 'Pod', namespace: 'default' })).items).toEqual([]);
}, 60_000);

it('restores the rules of an agent whose Node was created again, with the rights of its ServiceAccount', async () => {
  const { world, limited, forbidden } = await limitedWorld(['n1']);
  const conditions = [{ type: 'KubeletConfigOk', status: 'False', reason: UNAVAILABLE_REASON, message: '' }];
  await world.cluster.patch(
    { apiVersion: 'v1', kind: 'Node', name: 'n1' },
    'strategic',
    { status: { conditions } },
    { subresource: 'status' },
  );
  const reporter = { report: () => undefined };
  const nodes = await readNodes(limited, ['n1']);
  const missing = await planMissingRights(limited, { nodes, namespace: 'kubeletadm-system', reporter });
  await restoreRights(limited, missing, reporter);
  expect(forbidden()).toEqual([]);
  expect((await planMissingRights(limited, { nodes, namespace: 'kubeletadm-system', reporter })).size).toBe(0);
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'kubeletadm:agent:n1' };
  expect((await world.cluster.get(role))?.rules).toMatchObject([{ resources: ['nodes/configz'], resourceNames: ['n1'] }]);
});

it('assigns a Node that was created again only when its agent has rules that the garbage collector will not delete', async () => {
  const { world, controller, forbidden } = await limitedWorld(['n1']);
  const { uid = '' } = (await world.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' }))?.metadata ?? {};
  const rules = (nodeUid: string) => agentRights({ nodeName: 'n1', nodeUid, namespace: 'kubeletadm-system' });
  for (const rule of rules('previous')) await world.cluster.create(rule);
  await world.create('pods', spec(40));
  await controller.run(20);
  expect(await world.assigned()).toEqual([]);
  for (const rule of rules('previous')) await world.cluster.delete(refOf(rule));
  await controller.run(90);
  expect([await phase(world), await world.maxPods()]).toEqual(['Complete', { n1: 40 }]);
  for (const rule of rules(uid)) expect((await world.cluster.get(refOf(rule)))?.metadata).toMatchObject(rule.metadata);
  expect(forbidden().filter((message) => !message.includes('update'))).toEqual([]);
});
