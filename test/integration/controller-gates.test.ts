import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { type KubeObject, refOf } from '../../src/kube/object.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import { type RolloutWorld, rolloutWorld } from '../support/rollout-world.ts';

const NODES = ['n1', 'n2', 'n3'];
const JOB = { namespace: 'smoke', template: { spec: { template: { spec: { restartPolicy: 'Never', containers: [] } } } } };
const QUERY = { address: 'http://prometheus:9090', query: 'sum(errors)', thresholdRange: { max: 1 } };
const SMOKE = { name: 'smoke-test', job: JOB };
const ERRORS = { name: 'errors', prometheus: QUERY };

function spec(strategy: JsonObject, maxPods = 50, more: JsonObject = {}): JsonObject {
  const payload = { overlay: { maxPods } };
  return { nodeSelector: {}, payload, strategy: { minReadySeconds: 2, ...strategy }, progressDeadlineSeconds: 60, ...more };
}

async function jobs({ cluster }: RolloutWorld): Promise<readonly KubeObject[]> {
  return (await cluster.list({ apiVersion: 'batch/v1', kind: 'Job' })).items;
}

/** Ends each Job that runs. */
async function endJobs(world: RolloutWorld, type: 'Complete' | 'Failed' = 'Complete'): Promise<void> {
  for (const job of await jobs(world))
    if (job.status === undefined)
      await world.cluster.patch(refOf(job), 'merge', { status: { conditions: [{ type, status: 'True', reason: 'Test' }] } }, STATUS);
}

const STATUS = { subresource: 'status' } as const;

async function started(strategy: JsonObject, more: JsonObject = {}): Promise<RolloutWorld> {
  const world = await rolloutWorld(NODES);
  await world.cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'smoke' } });
  await world.create('pods', spec(strategy, 50, more));
  return world;
}

/** The condition that is True, and the number of updated nodes. */
async function state(world: RolloutWorld): Promise<string> {
  const { conditions = [], counts } = await world.status('pods');
  const found = conditions.find(({ status }) => status === 'True');
  return `${found?.reason} ${counts?.updated}`;
}

async function message(world: RolloutWorld): Promise<string> {
  return (await world.status('pods')).conditions?.find(({ status }) => status === 'True')?.message ?? '';
}

