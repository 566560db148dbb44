import { expect, it } from 'vitest';
import { readNodeConfig } from '../../../../src/dynamic/status/node-config.ts';
import type { Cluster } from '../../../../src/kube/cluster.ts';
import { NodeChanges } from '../../../../src/rollouts/controller/change-nodes.ts';
import { drainPod } from '../../../support/drain-objects.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
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
  const drain = { force: false, timeoutSeconds: 600, settleSeconds: 0 };
  const how = { revision: 'pods-1', isRevert: false, impact: null, drain, record: () => recorded };
  changes.assign(readNodeConfig(node), { name: 'n1', desired, before: null }, how);
  const closed = changes.close();
  resolve();
  await closed;
  expect(await assigned()).toEqual([]);
});

it('changes no node that it may not drain', async () => {
  const { cluster, fleet, assigned } = await rolloutWorld(['n1']);
  await cluster.create(drainPod('web-1', 'n1'));
  const node = await cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n1' });
  if (node === null) throw new Error('no Node');
  const denying: Cluster = {
    ...cluster,
    create: async (object) =>
      object.kind === 'SelfSubjectAccessReview' ? { ...object, status: { allowed: false } } : cluster.create(object),
  };
  const self = { name: 'controller@test', id: 1, machine: 'test', isRunning: () => true };
  const reporter = recordingReporter();
  const ports = { cluster: denying, clock: fleet.clock, self, signal: new AbortController().signal, reporter };
  const changes = new NodeChanges(ports, { name: 'pods', uid: 'u' }, () => undefined);
  const drain = { force: false, timeoutSeconds: 600, settleSeconds: 0 };
  const how = { revision: 'pods-1', isRevert: false, impact: 'drain', drain, record: null } as const;
  const desired = { namespace: 'kubeletadm-system', name: 'own', kubeletConfigKey: 'kubelet' };
  changes.assign(readNodeConfig(node), { name: 'n1', desired, before: null }, how);
  await changes.settled();
  expect(changes.issueOf('n1')).toContain('the credentials may not cordon the node and evict its pods');
  expect(reporter.codes()).toEqual(['AGENT_RIGHTS_RESTORED', 'NODE_NOT_DRAINED']);
  expect(await assigned()).toEqual([]);
});
