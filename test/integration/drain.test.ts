import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { interrupted } from '../../src/base/errors.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { type ResourceType, resourceOf } from '../../src/kube/resources.ts';
import { CONDITIONS_ANNOTATION } from '../../src/maintenance/node-hold.ts';
import { drainBudget, drainNode, drainPod, scaled } from '../support/drain-objects.ts';
import { runCommand } from '../support/run-cli.ts';
import { untilTrue } from '../support/until-true.ts';

const PODS = resourceOf('v1', 'Pod') as ResourceType;

/** A Node with the conditions of a run that was killed. */
function markedNode(...types: readonly string[]) {
  const lastTransitionTime = '2030-01-01T00:00:00Z';
  const left = types.map((type) => ({ type, status: 'True', reason: 'AdminRequested', message: 'kubeletadm: a test', lastTransitionTime }));
  const mark = JSON.stringify({ run: 'run-0', since: Object.fromEntries(types.map((type) => [type, lastTransitionTime])) });
  const node = drainNode('n1');
  return {
    ...node,
    metadata: { ...node.metadata, annotations: { [CONDITIONS_ANNOTATION]: mark } },
    status: { conditions: [{ type: 'Ready', status: 'True' }, ...left] },
  };
}

describe('drain, uncordon and maintenance against the API server double', () => {
  let server: LabApiServer;
  let directory: string;
  let access: readonly string[];

  beforeEach(async () => {
    server = await startApiServer({ controllers: ['disruption'] });
    directory = await mkdtemp(join(tmpdir(), 'kubeletadm-drain-'));
    const file = join(directory, 'admin.conf');
    await writeFile(file, server.adminKubeconfig());
    access = ['--kubeconfig', file];
    store(drainNode('n1'), drainNode('n2'), scaled('ReplicaSet/web', 2), drainPod('web-0', 'n1'), drainPod('web-1', 'n2'));
  });

  afterEach(async () => {
    await server.close();
    await rm(directory, { recursive: true });
  });

  function store(...objects: readonly KubeObject[]): void {
    for (const object of objects) server.store.put(resourceOf(object.apiVersion, object.kind) as ResourceType, object);
  }

  const run = (...words: readonly string[]) => runCommand([...words, ...access]);
  const node = (name: string) => server.get('v1', 'Node', name) as KubeObject & { readonly spec: { readonly unschedulable?: boolean } };
  const lifecycle = (name: string) =>
    (node(name).status as unknown as { conditions: readonly { type: string }[] }).conditions
      .map(({ type }) => type)
      .filter((type) => type !== 'Ready');

  it('forecasts a deadlock, and cordons nothing', async () => {
    store(drainBudget('pdb', 'web', { minAvailable: 2 }));
    const before = node('n1');
    for (const dryRun of [['--dry-run'], []]) {
      const { code, stdout, stderr } = await run('drain', 'n1', ...dryRun);
      expect([code, stderr]).toEqual([
        3,
        expect.stringContaining('PodDisruptionBudget default/pdb never allows an eviction: it needs 2 healthy pods of 2'),
      ]);
      if (dryRun.length > 0) expect(stdout).toContain('1 node: cannot be drained: n1.');
    }
    expect(node('n1')).toEqual(before);
    const { code, stdout } = await run('drain', 'n1', '--dry-run', '-o', 'json');
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      kind: 'DrainForecast',
      atOnce: 1,
      nodes: [{ node: 'n1', state: 'blocked' }],
      budgets: [{ state: 'deadlock' }],
    });
  });

  it('drains a node, shows who holds it, and returns it to service', async () => {
    store(drainBudget('pdb', 'web', { minAvailable: 1 }));
    const drained = await run('drain', 'n1', '--reason', 'new disk', '-o', 'json');
    expect(drained.code).toBe(0);
    expect(JSON.parse(drained.stdout)).toMatchObject({
      nodes: [{ node: 'n1', outcome: 'drained', pods: [{ name: 'default/web-0', stage: 'gone' }] }],
    });
    expect(node('n1').spec.unschedulable).toBe(true);
    expect(lifecycle('n1')).toEqual(['Drained']);
    const status = await run('maintenance', 'status');
    expect(status.stdout).toMatch(/n1 +Drained +\S+@\S+ +\S+ +new disk/);
    // A second drain finds nothing to do, and changes nothing.
    expect(await run('drain', 'n1')).toMatchObject({ code: 0, stdout: '1 node: 1 drained.\n' });
    expect(await run('uncordon', 'n1')).toMatchObject({ code: 0, stdout: 'n1: uncordoned\n' });
    expect(node('n1').spec.unschedulable).toBeUndefined();
    expect(node('n1').metadata.annotations ?? {}).toEqual({});
    expect(lifecycle('n1')).toEqual([]);
    expect((await run('maintenance', 'status')).stdout).toContain('No node is cordoned');
  });

  it('marks nodes of a maintenance until its end', async () => {
    expect(await run('maintenance', 'start', 'n1')).toMatchObject({ code: 0 });
    expect(lifecycle('n1').sort()).toEqual(['Drained', 'MaintenanceInProgress']);
    expect(await run('maintenance', 'end', 'n1')).toMatchObject({ code: 0 });
    expect(lifecycle('n1')).toEqual([]);
  });

  it('removes the condition that a killed run has left', async () => {
    store(markedNode('MaintenancePlanned'));
    expect((await run('maintenance', 'status')).stdout).toContain('MaintenancePlanned');
    const stdout = 'n1: unchanged: it is not cordoned; the condition MaintenancePlanned was removed\n';
    expect(await run('uncordon', 'n1')).toMatchObject({ code: 0, stdout });
    expect(lifecycle('n1')).toEqual([]);
    expect(await run('uncordon', 'n1')).toMatchObject({ code: 0, stdout: 'n1: unchanged: it is not cordoned\n' });
  });

  it('removes what a killed run has left also from a node that others have cordoned since', async () => {
    store({ ...markedNode('DrainInProgress', 'MaintenancePlanned'), spec: { unschedulable: true } });
    const state = 'n1: refused: it is cordoned, not by kubeletadm';
    const stdout = `${state}; the conditions MaintenancePlanned, DrainInProgress were removed\n`;
    expect(await run('uncordon', 'n1')).toMatchObject({ code: 3, stdout });
    expect([lifecycle('n1'), node('n1').spec.unschedulable]).toEqual([[], true]);
    expect(await run('uncordon', 'n1')).toMatchObject({ code: 3, stdout: `${state}\n` });
  });

  it('uncordons no node that others have cordoned', async () => {
    store({ ...drainNode('n1'), spec: { unschedulable: true } });
    expect(await run('drain', 'n1')).toMatchObject({ code: 0 });
    expect(server.store.list(PODS).map(({ metadata }) => metadata.name)).toEqual(['web-1']);
    expect(await run('uncordon', 'n1')).toMatchObject({ code: 3, stdout: 'n1: refused: it is cordoned, not by kubeletadm\n' });
    expect(node('n1').spec.unschedulable).toBe(true);
  });

  it('leaves nodes in the maintenance of others', async () => {
    const conditions = [{ type: 'MaintenanceInProgress', status: 'True', reason: 'AdminRequested', message: 'firmware' }];
    store({ ...drainNode('n1'), status: { conditions } });
    expect(await run('drain', 'n1', 'n2')).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('MaintenanceInProgress is True (AdminRequested: firmware)'),
    });
    expect([node('n1').spec.unschedulable, node('n2').spec.unschedulable]).toEqual([undefined, undefined]);
  });

  it('uncordons a node whose drain is interrupted', async () => {
    // The pod stays, as with a long grace period.
    store({ ...drainPod('web-0', 'n1'), metadata: { ...drainPod('web-0', 'n1').metadata, finalizers: ['example.org/wait'] } });
    const stop = new AbortController();
    const running = runCommand(['drain', 'n1', ...access], { signal: stop.signal });
    await untilTrue(() => server.get('v1', 'Pod', 'web-0', 'default')?.metadata.deletionTimestamp !== undefined);
    expect(lifecycle('n1')).toEqual(['DrainInProgress']);
    stop.abort(interrupted('SIGINT'));
    expect(await running).toMatchObject({ code: 130, stderr: expect.stringContaining('uncordoned') });
    expect(node('n1').spec.unschedulable).toBeUndefined();
    expect(lifecycle('n1')).toEqual([]);
  });

  it('exits with 130 if it is interrupted between two nodes', async () => {
    const stop = new AbortController();
    const stopAfterFirst = setInterval(() => {
      if (lifecycle('n1').includes('Drained')) stop.abort(interrupted('SIGINT'));
    }, 1);
    const { code, stderr } = await runCommand(['drain', 'n1', 'n2', ...access], { signal: stop.signal });
    clearInterval(stopAfterFirst);
    expect([code, stderr]).toEqual([130, expect.stringContaining('interrupted')]);
    expect(node('n2').spec.unschedulable).toBeUndefined();
  });

  it.each([
    [['drain', 'n1', '--disable-eviction'], '--disable-eviction is not supported'],
    [['drain'], 'no node is selected'],
    [['drain', 'n9'], 'the cluster has no Node of this name'],
    [['drain', 'n1', '--pod-selector', 'a=('], '--pod-selector'],
    [['uncordon', 'n9'], 'the cluster has no Node of this name'],
  ])('refuses %j', async (words, message) => {
    expect(await run(...words)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});
