import { describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import { operationsOf } from '../../../../src/fleet/plan/operations.ts';
import type { Host } from '../../../../src/host/access/host.ts';
import type { CommandFact, HttpFact } from '../../../../src/host/facts/query.ts';
import { networksOf, PROXY_ENVIRONMENT_FILE, proxyDropIn } from '../../../../src/host/install/proxy.ts';
import type { ProxySetting } from '../../../../src/host/operation/install-model.ts';
import { planDocument } from '../../../../src/host/plan/document.ts';
import type { Workflow } from '../../../../src/host/run-workflow.ts';
import { KUBELET_CONF } from '../../../../src/kube/well-known.ts';
import { configureProxy, type ProxyInput } from '../../../../src/kubeadm/phases/proxy.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { crashes, type FakeUnit, fakeUnit, runs } from '../../../support/fake-units.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';

const templates = await loadTemplates();
const workflow: Workflow<ProxyInput, ProxyInput> = {
  name: 'test',
  phases: [configureProxy.select((input) => input)],
  prepare: async (_, input) => ({ input, warnings: [], refusals: [] }),
};
const PROXY: ProxySetting = {
  http: null,
  https: 'http://proxy.example.com:3128',
  noProxy: ['.example.com'],
  credentials: { env: 'PROXY' },
};
const ADDRESSES = '2: eth0    inet 10.1.2.3/24 brd 10.1.2.255 scope global eth0\n3: cni0    inet 10.244.0.1/24 scope global cni0\n';
const EXCEPTIONS = ['10.96.0.0/12', '10.244.0.0/16', '.svc', '.cluster.local', 'cp.example.com'];

interface WorldOptions {
  readonly units?: Readonly<Record<string, FakeUnit>> | null;
  readonly files?: Readonly<Record<string, string>>;
  /** Status of the condition Ready of the Node; null: the run has no cluster. */
  readonly ready?: 'True' | 'False' | 'Unknown' | null;
  readonly addresses?: Partial<CommandFact>;
}

const NODE = { apiVersion: 'v1', kind: 'Node', name: 'w1' };

function world(more: WorldOptions = {}) {
  const kubelet = fakeUnit({ activeState: 'active', unitFileState: 'enabled' });
  const http = (): HttpFact => (kubelet.state.activeState === 'active' ? { status: 200, body: 'ok' } : { error: 'connection refused' });
  const { units = { kubelet, containerd: fakeUnit({ activeState: 'active' }) }, files = {}, ready = 'True' } = more;
  const commands = {
    'ip -o address show scope global': more.addresses ?? { exitCode: 0, stdout: ADDRESSES },
    'date +%s': { exitCode: 0, stdout: '1790000000\n' },
    id: { exitCode: 0, stdout: '0\n' },
    uname: { exitCode: 0, stdout: 'w1\n' },
    sh: (argv: readonly string[]) => ({ exitCode: argv.at(-1)?.includes('command -v systemctl') ? 0 : 1 }),
  };
  const host = fakeHost({ units, files, commands, http });
  const reporter = recordingReporter();
  const reconnect = async (): Promise<Host> => ({ ...host, query: host.query, perform: host.perform, close: async () => undefined });
  const owner = { id: 'aaaa', name: 'alice@laptop', processId: 7, machine: 'laptop/1' };
  const writing = { owner, breakLock: false, isGone: () => false, confirm: { timeoutMs: 300_000, reconnect } };
  const clock = fakeClock();
  const cluster = ready === null ? null : fakeCluster({ objects: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' } }] });
  /** The kubelet reports its state, at a time of the host's clock. */
  const report = (status: string, seconds: number): unknown => {
    const conditions = [{ type: 'Ready', status, lastHeartbeatTime: new Date(seconds * 1000).toISOString() }];
    return cluster?.patch(NODE, 'merge', { status: { conditions } }, { subresource: 'status' });
  };
  report(ready ?? 'True', 1_780_000_000);
  kubelet.onStart = (unit) => {
    runs(unit);
    report(ready ?? 'True', unit.state.startedAt ?? 0);
  };
  const run = (proxy: ProxySetting, { dryRun = false, credentials = 'me:p%40ss%20w%25rd', joinServer = null as string | null } = {}) =>
    runWorkflow(
      workflow,
      { host, cluster, clock, reporter, writing },
      { templates, proxy, clusterExceptions: EXCEPTIONS, joinServer, readCredentials: async () => new Secret(credentials) },
      { dryRun, skipPhases: [] },
    );
  return { host, kubelet, reporter, run, report, clock };
}
const restarted = ({ host }: ReturnType<typeof world>): readonly (string | undefined)[] =>
  host.performed.flatMap((operation) => (operation.kind === 'run' && operation.argv[1] === 'restart' ? [operation.argv[2]] : []));

describe('the proxy of a host', () => {
  it('is an environment file for root, read by the units of the runtime and the kubelet, which restart', async () => {
    const it = world();
    await it.run(PROXY);
    expect(it.host.text(PROXY_ENVIRONMENT_FILE)).toBe(
      `# Written by kubeletadm: the proxy of the fleet file
HTTPS_PROXY=http://me:p%40ss%20w%25rd@proxy.example.com:3128
NO_PROXY=localhost,127.0.0.1,::1,${EXCEPTIONS.join(',')},10.1.2.0/24,.example.com
`,
    );
    expect(it.host.files.get(PROXY_ENVIRONMENT_FILE)).toMatchObject({ mode: 0o600, owner: 'root:root' });
    for (const unit of ['containerd', 'kubelet'] as const)
      expect(it.host.text(proxyDropIn(unit))).toContain(`[Service]\nEnvironmentFile=-${PROXY_ENVIRONMENT_FILE}\n`);
    expect(it.host.files.has(proxyDropIn('crio'))).toBe(false);
    expect(restarted(it)).toEqual(['containerd', 'kubelet']);
    expect(it.host.performed.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['arm-revert', 'confirm-commit']));
  });

  it('is not changed by a second run', async () => {
    const it = world();
    await it.run(PROXY);
    const second = await it.run(PROXY, { dryRun: true });
    expect(second.host.phases).toEqual([{ phase: 'proxy', plan: { changes: [], noop: 'the proxy is unchanged' } }]);
  });

  it('shows its credentials nowhere', async () => {
    const it = world();
    await it.run(PROXY);
    const changed = await it.run({ ...PROXY, https: 'http://other:3128' } as ProxySetting, { dryRun: true, credentials: 'me:neww' });
    const withoutCredentials = await it.run({ ...PROXY, credentials: null } as ProxySetting, { dryRun: true });
    const removed = await it.run('none', { dryRun: true });
    const shown = [changed, withoutCredentials, removed].map(({ host }) => JSON.stringify(planDocument([host], [], null)));
    expect(shown[0]).toContain('-HTTPS_PROXY=http://[secret]@proxy.example.com:3128\\n+HTTPS_PROXY=http://[secret]@other:3128');
    expect(shown[1]).toContain('-HTTPS_PROXY=http://[secret]@proxy.example.com:3128\\n+HTTPS_PROXY=http://proxy.example.com:3128');
    for (const text of [...shown, JSON.stringify(it.reporter.events)]) expect(text).not.toMatch(/p%40ss|p@ss|w%25rd|neww/);
  });

  it('has no digest of its credentials in a saved plan', async () => {
    const it = world();
    const first = await it.run(PROXY, { dryRun: true });
    const other = await it.run(PROXY, { dryRun: true, credentials: 'me:other' });
    expect(operationsOf(other.host)).toEqual(operationsOf(first.host));
    const written = world({ files: { [PROXY_ENVIRONMENT_FILE]: '# Written by kubeletadm\nHTTPS_PROXY=http://a:b@proxy:1\n' } });
    const rewritten = world({ files: { [PROXY_ENVIRONMENT_FILE]: '# Written by kubeletadm\nHTTPS_PROXY=http://c:d@proxy:1\n' } });
    const [a, b] = [await written.run('none', { dryRun: true }), await rewritten.run('none', { dryRun: true })];
    expect(operationsOf(a.host)).toEqual(operationsOf(b.host));
    expect(operationsOf(a.host).map(([what]) => what)).toContain(`proxy remove-file ${PROXY_ENVIRONMENT_FILE}`);
  });

  it('is removed, but not the drop-in of an administrator', async () => {
    const it = world();
    await it.run(PROXY);
    const own = '[Service]\nEnvironment=HTTPS_PROXY=http://other:1\n';
    it.host.files.set(proxyDropIn('crio'), { type: 'file', mode: 0o644, owner: 'root:root', content: own });
    await it.run('none');
    expect(it.host.files.has(PROXY_ENVIRONMENT_FILE)).toBe(false);
    expect(it.host.files.has(proxyDropIn('kubelet'))).toBe(false);
    expect(it.host.text(proxyDropIn('crio'))).toBe(own);
    expect(restarted(it)).toEqual(['containerd', 'kubelet', 'containerd', 'kubelet']);
    const { host } = await it.run('none', { dryRun: true });
    expect(host.phases[0]?.plan).toMatchObject({ changes: [], noop: 'no proxy' });
  });

  it('is rolled back if the kubelet does not become healthy', async () => {
    const it = world();
    const run = it.kubelet.onStart;
    it.kubelet.onStart = (unit) => (it.host.files.has(PROXY_ENVIRONMENT_FILE) ? crashes(unit, 'failed to run Kubelet: x') : run(unit));
    await expect(it.run(PROXY)).rejects.toMatchObject({ exitCode: 5 });
    expect(it.host.files.has(PROXY_ENVIRONMENT_FILE)).toBe(false);
    expect(it.kubelet.state.activeState).toBe('active');
  });

  it.each(['True', 'False'] as const)(
    'is rolled back if the restarted kubelet of a Node whose Ready is %s does not report to the API server',
    async (ready) => {
      const it = world({ ready });
      const reports = it.kubelet.onStart;
      it.kubelet.onStart = (unit) => (it.host.files.has(PROXY_ENVIRONMENT_FILE) ? runs(unit) : reports(unit));
      const failure = it.run(PROXY);
      await expect(failure).rejects.toMatchObject({
        exitCode: 5,
        problems: [
          {
            code: 'COMMIT_NOT_PROVEN',
            message: expect.stringContaining('Node w1: the kubelet has not reported its state since its restart'),
          },
          { code: 'ROLLED_BACK' },
        ],
      });
      expect(it.host.files.has(PROXY_ENVIRONMENT_FILE)).toBe(false);
    },
  );

  it('is not confirmed by a report of the previous kubelet, shortly before the restart', async () => {
    const it = world();
    it.kubelet.onStart = (unit) => {
      runs(unit);
      it.report('True', (unit.state.startedAt ?? 0) - 2);
    };
    await expect(it.run(PROXY)).rejects.toMatchObject({ code: 'COMMIT_NOT_PROVEN', exitCode: 5 });
  });

  it('is rolled back if the Node does not become Ready again', async () => {
    const it = world();
    it.kubelet.onStart = (unit) => {
      runs(unit);
      it.report(it.host.files.has(PROXY_ENVIRONMENT_FILE) ? 'False' : 'True', unit.state.startedAt ?? 0);
    };
    await expect(it.run(PROXY)).rejects.toMatchObject({ code: 'COMMIT_NOT_PROVEN', exitCode: 5 });
  });

  it.each([
    [null, 'this command has no connection to an API server'],
    ['Unknown', 'the kubelet of Node w1 did not report to the API server before the change'],
  ] as const)('is kept with a warning if the connection of the kubelet is unknown: %s', async (ready, why) => {
    const it = world({ ready });
    it.kubelet.onStart = runs;
    await it.run(PROXY);
    expect(it.host.files.has(PROXY_ENVIRONMENT_FILE)).toBe(true);
    expect(it.reporter.events).toContainEqual(
      expect.objectContaining({
        level: 'warning',
        code: 'COMMIT_NOT_IN_FORCE',
        message: `the new files are kept, but it is unknown whether the kubelet reaches the API server: ${why}; see kubectl get nodes`,
      }),
    );
  });

  it('has the API server of the kubelet in NO_PROXY, not that of the kubeconfig of the operator', async () => {
    const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://192.0.2.7:6443"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
users: [{name: u, user: {}}]
`;
    const it = world({ files: { [KUBELET_CONF]: kubeconfig } });
    await it.run(PROXY, { joinServer: 'https://bastion.example.com:8443' });
    const text = it.host.text(PROXY_ENVIRONMENT_FILE);
    expect(text).toContain('cp.example.com,192.0.2.7,10.1.2.0/24,.example.com');
    expect(text).not.toContain('bastion');
    const second = await it.run(PROXY, { dryRun: true, joinServer: 'https://127.0.0.1:16443' });
    expect(second.host.phases[0]?.plan.noop).toBe('the proxy is unchanged');
    const joining = world({ units: {} });
    await joining.run(PROXY, { joinServer: 'https://[2001:db8::1]:6443' });
    expect(joining.host.text(PROXY_ENVIRONMENT_FILE)).toContain('cp.example.com,2001:db8::1,10.1.2.0/24');
    // The first control plane of a cluster has no API server before init, and its own afterwards.
    const first = world({ units: {} });
    await first.run(PROXY);
    first.host.files.set(KUBELET_CONF, {
      type: 'file',
      mode: 0o600,
      owner: 'root:root',
      content: kubeconfig.replace('192.0.2.7', '10.1.2.3'),
    });
    const again = await first.run(PROXY, { dryRun: true });
    expect(again.host.phases[0]?.plan.noop).toBe('the proxy is unchanged');
  });

  it('is refused if the subnet of the host cannot be determined', async () => {
    const it = world({ addresses: { exitCode: 127, stderr: 'sh: 1: ip: not found\n' } });
    await expect(it.run(PROXY, { dryRun: true })).rejects.toMatchObject({
      code: 'HOST_SUBNET_UNKNOWN',
      exitCode: 3,
      message: expect.stringContaining(
        'proxy: cannot determine the subnet of the host for NO_PROXY: ip -o address show scope global failed: sh: 1: ip: not found',
      ),
    });
    await it.run('none');
  });

  it('warns if the addresses of the host have no subnet', async () => {
    const it = world({ addresses: { exitCode: 0, stdout: '2: eth0    inet 10.1.2.3/32 scope global eth0\n' } });
    const { host } = await it.run(PROXY, { dryRun: true });
    expect(host.phases[0]?.plan.warnings).toMatchObject([{ code: 'HOST_SUBNET_UNKNOWN', message: expect.stringContaining('noProxy') }]);
    const added = await it.run({ ...PROXY, noProxy: ['10.1.0.0/16'] } as ProxySetting, { dryRun: true });
    expect(added.host.phases[0]?.plan.warnings).toBeUndefined();
  });

  it('is written for both runtimes before one is installed, and restarts nothing', async () => {
    const it = world({ units: {} });
    await it.run(PROXY);
    expect([...it.host.files.keys()].filter((path) => path.endsWith('http-proxy.conf')).sort()).toEqual(
      (['containerd', 'crio', 'kubelet'] as const).map(proxyDropIn),
    );
    expect(restarted(it)).toEqual([]);
  });

  it('restarts the units of a run that was killed before the restart', async () => {
    const it = world();
    await it.run(PROXY);
    const file = it.host.files.get(PROXY_ENVIRONMENT_FILE);
    it.host.files.set(PROXY_ENVIRONMENT_FILE, { ...(file as NonNullable<typeof file>), modifiedAt: 2_000_000_000 });
    const { host } = await it.run(PROXY, { dryRun: true });
    expect(host.phases[0]?.plan.changes).toMatchObject([
      { kind: 'restart-unit', unit: 'containerd', reason: 'its proxy changed since it started' },
      { kind: 'restart-unit', unit: 'kubelet' },
    ]);
  });

  it('is refused on a host without systemd', async () => {
    await expect(world({ units: null }).run(PROXY)).rejects.toMatchObject({ code: 'SYSTEMD_MISSING', exitCode: 3 });
  });
});

describe('the networks of a host', () => {
  it('are those of the interface of the default route', () => {
    const output = `${ADDRESSES}4: eth1    inet 192.168.7.9/16 scope global eth1\n2: eth0    inet6 fd00:1::5/64 scope global \n`;
    expect(networksOf(output, ['eth0', null])).toEqual(['10.1.2.0/24', 'fd00:1::/64']);
    expect(networksOf(output, [null, null])).toEqual(['10.1.2.0/24', '192.168.0.0/16', 'fd00:1::/64']);
    const movable = `2: eth0    inet 10.1.2.5/32 scope global eth0\n${ADDRESSES}2: eth0    inet6 fd00:1::6/128 scope global \n`;
    expect(networksOf(movable, ['eth0', null])).toEqual(['10.1.2.0/24']);
    expect(networksOf('ip: not found', [null, null])).toEqual([]);
  });
});
