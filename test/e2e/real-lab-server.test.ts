import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { adoptCluster } from '../support/first-node.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { findRealBinaries, whyNoKubelet } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const missing = whyNoKubelet() ?? whyNoLabHosts();

/** Its requests are JSON with `contentType: application/json`: the API server of the lab does not read protobuf. */
describe.skipIf(requirement("a real kubelet at the lab's API server", missing))("a real kubelet at the lab's API server", () => {
  let api: LabApiServer;
  let lab: LabHosts;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-real-'));

  beforeAll(async () => {
    const binaries = findRealBinaries();
    if (typeof binaries === 'string') throw new Error(binaries);
    api = await startApiServer({ controllers: ['bootstrap-signer', 'csr-approver', 'csr-signer'] });
    writeFileSync(join(directory, 'admin.conf'), api.adminKubeconfig());
    writeFileSync(join(directory, 'init.yaml'), CONFIG);
    lab = startLabHosts(1, binaries.kubelet);
    lab.expose(Number(new URL(api.url).port));
  }, 900_000);
  afterAll(async () => {
    lab?.close();
    await api?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  it('bootstraps itself, registers its Node and renews its Lease', async () => {
    const where = ['--ssh-config', lab.sshConfig, '--host', 'node1', '--ignore-preflight-errors', 'all'];
    const { code, stderr } = await runCommand([...(await adoptCluster(directory)), ...where]);
    expect(code, stderr).toBe(0);
    const readiness = (): unknown => {
      const status = api.get('v1', 'Node', 'node1')?.status as JsonObject | undefined;
      return (status?.conditions as readonly JsonObject[] | undefined)?.find(({ type }) => type === 'Ready');
    };
    await expect.poll(readiness, { timeout: 60_000, interval: 500 }).toBeDefined();
    const renewed = (): unknown => {
      const lease = api.get('coordination.k8s.io/v1', 'Lease', 'node1', 'kube-node-lease');
      return (lease?.spec as JsonObject | undefined)?.renewTime;
    };
    await expect.poll(renewed, { timeout: 30_000, interval: 500 }).toBeDefined();
    const first = renewed();
    await expect.poll(renewed, { timeout: 30_000, interval: 500 }).not.toBe(first);
    expect(lab.run('node1', 'journalctl -u kubelet -o cat')).not.toMatch(/unsupported media type|\b415\b/i);
  }, 180_000);
});

const CONFIG = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
contentType: application/json
failCgroupV1: false
nodeLeaseDurationSeconds: 8
`;
