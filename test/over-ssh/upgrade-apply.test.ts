import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/kube/cluster.ts';
import { runCommand } from '../support/run-cli.ts';
import { upgradeWorld } from '../support/upgrade-world.ts';

const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-upgrade-apply-'));
const kubeconfig = join(directory, 'admin.conf');
const ADMIN = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: 'https://10.0.0.1:6443', insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`;
writeFileSync(kubeconfig, ADMIN, { mode: 0o600 });
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function upgrade(...args: readonly string[]) {
  const { host, api, etcd, context } = await upgradeWorld();
  const cluster = (await api.reach(context)) as Cluster;
  const services = () => ({ connectHost: async () => host, connectCluster: async () => cluster, connectEtcd: async () => etcd });
  return runCommand(
    ['upgrade', 'apply', 'v1.36.2', '--yes', '-o', 'json', '--kubeconfig', kubeconfig, '--ignore-preflight-errors', 'all', ...args],
    { services },
  );
}

describe('upgrade apply -o json', () => {
  it('lists the skipped phases, and verifies nothing without the components', async () => {
    const { code, stdout, stderr } = await upgrade('--skip-phases', 'preflight,control-plane');
    expect(code, stderr).toBe(0);
    const plan = JSON.parse(stdout);
    expect(plan.skippedPhases).toEqual([
      ...['preflight', 'preflight/pull-images', 'control-plane/backup', 'control-plane/etcd', 'control-plane/apiserver'],
      ...['control-plane/controller-manager', 'control-plane/scheduler', 'control-plane/kubeconfig'],
      ...['control-plane/kubeletadm-controller', 'control-plane/complete'],
    ]);
    expect(plan.hosts[0].noops).toContainEqual({ phase: 'post-upgrade', reason: 'nothing to verify: the run upgrades no component' });
    expect(stderr).not.toContain('running on cp-1');
  });

  it('has an empty list without a skipped phase', async () => {
    const { code, stdout, stderr } = await upgrade('--dry-run');
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout).skippedPhases).toEqual([]);
  });
});
