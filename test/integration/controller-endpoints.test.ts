import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { defineRollouts } from '../contract/rollouts-api.ts';
import { rolloutWorld } from '../support/rollout-world.ts';
import { runCommand } from '../support/run-cli.ts';

/** A free port of the loopback interface. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { readonly port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe('the endpoints of a controller', () => {
  const directory = mkdtempSync(join(tmpdir(), 'controller-endpoints-'));
  const file = join(directory, 'admin.conf');
  let server: LabApiServer;
  beforeAll(async () => {
    server = await startApiServer();
    writeFileSync(file, server.adminKubeconfig());
    const cluster = kubeCluster({ kubeconfig: { text: server.adminKubeconfig(), file } });
    await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubeletadm-system' } });
    await defineRollouts(cluster);
    await cluster.close();
  });
  afterAll(async () => {
    await server.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('show that it is the leader, and that the API server does not answer any more', async () => {
    const port = await freePort();
    const stop = new AbortController();
    const running = runCommand(['controller', '--kubeconfig', file, `--listen=127.0.0.1:${port}`], { signal: stop.signal });
    const get = async (path: string): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`).catch(() => null);
      return answer === null ? '' : `${answer.status} ${await answer.text()}`;
    };
    try {
      await expect.poll(() => get('/readyz'), { timeout: 20_000 }).toBe('200 ok\n');
      expect(await get('/healthz')).toBe('200 ok\n');
      await expect.poll(() => get('/metrics'), { timeout: 10_000 }).toMatch(/^kubeletadm_controller_leader 1$/m);
      await expect.poll(() => get('/metrics'), { timeout: 10_000 }).toMatch(/^# TYPE kubeletadm_api_errors_total counter$/m);
      await server.close();
      await expect.poll(() => get('/readyz'), { timeout: 20_000 }).toMatch(/^503 .*refused/);
      expect(await get('/metrics')).toMatch(/^kubeletadm_api_errors_total\{verb="get",code="CLUSTER_UNREACHABLE"\} [1-9]/m);
      expect((await get('/other')).slice(0, 3)).toBe('404');
      const posted = await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST', body: '{}' });
      expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    } finally {
      stop.abort();
      await running;
    }
  });

  it('are an error if the address is used', async () => {
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
    const { port } = blocker.address() as { readonly port: number };
    const { code, stderr } = await runCommand(['controller', '--kubeconfig', file, `--listen=127.0.0.1:${port}`]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/cannot serve \/metrics on 127\.0\.0\.1:\d+: the address is already in use.*CONTROLLER_LISTEN/),
    ]);
    blocker.close();
  });
});

describe('the metrics of a controller', () => {
  it('show the phase, the nodes and the duration of decisions', async () => {
    const world = await rolloutWorld(['n1', 'n2']);
    await world.create('pods', { nodeSelector: {}, payload: { overlay: { maxPods: 50 } }, strategy: { minReadySeconds: 2 } });
    const controller = world.controller();
    await controller.run(6);
    const series = async (): Promise<readonly string[]> =>
      (await world.metrics()).split('\n').filter((line) => /^kubeletadm_rollout_(phase|nodes)/.test(line) && !line.endsWith(' 0'));
    expect(await series()).toContain('kubeletadm_rollout_phase{rollout="pods",phase="Progressing",reason="Progressing"} 1');
    await controller.run(30);
    expect(await series()).toEqual([
      'kubeletadm_rollout_phase{rollout="pods",phase="Complete",reason="Complete"} 1',
      'kubeletadm_rollout_nodes{rollout="pods",state="Updated"} 2',
    ]);
    expect(await world.metrics()).toMatch(/^kubeletadm_rollout_reconcile_duration_seconds_count 3\d$/m);
  });
});
