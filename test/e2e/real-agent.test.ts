import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/core/json.ts';
import { createAuthority } from '../../src/lab/api-server/pki.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import { OVERLAY, SCENARIOS, scenarioNode } from '../support/agent-scenarios.ts';
import { type LabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { whyNoKubelet } from '../support/real-apiserver.ts';
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts';
import { requirement } from '../support/requirement.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const missing = whyNoKubelet() ?? whyNoLabHosts();
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node1' } as const;

/**
 * What a kubelet of Kubernetes itself makes of configurations that do it no good, and what the agent says of it. The API server here has no way to kubelets, as of
 * nodes behind a firewall.
 */
const BAD: readonly [string, string, RegExp][] = [
  [
    'dies at once of a file that is not there',
    'tlsCertFile: /no/cert\ntlsPrivateKeyFile: /no/key',
    /the kubelet exited: .*\/no\/(cert|key)/,
  ],
  ['has its port taken', 'port: 22', /the kubelet exited: port 22 is taken by another process/],
  [
    'is given another cgroup driver than its runtime has',
    'cgroupDriver: systemd',
    /cgroupDriver is systemd, but the container runtime uses cgroupfs/,
  ],
  ['has no runtime at its socket', 'containerRuntimeEndpoint: unix:///run/none.sock', /the kubelet exited: .*none\.sock/],
  ['sees its disk under pressure', 'evictionHard: {nodefs.available: "99.9%"}', /the Node has DiskPressure/],
  ['sees its memory under pressure', 'evictionHard: {memory.available: "99.9%"}', /the Node has MemoryPressure/],
  [
    'does not know the CA of the cluster any more',
    'authentication: {x509: {clientCAFile: /etc/kubernetes/pki/other.crt}}',
    /refuses the credential of its own node, which it accepted before: .* answers 401/,
  ],
];

/** The scenarios that show more with a kubelet than without one. */
const SHOWN: ReadonlySet<number> = new Set([1, 14, 16, 19, 21, 22, 27, 28, 34, 35, 37]);

describe.skipIf(requirement('the agent beside a real kubelet', missing))('the agent beside a real kubelet', () => {
  let cluster: Cluster;
  let lab: LabHosts;
  let close: RealCluster['close'] | undefined;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-real-agent-'));
  const conf = join(directory, 'admin.conf');
  const bundle = fileURLToPath(new URL('../../dist/kubeletadm.mjs', import.meta.url));

  beforeAll(async () => {
    ({ cluster, lab, close } = await startRealCluster(1, directory, CONFIG));
    const where = ['--kubeconfig', conf, '--ssh-config', lab.sshConfig, '--host', 'node1'];
    const init = await runCommand(['init', '--config', join(directory, 'init.yaml'), ...where]);
    expect(init.code, init.stderr).toBe(0);
    if (!existsSync(bundle)) execFileSync(process.execPath, [fileURLToPath(new URL('../../scripts/build.mjs', import.meta.url))]);
    lab.put('node1', '/usr/local/bin/node', readFileSync(process.execPath));
    lab.put('node1', '/etc/kubernetes/pki/other.crt', (await createAuthority()).certPem);
  }, 900_000);
  afterAll(async () => {
    await close?.();
    rmSync(directory, { recursive: true, force: true });
  }, 120_000);

  const dynamic = (command: string, ...words: readonly string[]): Promise<CliResult> =>
    runCommand(['dynamic', command, 'node1', '--kubeconfig', conf, ...words]);
  const onHost = () => ['--ssh-config', lab.sshConfig];
  const enable = async (...words: readonly string[]): Promise<void> => {
    const enabled = await dynamic('enable', ...onHost(), '--program', bundle, '--spread', '0s', ...words);
    expect(enabled.code, enabled.stderr).toBe(0);
  };
  const units = (): string => lab.run('node1', 'cd /etc/systemd/system && find . | sort; cat kubelet.service.d/*');
  const starts = (): number => Number(lab.run('node1', 'journalctl -u kubelet -o cat --no-pager | grep -c "^Started" || true').trim());
  const condition = async (): Promise<JsonObject> => {
    const { conditions = [] } = ((await cluster.get(NODE))?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
    return conditions.find(({ type }) => type === 'KubeletConfigOk') ?? {};
  };
  const until = async (what: string, isTrue: () => Promise<boolean>): Promise<void> => {
    for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100)))
      if (await isTrue()) return;
    throw new Error(
      `never: ${what}; ${JSON.stringify(await condition())}\n${lab.run('node1', 'journalctl -u kubeletadm-agent -n 20 --no-pager -o cat')}`,
    );
  };
  const push = (name: string, text: string) =>
    cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'kubeletadm-system' },
      data: { kubelet: text },
      immutable: true,
    });

  let before = '';
  it('is installed, and may read the configz of its own kubelet, and nothing else of it', async () => {
    before = units();
    await enable('--trial', '15s', '--allow', 'drain');
    const role = await cluster.get({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'kubeletadm:agent:node1' });
    expect(role?.rules).toEqual([{ apiGroups: [''], resources: ['nodes/configz'], resourceNames: ['node1'], verbs: ['get'] }]);
  }, 120_000);

  it('proves a configuration by the word of the kubelet itself: no API server has to get through to it', async () => {
    await expect(cluster.getRaw('/api/v1/nodes/node1/proxy/configz')).rejects.toThrow();
    await push('good', `${OVERLAY}maxPods: 55\n`);
    const good = await dynamic('assign', '--configmap', 'kubeletadm-system/good/kubelet', '--wait', 'good', '--timeout', '60s');
    expect(good.code, good.stderr).toBe(0);
    expect((await cluster.get(NODE))?.status).toMatchObject({ capacity: { pods: '55' } });
    expect((await dynamic('status')).stdout).toMatch(/^node1 +agent +good /m);
  }, 120_000);

  it('counts what the Node said before the agent was started anew in a trial', async () => {
    await push('restarted', `${OVERLAY}maxPods: 56\n`);
    expect((await dynamic('assign', '--configmap', 'kubeletadm-system/restarted/kubelet')).code).toBe(0);
    lab.run('node1', 'systemctl restart kubeletadm-agent');
    await until('it is good', async () => (await condition()).reason === 'Good');
  }, 120_000);

  it('is installed with other options', async () => {
    // Longer than a kubelet takes to see pressure.
    await enable('--trial', '60s', '--allow', 'unsafe');
  }, 120_000);

  it.each(BAD)(
    'takes back what the kubelet %s',
    async (title, text, cause) => {
      await dynamic('assign', '--configmap', 'kubeletadm-system/restarted/kubelet', '--wait', 'good', '--timeout', '60s');
      const name = title.replace(/\W+/g, '-').toLowerCase().slice(0, 60).replace(/-$/, '');
      await push(name, `${OVERLAY}${text}\n`);
      const began = Date.now();
      const bad = await dynamic('assign', '--configmap', `kubeletadm-system/${name}/kubelet`, '--wait', 'good', '--timeout', '90s');
      const { stdout } = await dynamic('status');
      process.stderr.write(`${title}: ${Math.round((Date.now() - began) / 100) / 10} s: ${(await condition()).message}\n`);
      expect(bad.code, bad.stderr).toBe(5);
      expect(stdout).toMatch(/^node1 +agent +fell-back /m);
      expect((await condition()).message).toMatch(cause);
      expect(lab.run('node1', 'systemctl is-active kubelet; curl -s http://127.0.0.1:10248/healthz')).toBe('active\nok');
    },
    150_000,
  );

  it('is installed with a short trial', () => enable('--trial', '5s', '--allow', 'unsafe'), 120_000);

  it.each(
    SCENARIOS.filter(({ number }) => SHOWN.has(number)).map((scenario) => [`${scenario.number}. ${scenario.title}`, scenario] as const),
  )(
    'plays scenario %s',
    async (_, scenario) => {
      const node = scenarioNode({ cluster, nodeName: 'node1', until });
      await node.cleanUp();
      const had = starts();
      await scenario.play(node);
      await node.reports(scenario.status);
      expect(starts() - had).toBe(scenario.restarts);
    },
    150_000,
  );

  it('is taken off to the byte', async () => {
    const disabled = await dynamic('disable', ...onHost());
    expect(disabled.code, disabled.stderr).toBe(0);
    expect(units()).toBe(before);
    await expect.poll(async () => (await cluster.get(NODE))?.status, { timeout: 30_000 }).toMatchObject({ capacity: { pods: '110' } });
  }, 120_000);
});

const CONFIG = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`;
