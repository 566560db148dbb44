import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { ALLOW_POD_LOSS_ANNOTATION, CONFIG_SOURCE_ANNOTATION, CONFIG_STATUS_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-bundle.ts';
import type { CliResult } from '../support/run-cli.ts';
import { generateKey } from '../support/sshd.ts';

const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node1' };
const NAMESPACE = 'kubeletadm-system';
const CLIENT_PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const BUNDLE = new URL('../../dist/kubeletadm.mjs', import.meta.url);

describe.skipIf(requirement('lab hosts', whyNoLabHosts()))('agent on a real host', () => {
  let api: LabApiServer;
  let lab: LabHosts;
  let cluster: Cluster;
  let heartbeats: NodeJS.Timeout;
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-agent-'));
  const runningConfig = (): string =>
    lab.run(
      'node1',
      'tr "\\0" "\\n" < /proc/$(systemctl show kubelet --property=MainPID --value)/cmdline | sed -n s/--config=//p | xargs cat',
    );

  beforeAll(async () => {
    api = await startApiServer();
    writeFileSync(join(directory, 'admin.conf'), api.adminKubeconfig());
    cluster = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' } });
    lab = startLabHosts(1);
    // Other tests leave files on the hosts.
    lab.reset('node1');
    lab.expose(Number(new URL(api.url).port));
    await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node1' } });
    writeFileSync(join(directory, 'kubelet.yaml'), `${HEADER}maxPods: 110\nclusterDNS: [10.96.0.10]\nhealthzPort: 10248\n`);
    await prepareHost();
    // The stand-in kubelet reports no status, so this test updates the Node. It serves no configz either:
    // only its process shows the configuration that it runs with.
    const beat = async (): Promise<void> => {
      // This process is also the API server: it must never wait for the host.
      const isUp = (await lab.query('node1', 'curl -fs -m 2 http://127.0.0.1:10248/healthz || true')).trim() === 'ok';
      if (!isUp) return;
      const lastHeartbeatTime = new Date().toISOString().replace(/\.\d+/, '');
      const status = { nodeInfo: { kubeletVersion: 'v1.36.2' }, conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }] };
      await cluster.patch(NODE, 'strategic', { status }, { subresource: 'status' });
    };
    heartbeats = setInterval(() => void beat().catch(() => undefined), 1000);
  }, 900_000);
  afterAll(async () => {
    clearInterval(heartbeats);
    await cluster?.close();
    await api?.close();
    lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** A node as kubeadm bootstraps it, with Node.js for the bundle. */
  async function prepareHost(): Promise<void> {
    lab.run('node1', 'mkdir -p /etc/kubernetes /var/lib/kubelet /etc/systemd/system/kubelet.service.d');
    lab.put('node1', '/usr/local/bin/node', readFileSync(process.execPath));
    lab.put('node1', '/var/lib/kubelet/config.yaml', readFileSync(join(directory, 'kubelet.yaml')));
    // Like the kubelet keeps it: the certificate in a separate file.
    const kubeconfig = await api.kubeconfigFor('system:node:node1', ['system:nodes']);
    const pem = (name: string): string => Buffer.from(new RegExp(`${name}: (\\S+)`).exec(kubeconfig)?.[1] ?? '', 'base64').toString('utf8');
    lab.run('node1', 'mkdir -p /var/lib/kubelet/pki');
    lab.put('node1', CLIENT_PEM, pem('client-certificate-data') + pem('client-key-data'));
    lab.run('node1', `chmod 600 ${CLIENT_PEM}`);
    const inFile = kubeconfig.replace(/client-(certificate|key)-data: \S+/g, `client-$1: ${CLIENT_PEM}`);
    lab.put('node1', '/etc/kubernetes/kubelet.conf', inFile.replace(api.url, `https://127.0.0.1:${new URL(api.url).port}`));
    const dropIn = `[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
ExecStart=
ExecStart=/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf $KUBELET_CONFIG_ARGS
Restart=always
RestartSec=2
`;
    lab.put('node1', '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf', dropIn);
    lab.run('node1', 'systemctl daemon-reload && systemctl enable -q kubelet && systemctl restart kubelet');
  }

  const dynamic = async (command: string, ...words: readonly string[]): Promise<CliResult> => {
    const onHost = ['enable', 'disable', 'inspect'].includes(command);
    const access = onHost ? ['--ssh-config', lab.sshConfig] : [];
    return runCommand(['dynamic', command, 'node1', ...access, '--kubeconfig', join(directory, 'admin.conf'), ...words]);
  };
  /** The output that an operator sees, quoted in docs/dynamic-agent.md. */
  const show = async (): Promise<string> => (await dynamic('status')).stdout;
  const enable = (...words: readonly string[]): Promise<CliResult> =>
    dynamic('enable', '--program', fileURLToPath(BUNDLE), '--trial', '5s', '--allow', 'unsafe', '--spread', '0s', ...words);
  /** All files that `dynamic enable` may change, with their content. */
  const belongings = (): string =>
    lab.run(
      'node1',
      'cd / && find etc/systemd/system etc/kubernetes etc/default/kubelet var/lib/kubelet var/lib/kubeletadm usr/local/lib/kubeletadm 2>/dev/null | sort | while read f; do if [ -L "$f" ]; then echo "$f $(readlink "$f")"; elif [ -f "$f" ]; then sha256sum "$f"; else echo "$f"; fi; done',
    );

  const push = async (name: string, kubelet: string): Promise<void> => {
    await cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: NAMESPACE },
      data: { kubelet },
      immutable: true,
    });
  };
  const assign = (name: string | null) => {
    const text = name === null ? null : JSON.stringify({ configMap: { namespace: NAMESPACE, name, kubeletConfigKey: 'kubelet' } });
    const allowed = name === null ? null : `${NAMESPACE}/${name}/kubelet`;
    const annotations = { [CONFIG_SOURCE_ANNOTATION]: text, [ALLOW_POD_LOSS_ANNOTATION]: allowed };
    return cluster.patch(NODE, 'merge', { metadata: { annotations } });
  };
  const condition = async (): Promise<JsonObject> => {
    const { conditions = [] } = ((await cluster.get(NODE))?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
    return conditions.find(({ type }) => type === 'KubeletConfigOk') ?? {};
  };
  const status = async (): Promise<JsonObject> =>
    JSON.parse((await cluster.get(NODE))?.metadata.annotations?.[CONFIG_STATUS_ANNOTATION] ?? '{}') as JsonObject;
  /** @returns the elapsed milliseconds */
  const until = async (reason: string): Promise<number> => {
    const start = Date.now();
    while (Date.now() - start < 60_000) {
      if ((await condition()).reason === reason) return Date.now() - start;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const journal = lab.run('node1', 'journalctl -u kubeletadm-agent -n 30 --no-pager -o cat');
    throw new Error(`never ${reason}: ${JSON.stringify(await condition())}\n${journal}`);
  };
  const starts = (): number => Number(lab.run('node1', 'journalctl -u kubelet -o cat --no-pager | grep -c "^Started" || true').trim());

  let before = '';
  it('is installed next to a kubelet that keeps running unchanged, and a second run changes nothing', async () => {
    before = belongings();
    const kubelet = starts();
    const dry = await enable('--dry-run', '--exit-code', '--diff');
    expect(dry).toMatchObject({ code: 6 });
    expect(dry.stdout).toContain('+EnvironmentFile=-/var/lib/kubelet/kubeletadm-agent/active.env');
    expect(belongings()).toBe(before);
    const first = await enable();
    expect(first).toMatchObject({ code: 0 });
    expect(await enable()).toMatchObject({ code: 0, stdout: 'Nothing to do.\n' });
    expect(starts()).toBe(kubelet);
    expect(lab.run('node1', 'ls /etc/kubernetes/kubeletadm-agent.conf /var/lib/kubelet/kubeletadm-agent/token 2>/dev/null || true')).toBe(
      '',
    );
    expect(
      (await cluster.list({ apiVersion: 'v1', kind: 'ServiceAccount' })).items.filter(({ metadata }) => metadata.name.includes('agent')),
    ).toEqual([]);
  }, 300_000);

  it('reports that the local configuration is in use', async () => {
    await until('Local');
    expect(await show()).toMatch(/^node1 +agent +local /m);
    expect(lab.run('node1', 'curl -fs http://127.0.0.1:10246/healthz')).toBe('ok\n');
    expect(lab.run('node1', 'curl -fs http://127.0.0.1:10246/metrics')).toContain('kubelet_node_config_error 0');
  }, 120_000);

  it('brings an overlay to the state good', async () => {
    const before = starts();
    await push('a', `${OVERLAY}maxPods: 50\n`);
    await assign('a');
    await until('Trial');
    expect(await show()).toMatch(/^node1 +agent +trial .* kubeletadm-system\/a\/kubelet +kubeletadm-system\/a\/kubelet@\d+ +local$/m);
    expect(runningConfig()).toMatch(/^maxPods: 50$/m);
    expect(runningConfig()).toMatch(/10\.96\.0\.10/);
    await until('Good');
    expect(await show()).toMatch(/^node1 +agent +good /m);
    expect(starts()).toBe(before + 1);
  }, 120_000);

  it('rolls back a configuration that the kubelet exits with', async () => {
    await push('b', `${OVERLAY}maxPods: 60\ntlsCertFile: /no/cert\ntlsPrivateKeyFile: /no/key\n`);
    await assign('b');
    expect(await until('FallenBack')).toBeLessThan(20_000);
    expect((await condition()).message).toContain('/no/cert');
    expect(await show()).toMatch(
      /node1 +agent +rolled-back [\s\S]*\nnode1: .*\/no\/cert.*; the kubelet runs the last known good configuration\./,
    );
    expect(runningConfig()).toMatch(/^maxPods: 50$/m);
    expect((await status()).error).toContain('failed to run config: ');
  }, 180_000);

  it('starts with the good configuration after a power cut', async () => {
    await assign('a');
    await until('Good');
    lab.powerCycle('node1');
    await expect.poll(() => runningConfig(), { timeout: 60_000 }).toMatch(/^maxPods: 50$/m);
    await until('Good');
    expect(await show()).toMatch(/^node1 +agent +good /m);
  }, 180_000);

  it('keeps running while the API server is unreachable, also when it starts during that time', async () => {
    // This process is also the API server: it must never wait for the host.
    const health = (path: string): Promise<string> =>
      lab.query('node1', `curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:10246${path} || true`);
    const before = starts();
    await api.restart({
      whileDown: async () => {
        lab.run('node1', 'systemctl kill -s KILL kubeletadm-agent');
        await expect.poll(async () => `${await health('/healthz')} ${await health('/readyz')}`, { timeout: 30_000 }).toBe('200 503');
        expect(runningConfig()).toMatch(/^maxPods: 50$/m);
      },
    });
    await expect.poll(() => health('/readyz'), { timeout: 60_000 }).toBe('200');
    expect(starts()).toBe(before);
  }, 120_000);

  it('survives SIGKILL, and returns to local when nothing is assigned', async () => {
    lab.run('node1', 'systemctl kill -s KILL kubeletadm-agent');
    await assign(null);
    await until('Local');
    expect(runningConfig()).toMatch(/^maxPods: 110$/m);
    expect(await status()).toEqual({});
  }, 120_000);

  it('applies only signed configurations, if signatures are required', async () => {
    const file = (name: string): string => join(directory, name);
    for (const name of ['alice', 'bob']) generateKey(file(name), 'ed25519');
    const key = (name: string): string => readFileSync(file(`${name}.pub`), 'utf8');
    writeFileSync(file('allowed'), ['alice', 'bob'].map((name) => `${name}@example.com ${key(name)}`).join(''));
    writeFileSync(file('revoked'), key('bob'));
    const required = ['--require-signature', file('allowed')];
    expect(await enable(...required)).toMatchObject({ code: 0 });
    expect(await enable()).toMatchObject({ code: 0, stdout: 'Nothing to do.\n' });
    /** Pushes a signed configuration and returns the name of its ConfigMap. */
    const pushSigned = async (maxPods: number, by: string): Promise<string> => {
      writeFileSync(file('signed.yaml'), `${OVERLAY}maxPods: ${maxPods}\n`);
      const args = ['dynamic', 'push', file('signed.yaml'), '--sign', file(by), '--kubeconfig', file('admin.conf')];
      const { code, stdout } = await runCommand(args);
      expect(code).toBe(0);
      return stdout.split('/')[1] ?? '';
    };
    const rejects = async (name: string, cause: RegExp): Promise<void> => {
      await assign(name);
      await expect.poll(async () => (await condition()).message, { timeout: 60_000 }).toMatch(cause);
      expect((await condition()).reason).toBe('Rejected');
    };
    await push('unsigned', `${OVERLAY}maxPods: 51\n`);
    await rejects('unsigned', /^the ConfigMap is not signed/);
    const first = await pushSigned(52, 'alice');
    await assign(first);
    await until('Good');
    expect(runningConfig()).toMatch(/^maxPods: 52$/m);
    const source = await cluster.get({ apiVersion: 'v1', kind: 'ConfigMap', namespace: NAMESPACE, name: first });
    const data = { ...(source?.data as JsonObject), kubelet: `${OVERLAY}maxPods: 53\n` };
    await cluster.delete({ apiVersion: 'v1', kind: 'ConfigMap', namespace: NAMESPACE, name: first });
    await cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'node-config', namespace: NAMESPACE }, data });
    await rejects('node-config', /^the key "kubelet" of the ConfigMap was changed after signing/);
    await cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: first, namespace: NAMESPACE },
      data: source?.data as JsonObject,
    });
    await assign(await pushSigned(54, 'bob'));
    await expect.poll(() => runningConfig(), { timeout: 60_000 }).toMatch(/^maxPods: 54$/m);
    await until('Good');
    await rejects(first, /^the signed revision \d+ is older than the accepted revision \d+/);
    expect(await enable(...required, '--revoked-signers', file('revoked'))).toMatchObject({ code: 0 });
    await rejects(await pushSigned(55, 'bob'), /^the signature of the ConfigMap is not valid, or its key is revoked on this node/);
    expect(runningConfig()).toMatch(/^maxPods: 54$/m);
    expect(lab.run('node1', 'stat -c %a%U /var/lib/kubelet/kubeletadm-agent/signers.yaml')).toBe('600root\n');
    expect(await enable('--no-require-signature')).toMatchObject({ code: 0 });
    await assign(null);
    await until('Local');
  }, 300_000);

  it('is inspected over SSH, and a kubelet that cannot start while the agent is down is repaired', async () => {
    await assign('a');
    await until('Good');
    expect(await dynamic('inspect')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /state: good, for [\s\S]* kubeletadm-system\/a\/kubelet@\d+ +kubelet\.yaml +\S+ +intact +assigned, active, last known good/,
      ),
    });
    lab.run(
      'node1',
      'systemctl stop kubeletadm-agent; d=$(sed -n s,KUBELET_CONFIG_ARGS=--config=,,p /var/lib/kubelet/kubeletadm-agent/active.env); rm $d; systemctl restart kubelet || true',
    );
    const broken = await dynamic('inspect');
    expect(broken).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/damaged +assigned[\s\S]*\[CHECKPOINT_DAMAGED\]\n[\s\S]*\[AGENT_DOWN\]/),
    });
    const repaired = await dynamic('inspect', '--repair');
    expect(repaired).toMatchObject({ code: 0, stderr: expect.stringContaining('the kubelet is healthy again') });
    await until('Good');
    expect(runningConfig()).toMatch(/^maxPods: 50$/m);
    expect(await dynamic('inspect', '--repair')).toMatchObject({ code: 0, stdout: 'Nothing to do.\n' });
    await assign(null);
    await until('Local');
    expect(await show()).toMatch(/^node1 +agent +local +\S+ +\d+\S* +- +local +local$/m);
    expect((await dynamic('history')).stdout).toMatch(
      / rolling back from kubeletadm-system\/b\/kubelet@\d+ to kubeletadm-system\/a\/kubelet@\d+: .*\/no\/cert/,
    );
    const access = ['--ssh-config', lab.sshConfig, '--host', 'node1', '--older-than', '0s'];
    const collected = await runCommand(['dynamic', 'gc', ...access]);
    expect(collected).toMatchObject({ code: 0, stderr: expect.stringContaining('removed /var/lib/kubelet/kubeletadm-agent/checkpoints/') });
    expect(lab.run('node1', 'ls /var/lib/kubelet/kubeletadm-agent/checkpoints')).toBe('');
  }, 240_000);

  it('runs in a sandbox', () => {
    const exposure = lab.run('node1', 'systemd-analyze security --no-pager kubeletadm-agent.service | tail -n 1').trim();
    process.stderr.write(`agent's unit: ${exposure}\n`);
    expect(Number(/level for kubeletadm-agent\.service: ([\d.]+)/.exec(exposure)?.[1])).toBeLessThan(3);
    const pid = lab.run('node1', 'systemctl show kubeletadm-agent --property=MainPID --value').trim();
    expect(lab.run('node1', `grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/${pid}/status`).replace(/\s+/g, ' ')).toBe(
      'CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 Seccomp: 2 ',
    );
  });

  it('uses less than 128 MB of memory', () => {
    const rss = Number(
      lab.run('node1', 'awk "/VmRSS/{print \\$2}" /proc/$(systemctl show kubeletadm-agent --property=MainPID --value)/status'),
    );
    process.stderr.write(`agent RSS ${Math.round(rss / 1024)} MB\n`);
    expect(rss / 1024).toBeLessThan(128);
  });

  it('is removed; all other files are byte-for-byte identical', async () => {
    await push('d', `${OVERLAY}maxPods: 70\n`);
    await assign('d');
    await until('Good');
    const off = await dynamic('disable');
    expect(off).toMatchObject({ code: 0 });
    // The revision of the signed configurations is kept.
    lab.run('node1', 'cd /var/lib/kubelet/kubeletadm-agent && rm accepted.json && rmdir ../kubeletadm-agent');
    expect(belongings()).toBe(before);
    expect(runningConfig()).toMatch(/^maxPods: 110$/m);
    expect((await cluster.get(NODE))?.metadata.annotations ?? {}).toEqual({});
    expect(await condition()).toEqual({});
    for (const kind of ['ClusterRole', 'ClusterRoleBinding'])
      expect(await cluster.get({ apiVersion: 'rbac.authorization.k8s.io/v1', kind, name: 'kubeletadm:agent:node1' })).toBeNull();
    expect(await dynamic('disable')).toMatchObject({ code: 0, stdout: 'Nothing to do.\n' });
  }, 300_000);

  it('rejects an invalid address in one line', async () => {
    const { code, stderr } = await runCommand(['agent', '--kubeconfig', '/nonexistent', '--listen', 'nowhere']);
    expect(code).toBe(2);
    expect(stderr).toContain('--listen');
  });
});
