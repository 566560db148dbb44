import { describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { refOf } from '../../src/kube/object.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import type { RolloutStatus } from '../../src/rollouts/api/schema.ts';
import { runController } from '../../src/rollouts/controller/run-controller.ts';
import { defineRollouts } from '../contract/rollouts-api.ts';
import { controllerPorts } from '../support/controller-ports.ts';
import { findRealBinaries, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { createAgentNode, reportTrials } from '../support/stand-in-reports.ts';

const binaries = findRealBinaries();
const missing = typeof binaries === 'string' ? binaries : null;

describe.skipIf(requirement('gates on a real kube-apiserver', missing))('gates on a real kube-apiserver', () => {
  it('are Jobs that a rollout waits for, one for each batch, with one controller after the other', async () => {
    if (typeof binaries === 'string') throw new Error(binaries);
    const server = await startRealApiServer(binaries);
    const cluster = kubeCluster({ kubeconfig: { text: server.adminKubeconfig(), file: 'admin.conf' } });
    const stop = new AbortController();
    const simulated = reportTrials(cluster, stop.signal);
    const start = (identity: string, signal: AbortSignal): Promise<void> =>
      runController(controllerPorts(cluster, signal), { namespace: 'kubeletadm-system', identity });
    const jobs = async () => (await cluster.list({ apiVersion: 'batch/v1', kind: 'Job', namespace: 'default' })).items;
    const status = async () => ((await cluster.get(rolloutRef('pods')))?.status ?? {}) as RolloutStatus;
    const endJobs = async (): Promise<void> => {
      const time = new Date().toISOString().replace(/\.\d+/, '');
      const condition = (type: string) => ({
        type,
        status: 'True',
        lastTransitionTime: time,
        lastProbeTime: time,
        reason: 'CompletionsReached',
      });
      const ended = { startTime: time, completionTime: time, succeeded: 1, conditions: ['SuccessCriteriaMet', 'Complete'].map(condition) };
      for (const job of await jobs())
        if (JSON.stringify(job.status ?? {}).includes('Complete') === false)
          await cluster.patch(refOf(job), 'merge', { status: ended }, { subresource: 'status' });
    };
    const first = new AbortController();
    const running = [start('first', first.signal)];
    try {
      await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } });
      await defineRollouts(cluster);
      for (const name of ['n1', 'n2']) await createAgentNode(cluster, name);
      const template = {
        spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'example.com/smoke' }] } } },
      };
      const gates = [{ name: 'smoke', job: { namespace: 'default', template } }];
      const spec = { nodeSelector: {}, payload: { overlay: { maxPods: 50 } }, strategy: { minReadySeconds: 1, gates } };
      await cluster.create({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name: 'pods' }, spec });
      await expect.poll(async () => (await jobs()).length, { timeout: 60_000 }).toBe(1);
      first.abort();
      await running[0];
      running.push(start('second', stop.signal));
      await expect.poll(async () => (await status()).leader, { timeout: 60_000 }).toBe('second');
      expect(await jobs()).toHaveLength(1);
      await endJobs();
      await expect.poll(async () => (await jobs()).length, { timeout: 60_000 }).toBe(2);
      await endJobs();
      await expect.poll(async () => (await status()).phase, { timeout: 60_000 }).toBe('Complete');
      expect((await status()).gates).toMatchObject([
        { batch: 1, state: 'Passed', attempts: 1 },
        { batch: 2, state: 'Passed', attempts: 1 },
      ]);
      expect(await jobs()).toHaveLength(2);
    } finally {
      first.abort();
      stop.abort();
      await Promise.all([...running, simulated]);
      await cluster.close();
      await server.close();
    }
  }, 300_000);
});
