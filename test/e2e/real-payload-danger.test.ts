import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/base/json.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { OVERLAY } from '../support/agent-scenarios.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { whyNoKubelet } from '../support/real-apiserver.ts';
import { AGENT_BUNDLE, CGROUP_V1_CONFIG, joinForAgents, type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const missing = whyNoKubelet() ?? whyNoLabHosts();
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node1' } as const;

/** Payloads that harm a node with a real kubelet, and the field that the agent names. */
const HOSTILE: readonly (readonly [name: string, text: string, cause: RegExp])[] = [
  ['logs', 'podLogsDir: /srv/victim', /podLogsDir \(unsafe/],
  ['plugins', 'volumePluginDir: /srv/plug', /volumePluginDir \(unsafe/],
  ['port', 'readOnlyPort: 10255', /readOnlyPort \(unsafe: .*overrides the field at present/],
  ['verbosity', 'logging: {verbosity: 10}', /logging\.verbosity \(unsafe/],
  ['vmodule', 'logging: {vmodule: [{filePattern: "*", verbosity: 9}]}', /logging\.vmodule \(unsafe/],
  ['log-query', 'enableSystemLogQuery: true', /enableSystemLogQuery \(unsafe/],
  ['tracing', 'tracing: {endpoint: "10.99.0.1:4317", samplingRatePerMillion: 1000000}', /tracing\.endpoint/],
  ['token-cache', 'authentication: {webhook: {cacheTTL: 87600h}}', /cacheTTL \(unsafe/],
  ['anonymous', 'authentication: {anonymous: {enabled: true}}', /anonymous\.enabled \(unsafe/],
  ['allow', 'authorization: {mode: AlwaysAllow}', /authorization\.mode \(unsafe/],
  ['grind', 'fileCheckFrequency: 1µs', /fileCheckFrequency \(unsafe: 1µs is less than 1s/],
];

describe.skipIf(requirement('dangerous payloads with a real kubelet', missing))('dangerous payloads with a real kubelet', () => {
  let cluster: Cluster;
  let lab: LabHosts;
  let close: RealCluster['close'] | undefined;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-real-danger-'));
  const conf = join(directory, 'admin.conf');
  const dynamic = (command: string, ...words: readonly string[]): Promise<CliResult> =>
    runCommand(['dynamic', command, 'node1', '--kubeconfig', conf, ...words]);
  const enable = async (allow: string): Promise<void> => {
    const words = ['--ssh-config', lab.sshConfig, '--program', AGENT_BUNDLE, '--spread', '0s', '--trial', '15s', '--allow', allow];
    const enabled = await dynamic('enable', ...words);
    expect(enabled.code, enabled.stderr).toBe(0);
  };
  const condition = async (): Promise<JsonObject> => {
    const { conditions = [] } = ((await cluster.get(NODE))?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
    return conditions.find(({ type }) => type === 'KubeletConfigOk') ?? {};
  };
  const assign = async (name: string, text: string): Promise<void> => {
    const metadata = { name, namespace: 'kubeletadm-system' };
    await cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { kubelet: `${OVERLAY}${text}\n` }, immutable: true });
    const config = JSON.stringify({ configMap: { ...metadata, kubeletConfigKey: 'kubelet' } });
    await cluster.patch(NODE, 'merge', { metadata: { annotations: { 'kubeletadm.dev/config-source': config } } });
  };
  const message = async (): Promise<string> => String((await condition()).message);

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(1, directory, CGROUP_V1_CONFIG));
    await joinForAgents(lab, directory, ['node1'], '--kubelet-extra-args', 'read-only-port=0');
    lab.run('node1', 'mkdir -p /srv/victim/database /srv/plug && echo x >/srv/victim/database/data && chmod 777 /srv/plug');
    await enable('new-pods-only');
    await cluster.patch(NODE, 'merge', { spec: { unschedulable: true } });
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  it.each(HOSTILE)(
    'are rejected on a cordoned node: %s',
    async (name, text, cause) => {
      await assign(name, text);
      await expect.poll(message, { timeout: 60_000 }).toMatch(cause);
      expect((await condition()).reason).toBe('Rejected');
    },
    90_000,
  );

  it('deleted and opened nothing', () => {
    expect(lab.run('node1', 'cat /srv/victim/database/data').trim()).toBe('x');
    expect(lab.run('node1', 'curl -s -m 2 http://127.0.0.1:10255/pods || echo closed').trim()).toBe('closed');
  });

  it('cannot name a directory with other content even with --allow unsafe', async () => {
    await enable('unsafe');
    await expect.poll(async () => (await condition()).reason, { timeout: 60_000 }).toBe('Good');
    await assign('logs-unsafe', 'podLogsDir: /srv/victim');
    await expect.poll(message, { timeout: 60_000 }).toMatch(/contains database, which are not logs of pods/);
    await assign('plugins-unsafe', 'volumePluginDir: /srv/plug');
    await expect.poll(message, { timeout: 60_000 }).toMatch(/\/srv\/plug \(root:root, mode 777\)/);
  }, 180_000);

  it('are rolled back when the agent permits them no longer', async () => {
    await assign('query', 'enableSystemLogQuery: true');
    await expect.poll(async () => (await condition()).reason, { timeout: 90_000 }).toBe('Good');
    await enable('new-pods-only');
    await expect.poll(message, { timeout: 90_000 }).toMatch(/enableSystemLogQuery \(unsafe: .*need --allow unsafe/);
    await expect
      .poll(() => lab.run('node1', 'tr "\\0" " " </proc/$(pidof kubelet)/cmdline'), { timeout: 60_000 })
      .not.toContain('checkpoints');
  }, 300_000);
});
