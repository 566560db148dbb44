import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { removeEtcdMember } from '../../../../src/kubeadm/phases/etcd-members.ts';
import { resetWorkflow } from '../../../../src/kubeadm/workflows/reset.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { type FakeEtcd, fakeEtcd } from '../../../support/fake-etcd.ts';
import { type FakeCommand, type FakeHostOptions, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit } from '../../../support/fake-units.ts';
import { isProof, kubeletCredentials, provesNode, testTrust } from '../../../support/node-proof.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';
import { withRun } from '../../../support/with-run.ts';

const SOCKET = { type: 'socket', mode: 0o660, owner: 'root:root' } as const;
const SOCKETS = { '/var/run/containerd/containerd.sock': SOCKET, '/var/run/crio/crio.sock': SOCKET };
const COMMANDS = {
  date: { exitCode: 0, stdout: '1800000000\n' },
  id: { exitCode: 0, stdout: '0\n' },
  // The answer to both uname -m and uname -n.
  uname: { exitCode: 0, stdout: 'x86_64\n' },
  hostname: { exitCode: 0, stdout: 'n\n' },
};

interface PrepareOptions {
  readonly ignore?: readonly string[];
  readonly cluster?: FakeCluster;
  readonly nodeName?: string;
  /** Credentials of its kubelet; default: none. */
  readonly credentials?: Awaited<ReturnType<typeof kubeletCredentials>>;
  readonly etcd?: FakeEtcd;
  /** The error of etcd queries. */
  readonly issue?: AppError;
  readonly sh?: FakeCommand;
}

const ETCD_CERTS = Object.fromEntries(
  ['ca.crt', 'healthcheck-client.crt', 'healthcheck-client.key'].map((name) => [`/etc/kubernetes/pki/etcd/${name}`, 'pem\n']),
);
const PEER = 'https://10.0.0.1:2380';

function manifestWith(...flags: readonly string[]): Record<string, string> {
  const words = ['etcd', '--advertise-client-urls=https://10.0.0.1:2379', `--initial-advertise-peer-urls=${PEER}`, ...flags];
  const spec = { containers: [{ command: words }], volumes: [{ name: 'etcd-data', hostPath: { path: '/data/etcd' } }] };
  return { ...ETCD_CERTS, '/etc/kubernetes/manifests/etcd.yaml': JSON.stringify({ kind: 'Pod', spec }) };
}

const WORKER = {
  '/var/run/containerd/containerd.sock': SOCKET,
  '/var/lib/kubelet/config.yaml': 'x\n',
  '/etc/kubernetes/kubelet.conf': 'x\n',
};

/** Runs reset on a worker. @returns the round trips before and after the change, and the commands after it */
async function resetWorker(dryRun: boolean) {
  const atChange = { roundTrips: 0, queries: 0 };
  const host = fakeHost({
    files: WORKER,
    commands: {
      ...COMMANDS,
      sh: (argv) => ({ exitCode: 0, stdout: /iptables/.test(argv[2] ?? '') ? '3 0 ' : /pod_processes/.test(argv[2] ?? '') ? '0\n' : '' }),
      'systemctl is-enabled kubelet': { exitCode: 0, stdout: 'disabled\n' },
    },
    units: { kubelet: fakeUnit({ activeState: 'active' }) },
    onPerformed: () => {
      atChange.roundTrips ||= host.roundTrips - 1;
      atChange.queries ||= host.queries.length;
    },
  });
  const reporter = recordingReporter();
  const context = { host, cluster: null, clock: fakeClock(), reporter };
  const shown = await runWorkflow(
    resetWorkflow,
    context,
    {
      reset: {},
      ...withRun({ dryRun }),
      connect: async () => fakeCluster(),
      connectEtcd: async () => fakeEtcd([]),
      opened: () => undefined,
    },
    { dryRun, skipPhases: [] },
  );
  const commandsOf = (from: number, to?: number): readonly string[] =>
    host.queries.slice(from, to).flatMap((query) => (query.kind === 'command' ? [query.argv.join(' ')] : []));
  return { host, reporter, shown, atChange, before: commandsOf(0, atChange.queries), after: commandsOf(atChange.queries) };
}