describe('a Job as a gate of a rollout', () => {
  it('runs once after each batch, and the next batch waits for it', async () => {
    const world = await started({ gates: [SMOKE] });
    const controller = world.controller();
    await controller.run(40);
    expect(await state(world)).toBe('GateRunning 1');
    expect(await message(world)).toMatch(
      /^gate smoke-test, after batch 1: Job smoke\/smoke-test-\w{10} is not complete; 1 of 3 nodes updated$/,
    );
    expect(await jobs(world)).toMatchObject([
      {
        metadata: { labels: { 'kubeletadm.dev/gate': 'smoke-test' }, ownerReferences: [{ kind: 'KubeletConfigRollout', name: 'pods' }] },
        spec: { activeDeadlineSeconds: 300, ttlSecondsAfterFinished: 86_400 },
      },
    ]);
    for (let i = 0; i < 3; i++) {
      await endJobs(world);
      await controller.run(30);
    }
    expect(await state(world)).toBe('Complete 3');
    const { gates = [], batch } = await world.status('pods');
    expect(gates.map(({ name, batch: number, state: is, attempts }) => [name, number, is, attempts])).toEqual([
      ['smoke-test', 1, 'Passed', 1],
      ['smoke-test', 2, 'Passed', 1],
      ['smoke-test', 3, 'Passed', 1],
    ]);
    expect(batch).toMatchObject({ number: 3 });
    expect(await jobs(world)).toHaveLength(3);
  });

  it('stops the rollout if it fails, and runs again when spec was changed', async () => {
    const world = await started({ gates: [{ ...SMOKE, after: 'Canary' }] });
    const controller = world.controller();
    await controller.run(20);
    await endJobs(world, 'Failed');
    await controller.run(60);
    expect(await state(world)).toBe('GateFailed 1');
    expect((await world.status('pods')).phase).toBe('Failed');
    expect(await message(world)).toMatch(
      /^gate smoke-test, after batch 1: Job smoke\/\S+ failed: Test; see kubectl logs -n smoke job\/\S+; 1 of 3/,
    );
    await world.patch('pods', { strategy: { minReadySeconds: 3 } });
    await controller.run(5);
    expect(await jobs(world)).toHaveLength(2);
    await endJobs(world);
    await controller.run(60);
    expect(await state(world)).toBe('Complete 3');
    expect(await jobs(world)).toHaveLength(2);
  });

  it('returns all changed nodes to their previous configuration if it fails with onFailure Revert', async () => {
    const world = await started({ gates: [{ ...SMOKE, after: 'End' }] }, { onFailure: 'Revert' });
    const controller = world.controller();
    await controller.run(60);
    expect(await state(world)).toBe('GateRunning 3');
    await endJobs(world, 'Failed');
    await controller.run(60);
    expect(await state(world)).toBe('Reverted 0');
    expect(await world.maxPods()).toEqual({ n1: 0, n2: 0, n3: 0 });
    expect((await world.status('pods')).gates).toMatchObject([{ state: 'Failed', batch: 3 }]);
    expect(world.fleet.mostUnavailable()).toBe(1);
  });

  it('runs again, from the first batch, when a reverted revision is tried again', async () => {
    const world = await started(
      {
        gates: [
          { ...SMOKE, after: 'Canary' },
          { ...SMOKE, name: 'second' },
        ],
      },
      { onFailure: 'Revert' },
    );
    const controller = world.controller();
    await controller.run(20);
    await endJobs(world);
    await controller.run(10);
    await endJobs(world, 'Failed');
    await controller.run(30);
    expect(await state(world)).toBe('Reverted 0');
    expect(await jobs(world)).toHaveLength(2);
    await world.cluster.patch(rolloutRef('pods'), 'merge', { status: { failedRevision: null } }, STATUS);
    for (let i = 0; i < 4; i++) {
      await controller.run(30);
      await endJobs(world);
    }
    await controller.run(10);
    expect(await state(world)).toBe('Complete 3');
    const { gates = [] } = await world.status('pods');
    expect(gates.map(({ name, batch, state: is }) => `${name} ${batch} ${is}`)).toEqual([
      'smoke-test 1 Passed',
      'second 1 Passed',
      'second 2 Passed',
      'second 3 Passed',
    ]);
    expect(await jobs(world)).toHaveLength(6);
  });

  it('fails at its time limit, also if its namespace does not exist', async () => {
    const world = await started({ gates: [{ ...SMOKE, timeoutSeconds: 30, job: { ...JOB, namespace: 'missing' } }] });
    const controller = world.controller();
    await controller.run(20);
    expect(await state(world)).toBe('GateRunning 1');
    await controller.run(40);
    expect(await state(world)).toBe('GateFailed 1');
    expect(await message(world)).toMatch(/namespaces "missing" not found.* \(time limit reached\)/);
  });

  it('fails if its Job was deleted by others', async () => {
    const world = await started({ gates: [SMOKE] });
    const controller = world.controller();
    await controller.run(20);
    for (const job of await jobs(world)) await world.cluster.delete(refOf(job));
    await controller.run(10);
    expect(await state(world)).toBe('GateFailed 1');
    expect(await jobs(world)).toEqual([]);
  });

  it('continues while no controller runs, and its result is read after the time limit', async () => {
    const world = await started({ gates: [{ ...SMOKE, timeoutSeconds: 60 }] });
    await world.controller().run(20);
    await endJobs(world);
    await world.fleet.pass(300);
    await world.controller().run(20);
    expect((await world.status('pods')).gates?.[0]).toMatchObject({ state: 'Passed' });
    expect(await jobs(world)).toHaveLength(2);
  });

  it('is not started while the rollout is paused', async () => {
    const world = await started({ gates: [SMOKE] });
    const controller = world.controller();
    await controller.run(4);
    await world.patch('pods', { paused: true });
    await controller.run(30);
    expect(await state(world)).toBe('Paused 1');
    expect(await jobs(world)).toEqual([]);
  });
});

describe('a query as a gate of a rollout', () => {
  it('is repeated until it passes', async () => {
    const world = await started({ gates: [{ ...ERRORS, after: 'Canary', prometheus: { ...QUERY, retries: 5, intervalSeconds: 5 } }] });
    const controller = world.controller();
    await controller.run(12);
    expect(await message(world)).toMatch(
      /^gate errors, after batch 1: http:\/\/prometheus:9090 did not answer: connection refused; 1 of 3/,
    );
    world.prometheus.value = '7';
    await controller.run(8);
    expect(await message(world)).toMatch(/^gate errors, after batch 1: value 7; 1 of 3/);
    world.prometheus.value = '0.5';
    await controller.run(60);
    expect(await state(world)).toBe('Complete 3');
    const [result] = (await world.status('pods')).gates ?? [];
    expect(result).toMatchObject({ state: 'Passed', answer: 'value 0.5' });
    expect(result?.attempts).toBeGreaterThan(2);
  });

  it('fails after its last attempt, before its time limit', async () => {
    const world = await started({ gates: [{ ...ERRORS, prometheus: { ...QUERY, retries: 2, intervalSeconds: 5 } }] });
    world.prometheus.value = '7';
    await world.controller().run(60);
    expect(await state(world)).toBe('GateFailed 1');
    expect((await world.status('pods')).gates).toMatchObject([{ state: 'Failed', attempts: 3, answer: 'value 7' }]);
  });

  it('does not run for nodes that join later, nor for a return to the revision that all nodes had', async () => {
    const world = await started({ gates: [ERRORS] });
    const controller = world.controller();
    world.prometheus.value = '0';
    await controller.run(60);
    expect(await state(world)).toBe('Complete 3');
    world.prometheus.value = '9';
    await world.patch('pods', { payload: { overlay: { maxPods: 60 } } });
    await controller.run(30);
    expect(await state(world)).toBe('GateFailed 1');
    await world.patch('pods', { payload: { overlay: { maxPods: 50 } } });
    await controller.run(30);
    expect(await state(world)).toBe('Complete 3');
    expect(await world.maxPods()).toEqual({ n1: 50, n2: 50, n3: 50 });
  });
});

