import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startLab } from '../../lab/lab.ts';
import type { Lab } from '../../lab/lab-options.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster, KubeObject } from '../../src/kube/cluster.ts';
import { CORDON_ANNOTATION, isCordoned } from '../../src/maintenance/node-hold.ts';
import { drainPod } from '../support/drain-objects.ts';
import { startFirstNode } from '../support/first-node.ts';
import { builtProgram, runCommand } from '../support/run-bundle.ts';
import { untilTrue } from '../support/until-true.ts';

/** The claim of a run lasts 60 s, and the next run waits at least 45 s for a renewal. */
const TAKE_OVER_MS = 150_000;
const nodeRef = (name: string) => ({ apiVersion: 'v1', kind: 'Node', name });

describe('apply that is stopped by SIGSTOP for longer than its claim', { timeout: TAKE_OVER_MS + 120_000 }, () => {
  let directory: string;
  let lab: Lab;
  let cluster: Cluster;
  const stopped: ChildProcess[] = [];

  const argv = (fields: string): readonly string[] => {
    const file = join(directory, 'fleet.yaml');
    const head = `apiVersion: kubeletadm.dev/v1alpha1\nkind: Fleet\ncluster: {kubeconfig: ${lab.kubeconfig}}\n`;
    writeFileSync(file, `${head}baseline: {kubeletConfiguration: {${fields}}}\nhosts: [{name: node2}, {name: node3}]\n`);
    const rules = ['--canary', '0', '--max-unavailable', '1', '--allow', 'drain'];
    return ['apply', '--yes', '-f', file, '--ssh-config', lab.sshConfig, ...rules];
  };
  const env = (): Readonly<Record<string, string>> => ({ XDG_STATE_HOME: join(directory, 'state'), HOME: directory });
  const statusOf = async (name: string) => {
    const node = (await cluster.get(nodeRef(name))) as KubeObject;
    const text = JSON.stringify(node.status);
    return {
      isCordoned: isCordoned(node),
      owner: node.metadata.annotations?.[CORDON_ANNOTATION] ?? null,
      isMarked: /Maintenance|Drain/.test(text),
      text,
    };
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ka-stopped-'));
    lab = await startLab({ directory: join(directory, 'lab'), hosts: 3 });
    await startFirstNode(lab);
    cluster = kubeCluster({ kubeconfig: { path: lab.kubeconfig } });
    const joined = await runCommand(argv('maxPods: 50'), { env: env() });
    expect([joined.code, joined.stderr]).toEqual([0, expect.anything()]);
    // Cordoned by others, without pods to evict.
    await cluster.patch(nodeRef('node3'), 'merge', { spec: { unschedulable: true } });
  });
  afterAll(async () => {
    for (const child of stopped) child.kill('SIGKILL');
    await cluster?.close();
    await lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it.each([
    ['while it drains a node', 'pod', /"DrainInProgress"/],
    ['while it changes a drained node', 'container', /"MaintenanceInProgress"/],
  ])('%s: the next run takes the node over, and the stopped one removes no cordon and leaves none', async (_, scope, mark) => {
    const pod = drainPod(`web-${scope}`, 'node2');
    await cluster.create({ ...pod, metadata: { ...pod.metadata, finalizers: ['example.org/wait'] } });
    const words = argv(`maxPods: 50, topologyManagerScope: ${scope}`);
    const child = spawn(process.execPath, [builtProgram(), ...words], { env: { PATH: process.env.PATH ?? '', ...env() }, stdio: 'ignore' });
    stopped.push(child);
    const ended = once(child, 'close');
    await untilTrue(async () => /"DrainInProgress"/.test((await statusOf('node2')).text), 60_000);
    const release = () =>
      cluster.patch({ apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: pod.metadata.name }, 'merge', {
        metadata: { finalizers: null },
      });
    if (!mark.test('"DrainInProgress"')) await release();
    await untilTrue(async () => mark.test((await statusOf('node2')).text), 60_000);
    child.kill('SIGSTOP');
    if (mark.test('"DrainInProgress"')) await release();
    const second = await runCommand(words, { env: env() });
    expect([second.code, second.stderr]).toEqual([0, expect.stringMatching(/^node2 changed/m)]);
    const serving = { isCordoned: false, owner: null, isMarked: false };
    expect(await statusOf('node2')).toMatchObject(serving);
    child.kill('SIGCONT');
    const [code] = (await ended) as [number];
    expect([0, 1, 3, 4, 5]).toContain(code);
    expect(await statusOf('node2')).toMatchObject(serving);
    expect(await statusOf('node3')).toMatchObject({ isCordoned: true, owner: null, isMarked: false });
    const third = await runCommand(words, { env: env() });
    expect([third.code, third.stdout]).toEqual([0, expect.stringContaining('2 unchanged')]);
  });
});
