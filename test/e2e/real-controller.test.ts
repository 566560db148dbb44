import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { rolloutRef } from '../../src/rollouts/api/rollout.ts';
import type { RolloutStatus } from '../../src/rollouts/api/schema.ts';
import { runController } from '../../src/rollouts/controller/run-controller.ts';
import { planInstallation } from '../../src/rollouts/use-cases/install-controller.ts';
import { defineRollouts, rolloutsApiContract } from '../contract/rollouts-api.ts';
import { TEST_IMAGE } from '../support/controller-account.ts';
import { controllerPorts } from '../support/controller-ports.ts';
import { findRealBinaries, type RealApiServer, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { builtProgram } from '../support/run-bundle.ts';
import { createAgentNode, reportTrials } from '../support/stand-in-reports.ts';

const binaries = findRealBinaries();
const missing = typeof binaries === 'string' ? binaries : null;

function open(server: RealApiServer): Cluster {
  return kubeCluster({ kubeconfig: { text: server.adminKubeconfig(), file: 'admin.conf' } });
}

if (typeof binaries !== 'string')
  rolloutsApiContract('a real kube-apiserver', async () => {
    const server = await startRealApiServer(binaries);
    const cluster = open(server);
    return {
      cluster,
      close: async () => {
        await cluster.close();
        await server.close();
      },
    };
  });

describe.skipIf(requirement('rollouts on a real kube-apiserver', missing))('rollouts on a real kube-apiserver', () => {
  let server: RealApiServer;
  let cluster: Cluster;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-controller-'));
  beforeAll(async () => {
    if (typeof binaries === 'string') throw new Error(binaries);
    server = await startRealApiServer(binaries);
    cluster = open(server);
    writeFileSync(join(directory, 'admin.conf'), server.adminKubeconfig());
    await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } });
    await defineRollouts(cluster);
  }, 120_000);
  afterAll(async () => {
    await cluster?.close();
    await server?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  async function run(
    file: string,
    argv: readonly string[],
    { env, stdin = '' }: { readonly env?: NodeJS.ProcessEnv; readonly stdin?: string } = {},
  ): Promise<{ readonly code: number | null; readonly output: string }> {
    const child = spawn(file, argv, env === undefined ? {} : { env });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
    child.stdin.end(stdin);
    const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
    return { code, output };
  }

  /** `kubectl` of the same version as the server. */
  const kubectl = (argv: readonly string[], stdin = '') =>
    run(join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubectl'), ['--kubeconfig', join(directory, 'admin.conf'), ...argv], { stdin });

  it('accept server-side apply of two managers with different fields, and refuse a conflict', async () => {
    const apply = (manager: string, spec: JsonObject) =>
      kubectl(
        ['apply', '--server-side', '--field-manager', manager, '-f', '-'],
        JSON.stringify({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name: 'applied' }, spec }),
      );
    const payload = { overlay: { maxPods: 50, evictionHard: { 'memory.available': '5%' } } };
    expect(await apply('gitops', { nodeSelector: { matchLabels: { pool: 'none' } }, payload })).toMatchObject({ code: 0 });
    expect(await apply('operator', { strategy: { maxUnavailable: '20%' } })).toMatchObject({ code: 0 });
    const object = await cluster.get(rolloutRef('applied'));
    expect(object?.spec).toMatchObject({ payload, strategy: { maxUnavailable: '20%', canary: { count: 1 } } });
    const conflict = await apply('operator', { nodeSelector: { matchLabels: { pool: 'other' } }, strategy: { maxUnavailable: '20%' } });
    expect(conflict.code).not.toBe(0);
    expect(conflict.output).toContain('conflict with "gitops"');
    expect((await kubectl(['get', 'kcr', 'applied'])).output).toMatch(/NAME\s+PHASE\s+NODES\s+UPDATED\s+IN PROGRESS\s+FAILED\s+AGE/);
  });

  it('have a controller that kubectl installs from the Kustomize base, equal to that of controller install', async () => {
    const base = fileURLToPath(new URL('../../deploy/controller', import.meta.url));
    expect(await kubectl(['apply', '--server-side', '--force-conflicts', '-k', base])).toMatchObject({ code: 0 });
    expect((await planInstallation(cluster, 'kubeletadm')).changes).toEqual([]);
    expect((await planInstallation(cluster, TEST_IMAGE)).changes).toMatchObject([
      { kind: 'update-object', object: { kind: 'Deployment' } },
    ]);
  }, 60_000);

  it('are managed by the plugin of kubectl, with the name of the plugin in its texts', async () => {
    const plugins = join(directory, 'plugins');
    mkdirSync(plugins);
    symlinkSync(builtProgram(), join(plugins, 'kubectl-kubeletadm'));
    const env = { PATH: `${plugins}:${process.env.PATH ?? ''}`, KUBECONFIG: join(directory, 'admin.conf'), HOME: directory };
    const plugin = (...argv: readonly string[]) =>
      run(join(process.env.KUBEBUILDER_ASSETS ?? '', 'kubectl'), ['kubeletadm', 'rollout', ...argv], { env });
    const created = await plugin('create', 'plugin', '--selector', 'pool=plugin', '--set', 'maxPods=60', '--paused');
    expect(created).toMatchObject({ code: 0, output: expect.stringContaining('kubeletconfigrollout.kubeletadm.dev/plugin created\n') });
    expect(created.output).toContain('Start one: kubectl kubeletadm controller install');
    expect((await cluster.get(rolloutRef('plugin')))?.spec).toMatchObject({ payload: { overlay: { maxPods: 60 } }, paused: true });
    expect(await plugin('resume', 'plugin')).toMatchObject({ code: 0, output: 'kubeletconfigrollout.kubeletadm.dev/plugin resumed\n' });
    expect((await plugin('list', '-o', 'name')).output.split('\n')).toContain('kcr/plugin');
    expect(await plugin('status', 'none')).toMatchObject({ code: 2, output: expect.stringContaining('kubectl kubeletadm rollout list') });
    await cluster.delete(rolloutRef('plugin'));
  }, 60_000);

  it('are shown and paused by the page of the built program', async () => {
    const child = spawn(builtProgram(), ['ui', '--kubeconfig', join(directory, 'admin.conf')], { stdio: ['ignore', 'ignore', 'pipe'] });
    const exited = new Promise<number | null>((resolve) => child.on('close', resolve));
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString('utf8')));
    try {
      const urlOf = (): string => /live page: (\S+)/.exec(output)?.[1] ?? '';
      await expect.poll(urlOf, { timeout: 30_000 }).not.toBe('');
      const spec = { nodeSelector: { matchLabels: { pool: 'none' } }, payload: { overlay: { maxPods: 50 } } };
      await cluster.create({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name: 'shown' }, spec });
      const page = async (): Promise<string> => (await fetch(urlOf())).text();
      await expect.poll(page, { timeout: 15_000 }).toContain('data-action="pause" data-rollout="shown"');
      const headers = { origin: new URL(urlOf()).origin, 'content-type': 'application/json' };
      const body = JSON.stringify({ action: 'pause', rollout: 'shown' });
      const answer = await fetch(`${urlOf()}act`, { method: 'POST', headers, body });
      expect(await answer.json()).toEqual({ message: 'rollout shown: paused' });
      expect((await cluster.get(rolloutRef('shown')))?.spec).toMatchObject({ paused: true });
      await expect.poll(page, { timeout: 15_000 }).toContain('data-action="resume" data-rollout="shown"');
      // All watches are accepted by the server.
      expect(await page()).not.toContain('tag error');
    } finally {
      child.kill('SIGINT');
      await cluster.delete(rolloutRef('shown'));
    }
    expect(await exited).toBe(0);
  }, 90_000);

  it('are carried out by the controller: canary, batches, a restart of the API server, two controllers, and kubectl wait', async () => {
    const names = ['n1', 'n2', 'n3', 'n4'];
    for (const name of names) await createAgentNode(cluster, name);
    const agents = new AbortController();
    const simulated = reportTrials(cluster, agents.signal);
    const stops = [new AbortController(), new AbortController()] as const;
    const leaders: string[] = [];
    const running = stops.map(({ signal }, i) =>
      runController(
        controllerPorts(cluster, signal, ({ code, message }) => {
          if (code === 'LEADER' && message === 'this controller is the leader') leaders.push(`controller-${i}`);
        }),
        { namespace: 'kubeletadm-system', identity: `controller-${i}` },
      ),
    );
    try {
      const spec = { nodeSelector: {}, payload: { overlay: { maxPods: 50 } }, strategy: { minReadySeconds: 1, maxUnavailable: 2 } };
      await cluster.create({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigRollout', metadata: { name: 'pods' }, spec });
      const status = async (): Promise<RolloutStatus> => ((await cluster.get(rolloutRef('pods')))?.status ?? {}) as RolloutStatus;
      await expect.poll(async () => (await status()).counts?.inProgress ?? 0, { timeout: 40_000 }).toBeGreaterThan(0);
      await server.restart();
      // The leader ends; the other controller continues.
      const leader = leaders[0] === 'controller-1' ? 1 : 0;
      stops[leader].abort();
      await running[leader];
      const waited = await kubectl(['wait', '--for=condition=Ready', '--timeout=90s', 'kcr/pods']);
      expect(waited.output).toContain('condition met');
      const done = await status();
      expect(done).toMatchObject({ phase: 'Complete', counts: { updated: 4, failed: 0 }, observedGeneration: 1 });
      expect(new Set(leaders).size).toBe(2);
      const { items } = await cluster.list({ apiVersion: 'apps/v1', kind: 'ControllerRevision', namespace: 'kubeletadm-system' });
      expect(items.map(({ metadata }) => metadata.name).filter((name) => name.startsWith('pods-'))).toEqual([done.updateRevision]);
    } finally {
      for (const stop of stops) stop.abort();
      await Promise.all(running);
      agents.abort();
      await simulated;
    }
  }, 240_000);
});
