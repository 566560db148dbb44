import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/adapters/cluster-kube.ts';
import { agentAccount, agentAccountName } from '../../src/core/dynamic/agent/account.ts';
import { AGENT_UNIT, POINTER_DROP_IN, renderAgentUnit, renderPointerDropIn } from '../../src/core/dynamic/agent/agent-units.ts';
import { AGENT_DIRECTORY } from '../../src/core/dynamic/agent/layout.ts';
import { CONFIG_SOURCE_ANNOTATION, CONFIG_STATUS_ANNOTATION } from '../../src/core/dynamic/config-source.ts';
import type { JsonObject } from '../../src/core/json.ts';
import { type ApiServer, startApiServer } from '../../src/lab/api-server/server.ts';
import type { Cluster } from '../../src/ports/cluster.ts';
import { type LabHosts, startLabHosts, whyNoLabHosts } from '../support/lab-hosts.ts';
import { requirement } from '../support/requirement.ts';
import { runCommand } from '../support/run-cli.ts';

const PROGRAM = '/usr/local/lib/kubeletadm/kubeletadm.mjs';
const HEADER = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const OVERLAY = 'apiVersion: kubeletadm.dev/v1alpha1\nkind: KubeletConfigurationOverlay\n';
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'node1' };
const BUNDLE = new URL('../../dist/kubeletadm.mjs', import.meta.url);