/** An etcd cluster with the member of the host and others. */
function etcdWith(...peers: readonly string[]): FakeEtcd {
  return fakeEtcd(
    peers.map((peerURL, i) => ({ name: `cp-${i + 1}`, id: String(i + 1), peerURLs: [peerURL], clientURLs: [], isLearner: false })),
  );
}

async function prepare(files: FakeHostOptions['files'] = {}, options: PrepareOptions = {}) {
  const { credentials } = options;
  const proof = (argv: readonly string[], stdin: string) =>
    isProof(argv) ? (credentials === undefined ? {} : provesNode(credentials, stdin)) : { exitCode: 127 };
  const host = fakeHost({ files, commands: { ...COMMANDS, sh: options.sh ?? proof } });
  const context = { host, cluster: options.cluster ?? null, clock: fakeClock(), reporter: recordingReporter() };
  return resetWorkflow.prepare(context, {
    reset: {},
    ...withRun({ ignorePreflightErrors: options.ignore ?? [] }),
    connect: async () => fakeCluster(),
    connectEtcd: async () => {
      if (options.etcd !== undefined) return options.etcd;
      throw options.issue ?? new AppError({ code: 'ETCD_UNREACHABLE', message: 'etcd does not answer' });
    },
    opened: () => undefined,
    ...(options.cluster === undefined
      ? {}
      : { deleteNode: { trust: testTrust(), ...(options.nodeName === undefined ? {} : { nodeName: options.nodeName }) } }),
  });
}

describe('reset of a worker', () => {
  it('inspects the host in one round trip before its first change: with sudo, each takes seconds on a slow host', async () => {
    const { atChange, before } = await resetWorker(false);
    expect(atChange.roundTrips).toBe(1);
    expect(before.filter((command) => command.startsWith('systemctl show')).map((command) => command.split(' ')[2])).toEqual([
      'kubeletadm-agent',
      'kubeletadm-controller',
      'kubelet',
    ]);
  });

  it('lists leftovers once, after the other phases; in the plan of a dry run', async () => {
    const { before, after, reporter } = await resetWorker(false);
    const isAboutRules = (command: string): boolean => command.includes('iptables');
    expect([before.filter(isAboutRules), after.filter(isAboutRules).length]).toEqual([[], 1]);
    const left = reporter.events.filter(({ code }) => code === 'LEFT_BEHIND').map(({ message }) => message);
    expect(left).toEqual([expect.stringContaining('3 chains and tables of iptables')]);
    const { shown, host } = await resetWorker(true);
    expect(shown.host.phases.at(-1)?.plan).toMatchObject({ noop: 'not removed: 3 chains and tables of iptables and nftables' });
    expect(host.performed).toEqual([]);
  });
});

