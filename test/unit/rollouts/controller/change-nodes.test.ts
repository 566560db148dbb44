import { expect, it } from 'vitest';
import { readNodeConfig } from '../../../../src/dynamic/status/node-config.ts';
import { NodeChanges } from '../../../../src/rollouts/controller/change-nodes.ts';
import { rolloutWorld } from '../../../support/rollout-world.ts';

it('assigns no node after its rollout was deleted', async () => {
  const { cluster, fleet, assigned } = await rolloutWorld(['n1']);
  const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' });
  if (node === null) throw new Error('no Node');
  const self = { name: 'controller@test', id: 1, machine: 'test', isRunning: () => true };
  const signal = new AbortController().signal;
  const ports = { cluster, clock: fleet.clock, self, signal, reporter: { report: () => undefined } };
  const changes = new NodeChanges(ports, { name: 'pods', uid: 'u' }, () => undefined);
  let resolve = (): void => undefined;
  const recorded = new Promise<void>((done) => {
    resolve = done;
  });
  const desired = { namespace: 'kubeletadm-system', name: 'own', kubeletConfigKey: 'kubelet' };
  const drain = { force: false, timeoutSeconds: 600 };
  const how = { revision: 'pods-1', isRevert: false, impact: null, drain, record: () => recorded };
  changes.assign(readNodeConfig(node), { name: 'n1', desired, before: null }, how);
  const closed = changes.close();
  resolve();
  await closed;
  expect(await assigned()).toEqual([]);
});