describe.skipIf(requirement('lab hosts', whyNoLabHosts()))('the agent on a real host', () => {
  let api: ApiServer;
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
    const user = `system:serviceaccount:kube-system:${agentAccountName('node1')}`;
    api = await startApiServer({ tokens: { 'agent-token': { user, groups: ['system:serviceaccounts', 'system:authenticated'] } } });
    cluster = kubeCluster({ kubeconfig: { text: api.adminKubeconfig(), file: 'admin.conf' } });
    lab = startLabHosts(1);
    lab.expose(Number(new URL(api.url).port));
    for (const object of agentAccount({ nodeName: 'node1', namespace: 'kube-system' })) await cluster.create(object);
    await cluster.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node1' } });
    writeFileSync(join(directory, 'kubelet.yaml'), `${HEADER}maxPods: 110\nclusterDNS: [10.96.0.10]\nhealthzPort: 10248\n`);
    await prepareHost();
    // What the stand-in kubelet does not do: it tells of itself, and shows what it runs with.
    const beat = async (): Promise<void> => {
      const isUp = lab.run('node1', 'curl -fs http://127.0.0.1:10248/healthz || true').trim() === 'ok';
      if (!isUp) return;
      const lastHeartbeatTime = new Date().toISOString().replace(/\.\d+/, '');
      const status = { nodeInfo: { kubeletVersion: 'v1.36.2' }, conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime }] };
      await cluster.patch(NODE, 'strategic', { status }, { subresource: 'status' });
    };
    heartbeats = setInterval(() => void beat().catch(() => undefined), 1000);
    api.proxyNode('node1', (path) => {
      if (path !== '/configz') return null;
      const maxPods = Number(/^maxPods: (\d+)/m.exec(runningConfig())?.[1] ?? 110);
      return { status: 200, body: { kubeletconfig: { maxPods, clusterDNS: ['10.96.0.10'], healthzPort: 10248 } } };
    });
  }, 900_000);
  afterAll(async () => {
    clearInterval(heartbeats);
    await cluster?.close();
    await api?.close();
    lab?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function prepareHost(): Promise<void> {
    lab.run('node1', 'mkdir -p /usr/local/lib/kubeletadm /etc/kubernetes /var/lib/kubelet /etc/systemd/system/kubelet.service.d');
    lab.put('node1', '/usr/local/bin/node', readFileSync(process.execPath));
    lab.put('node1', PROGRAM, readFileSync(BUNDLE));
    lab.put('node1', '/etc/kubernetes/kubeletadm-agent.conf', api.kubeconfigWithToken('agent-token'));
    const words = ['/usr/local/bin/node', PROGRAM, 'agent', '--kubeconfig', '/etc/kubernetes/kubeletadm-agent.conf'];
    lab.put(
      'node1',
      AGENT_UNIT,
      renderAgentUnit([...words, '--node-name', 'node1', '--trial', '5s', '--allow', 'unsafe', '--spread', '0s', '-v', '1']),
    );
    lab.put('node1', '/var/lib/kubelet/config.yaml', readFileSync(join(directory, 'kubelet.yaml')));
    lab.put('node1', '/etc/kubernetes/kubelet.conf', 'x\n');
    const dropIn = `[Service]
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
ExecStart=
ExecStart=/usr/bin/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf $KUBELET_CONFIG_ARGS
Restart=always
RestartSec=2
`;
    lab.put('node1', '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf', dropIn);
    lab.put('node1', POINTER_DROP_IN, renderPointerDropIn(AGENT_DIRECTORY));
    lab.run(
      'node1',
      'systemctl daemon-reload && systemctl enable -q kubelet && systemctl restart kubelet && systemctl enable --now kubeletadm-agent',
    );
  }

  const push = async (name: string, kubelet: string): Promise<void> => {
    await cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace: 'kube-system' },
      data: { kubelet },
      immutable: true,
    });
  };
  const assign = (name: string | null) => {
    const text = name === null ? null : JSON.stringify({ configMap: { namespace: 'kube-system', name, kubeletConfigKey: 'kubelet' } });
    return cluster.patch(NODE, 'merge', { metadata: { annotations: { [CONFIG_SOURCE_ANNOTATION]: text } } });
  };
  const condition = async (): Promise<JsonObject> => {
    const { conditions = [] } = ((await cluster.get(NODE))?.status ?? {}) as { readonly conditions?: readonly JsonObject[] };
    return conditions.find(({ type }) => type === 'KubeletConfigOk') ?? {};
  };
  const status = async (): Promise<JsonObject> =>
    JSON.parse((await cluster.get(NODE))?.metadata.annotations?.[CONFIG_STATUS_ANNOTATION] ?? '{}') as JsonObject;
  /** @returns after how many milliseconds */
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

  it('tells that the local configuration runs', async () => {
    await until('Local');
    expect(lab.run('node1', 'curl -fs http://127.0.0.1:10246/healthz')).toBe('ok\n');
    expect(lab.run('node1', 'curl -fs http://127.0.0.1:10246/metrics')).toContain('kubelet_node_config_error 0');
  }, 120_000);

  it('takes an overlay to good', async () => {
    const before = starts();
    await push('a', `${OVERLAY}maxPods: 50\n`);
    await assign('a');
    await until('Trial');
    expect(runningConfig()).toMatch(/^maxPods: 50$/m);
    expect(runningConfig()).toMatch(/10\.96\.0\.10/);
    await until('Good');
    expect(starts()).toBe(before + 1);
  }, 120_000);

  it('comes back from what the kubelet dies of', async () => {
    await push('b', `${OVERLAY}maxPods: 60\ntlsCertFile: /no/cert\ntlsPrivateKeyFile: /no/key\n`);
    await assign('b');
    expect(await until('FallenBack')).toBeLessThan(20_000);
    expect((await condition()).message).toContain('/no/cert');
    expect(runningConfig()).toMatch(/^maxPods: 50$/m);
    expect((await status()).error).toContain('failed to run config: ');
  }, 180_000);

  it('starts with what is good when the plug was pulled', async () => {
    await assign('a');
    await until('Good');
    lab.powerCycle('node1');
    await expect.poll(() => runningConfig(), { timeout: 60_000 }).toMatch(/^maxPods: 50$/m);
    await until('Good');
  }, 180_000);

  it('survives SIGKILL, and goes back to local when nothing is assigned', async () => {
    lab.run('node1', 'systemctl kill -s KILL kubeletadm-agent');
    await assign(null);
    await until('Local');
    expect(runningConfig()).toMatch(/^maxPods: 110$/m);
    expect(await status()).toEqual({});
  }, 120_000);

  it('is small', () => {
    const rss = Number(
      lab.run('node1', 'awk "/VmRSS/{print \\$2}" /proc/$(systemctl show kubeletadm-agent --property=MainPID --value)/status'),
    );
    process.stderr.write(`agent RSS ${Math.round(rss / 1024)} MB\n`);
    expect(rss / 1024).toBeLessThan(100);
  });

  it('refuses an address that is none, in one line', async () => {
    const { code, stderr } = await runCommand(['agent', '--kubeconfig', '/nonexistent', '--listen', 'nowhere']);
    expect(code).toBe(2);
    expect(stderr).toContain('--listen');
  });
});