describe('prepareReset', () => {
  it('uses the configured runtime of the kubelet when several exist', async () => {
    const instance = { '/var/lib/kubelet/instance-config.yaml': 'containerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n' };
    expect((await prepare({ ...SOCKETS, ...instance })).input.cleanup.criSocket).toBe('unix:///var/run/crio/crio.sock');
  });

  it.each([
    ['no runtime can be queried', { exitCode: 1 }, 'neither crictl nor ctr can list pods at unix:///var/run/containerd/containerd.sock'],
    ['the runtime lists none', { exitCode: 0, stdout: '' }, 'unix:///var/run/containerd/containerd.sock lists no pods'],
    ['the runtime lists pods', { exitCode: 0, stdout: 'pod1\n' }, null],
  ])('refuses to continue while processes of pods run and %s', async (_, pods, why) => {
    const sh = (argv: readonly string[]) => (argv[2]?.includes('pod_processes') === true ? { exitCode: 0, stdout: '3\n' } : pods);
    const { refusals, input } = await prepare({}, { sh });
    const message = `preflight: 3 pod processes are running on the host, but ${why}`;
    expect(refusals).toEqual(why === null ? [] : [expect.objectContaining({ code: 'ContainersRunning', message })]);
    expect(input.cleanup.podsMayStay).toBe(false);
    const reported = await prepare({}, { sh, ignore: ['containersrunning'] });
    expect([reported.refusals, reported.input.cleanup.podsMayStay]).toEqual([[], true]);
  });

  it('names the host when the runtime is ambiguous', async () => {
    await expect(prepare(SOCKETS)).rejects.toMatchObject({ exitCode: 2, problems: [{ code: 'CONFIG_SEVERAL_RUNTIMES', host: 'node1' }] });
  });

  it('refuses to leave a dead member in the etcd cluster, unless the error is ignored', async () => {
    const manifest = manifestWith('--initial-cluster-state=existing');
    expect((await prepare(manifest)).refusals).toMatchObject([{ code: 'EtcdMember', host: 'node1' }]);
    expect(await prepare(manifest, { ignore: ['EtcdMember'] })).toMatchObject({ refusals: [], warnings: [{ code: 'EtcdMember' }] });
    expect((await prepare()).refusals).toEqual([]);
    expect([await prepare(manifest), await prepare()].map(({ isExclusive }) => isExclusive)).toEqual([true, false]);
  });

  it('refuses an admin.conf with a credential plugin, and continues without the file when the error is ignored', async () => {
    const users = [{ name: 'u', user: { exec: { command: 'id' } } }];
    const config = { kind: 'Config', 'current-context': 'c', contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }], users };
    const text = JSON.stringify({ ...config, clusters: [{ name: 'k', cluster: { server: 'https://10.0.0.1:6443' } }] });
    const files = { ...manifestWith(), '/etc/kubernetes/admin.conf': text };
    const { refusals } = await prepare(files, { etcd: etcdWith(PEER) });
    expect(refusals).toMatchObject([
      {
        code: 'HostKubeconfig',
        host: 'node1',
        message: expect.stringMatching(/^preflight: \/etc\/kubernetes\/admin\.conf:1:\d+ users\[0\]\.user\.exec: /),
      },
    ]);
    const ignoring = await prepare(files, { etcd: etcdWith(PEER), ignore: ['HostKubeconfig'] });
    expect(ignoring).toMatchObject({ refusals: [], warnings: [{ code: 'HostKubeconfig' }], input: { removeMember: { peerURL: PEER } } });
  });

  it('continues when the member is the only known one and does not respond', async () => {
    const found = await prepare(manifestWith());
    expect(found).toMatchObject({ refusals: [], warnings: [{ code: 'EtcdMember' }] });
    expect(found.input.cleanup.etcdDataDir).toBe('/data/etcd');
  });

  it('continues like kubeadm with broken certificates, and reports them with the remaining steps', async () => {
    const message = 'cannot query etcd: https://10.0.0.1:2379: its certificate has expired';
    const issue = new AppError({
      code: 'ETCD_TLS_FAILED',
      message,
      hint: 'Renew the certificate on the host of this etcd member: kubeletadm certs renew etcd-server',
    });
    const { refusals, warnings, input } = await prepare(manifestWith('--initial-cluster-state=existing'), { issue });
    const why = `cannot remove this host's member from the etcd cluster: ${message}`;
    const hint = 'before the reset, or remove the member on another control plane with etcdctl member remove';
    expect(refusals).toEqual([]);
    expect(warnings).toEqual([
      {
        code: 'EtcdMember',
        message: `${why}. Renew the certificate on the host of this etcd member: kubeletadm certs renew etcd-server ${hint}`,
      },
    ]);
    const { plan } = await removeEtcdMember.inspect(
      { host: fakeHost(), cluster: null, clock: fakeClock(), reporter: recordingReporter() },
      input.removeMember,
    );
    expect(plan).toEqual({ changes: [], noop: message });
    expect(input.cleanup.etcdDataDir).toBe('/data/etcd');
  });

  it.each([
    ['one of several members', [PEER, 'https://10.0.0.2:2380'], [{ kind: 'remove-etcd-member', member: 'cp-1' }]],
    ['the last member', [PEER], []],
    ['a member that was removed before', ['https://10.0.0.2:2380'], []],
  ] as const)('plans the removal of %s from the etcd cluster, if possible', async (_, peers, changes) => {
    const etcd = etcdWith(...peers);
    const { input, refusals } = await prepare(manifestWith('--initial-cluster-state=existing'), { etcd });
    expect(refusals).toEqual([]);
    expect(input.removeMember.peerURL).toBe(PEER);
    const context = { host: fakeHost(), cluster: null, etcd, clock: fakeClock(), reporter: recordingReporter() };
    expect((await removeEtcdMember.inspect(context, input.removeMember)).plan.changes).toMatchObject(changes);
  });

  describe('with --delete-node', () => {
    const node = (name: string, machineID: string) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      status: { nodeInfo: { machineID } },
    });
    const flags = { '/var/lib/kubelet/kubeadm-flags.env': 'KUBELET_KUBEADM_ARGS="--hostname-override=w1"\n' };
    const settings = {
      '/var/lib/kubelet/kubeletadm-node.yaml': 'kind: NodeSettings\nnodeRegistration:\n  criSocket: x\n  name: w1\noverlays: []\n',
    };
    const ids = (id: string) => ({ '/etc/machine-id': `${id}\n` });

    it('deletes the Node proven by the certificate of the host', async () => {
      const cluster = fakeCluster({ objects: [node('w1', 'aaaa')] });
      const { input, refusals, node: claim } = await prepare(ids('aaaa'), { cluster, credentials: await kubeletCredentials('w1') });
      expect([input.deleteNode.nodeName, refusals, claim?.isProven]).toEqual(['w1', [], true]);
      expect(input.agentRights).toEqual({ nodeName: 'w1', namespace: 'kubeletadm-system', isOptional: true });
    });

    it('deletes the Node with the configured name', async () => {
      const cluster = fakeCluster({ objects: [node('w9', 'aaaa')] });
      const { input, refusals, node: claim } = await prepare(ids('aaaa'), { cluster, nodeName: 'w9' });
      expect([input.deleteNode.nodeName, refusals, claim?.isProven]).toEqual(['w9', [], false]);
    });

    it.each([
      ['the flag of the kubelet', flags],
      ["the host's settings", settings],
    ] as const)('does not trust %s, and refuses to delete the Node named by it', async (_, files) => {
      const cluster = fakeCluster({ objects: [node('w1', 'aaaa')] });
      const { input, refusals } = await prepare({ ...files, ...ids('aaaa') }, { cluster, ignore: ['all'] });
      expect(input.deleteNode.nodeName).toBeNull();
      expect(refusals).toMatchObject([{ code: 'NODE_NOT_PROVEN', host: 'node1', hint: 'Name its Node with --node-name' }]);
    });

    it('deletes nothing on a host without a certificate when no Node has its name', async () => {
      const { input, refusals, warnings } = await prepare(flags, { cluster: fakeCluster() });
      expect([input.deleteNode.nodeName, refusals]).toEqual([null, []]);
      expect(warnings).toMatchObject([{ code: 'NODE_NOT_DELETED', message: expect.stringContaining('--node-name') }]);
    });

    it('refuses to delete the Node of another host, even when all checks are ignored', async () => {
      const cluster = fakeCluster({ objects: [node('w1', 'aaaa')] });
      const proven = await prepare(ids('bbbb'), { cluster, credentials: await kubeletCredentials('w1'), ignore: ['all'] });
      const named = await prepare(ids('bbbb'), { cluster, nodeName: 'w1', ignore: ['all'] });
      for (const { refusals } of [proven, named])
        expect(refusals).toMatchObject([{ code: 'NodeOfAnotherHost', message: expect.stringContaining('its machine-id is aaaa') }]);
    });
  });
});