describe('maintenance windows of a rollout', () => {
  // The world starts on Tue 2030-01-01 00:00 UTC, which is 01:00 in Berlin.
  const window = { startTime: '01:30', endTime: '02:00', timeZone: 'Europe/Berlin' };

  it('let batches start only inside', async () => {
    const world = await started({ windows: [window] });
    const controller = world.controller();
    await controller.run(60);
    expect(await state(world)).toBe('OutsideWindow 0');
    expect(await message(world)).toBe(
      'no maintenance window is open; the next window opens on Tue 2030-01-01 01:30 Europe/Berlin; 0 of 3 nodes updated',
    );
    expect(await world.assigned()).toEqual([]);
    await world.fleet.pass(29 * 60);
    await controller.run(60);
    expect(await state(world)).toBe('Complete 3');
  });

  it('let no batch start that is not expected to finish inside', async () => {
    const world = await started({
      windows: [{ ...window, startTime: '01:00', endTime: '01:03' }],
      batchDurationSeconds: 155,
      minReadySeconds: 10,
    });
    const controller = world.controller();
    await controller.run(60);
    expect(await state(world)).toBe('OutsideWindow 2');
    expect(await message(world)).toBe(
      'batch 3 may not finish before the maintenance window closes on Tue 2030-01-01 01:03 Europe/Berlin (the declared duration is 2m35s); the next window opens on Wed 2030-01-02 01:00 Europe/Berlin; 2 of 3 nodes updated',
    );
    await world.patch('pods', { strategy: { windows: null } });
    await controller.run(30);
    expect(await state(world)).toBe('Complete 3');
  });

  it('do not count the time during which a failed rollout did not continue as the duration of a batch', async () => {
    const world = await started({ windows: [{ ...window, startTime: '01:00', endTime: '01:30' }], minReadySeconds: 10 });
    const broken = { healthz: { ok: false, why: 'connection refused' } } as const;
    let first = '';
    world.fleet.behaviours.set('"maxPods": 50', (seconds, node) => {
      first ||= node;
      return seconds > 3 && node === first ? broken : {};
    });
    const controller = world.controller();
    await controller.run(90);
    expect(await state(world)).toBe('NodesFailed 0');
    await world.fleet.pass(20 * 60);
    await world.patch('pods', { strategy: { maxFailures: 1, canary: { count: 0 } } });
    await controller.run(60);
    expect((await world.status('pods')).batch).toMatchObject({ number: 3 });
    expect((await world.status('pods')).batch?.longestSeconds).toBeLessThan(90);
    expect(await state(world)).toBe('NodesFailed 2');
  });

  it('expect no batch to take longer than its nodes may, if no controller ran at the end of a batch', async () => {
    const world = await started({ windows: [{ ...window, startTime: '01:00', endTime: '03:00' }], batchDurationSeconds: 60 });
    await world.controller().run(4);
    expect((await world.status('pods')).batch).toMatchObject({ number: 1 });
    await world.fleet.pass(5400);
    await world.controller().run(60);
    expect((await world.status('pods')).batch).toMatchObject({ longestSeconds: 180 });
    expect(await state(world)).toBe('Complete 3');
  });

  it('give a node that joins later its configuration at any time', async () => {
    const world = await started({ windows: [{ ...window, startTime: '01:00', endTime: '01:20' }] });
    const controller = world.controller();
    await controller.run(60);
    expect(await state(world)).toBe('Complete 3');
    await world.fleet.pass(1800);
    const { labels = {} } = (await world.cluster.get({ apiVersion: 'v1', kind: 'Node', name: 'n3' }))?.metadata ?? {};
    await world.cluster.delete({ apiVersion: 'v1', kind: 'Node', name: 'n3' });
    await controller.run(8);
    await world.cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n3', labels } });
    const status = { nodeInfo: { kubeletVersion: 'v1.36.2' } };
    await world.cluster.patch({ apiVersion: 'v1', kind: 'Node', name: 'n3' }, 'strategic', { status }, STATUS);
    await world.fleet.setReady('n3', true);
    await controller.run(40);
    expect(await state(world)).toBe('Complete 3');
    expect(await world.assigned()).toEqual(['n1', 'n2', 'n3']);
  });
});
