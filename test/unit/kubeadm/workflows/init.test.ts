import { beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '../../../../src/base/errors.ts';
import { Secret } from '../../../../src/base/text/secret.ts';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import { DEFAULT_RUN } from '../../../../src/host/run-settings.ts';
import { planWorkflow } from '../../../../src/host/run-workflow.ts';
import { NodeGroups } from '../../../../src/kubeadm/render/node-groups.ts';
import { type InitOptions, initWorkflow } from '../../../../src/kubeadm/workflows/init.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { loadTemplates } from '../../../../src/template-files.ts';
import type { CertificateIssuer } from '../../../../src/x509/certificate-issuer.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeEtcd } from '../../../support/fake-etcd.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { fakeUnit, runs } from '../../../support/fake-units.ts';
import { hostCommands } from '../../../support/host-to-join.ts';
import { issuerOfOneKey } from '../../../support/issuer-of-one-key.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { runWorkflow } from '../../../support/run-workflow.ts';
import { THOROUGH } from '../../../support/thorough.ts';

const ADMINS = { name: 'kubernetes-admin', groups: ['kubeadm:cluster-admins', 'system:authenticated'] };
const LISTENING = '   0: 00000000:192B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n';
const PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const regular = (content: string) => ({ type: 'file', mode: 0o644, owner: 'root:root', content }) as const;

interface World {
  readonly host: FakeHost;
  /** A client with all rights. */
  readonly cluster: FakeCluster;
  /** A client with the rights of admin.conf. */
  readonly admin: FakeCluster;
  readonly shown: string[];
  /** Number of programs run on the host before the first start of its kubelet. */
  readonly programsBefore: () => number | null;
  readonly reporter: ReturnType<typeof recordingReporter>;
  run(): ReturnType<typeof runWorkflow>;
  /** Creates a plan; `apply` applies that plan. */
  plan(): Promise<{ readonly apply: () => Promise<unknown> }>;
}

let templates: Awaited<ReturnType<typeof loadTemplates>>;
let catalogue: Awaited<ReturnType<typeof loadCatalogue>>;
beforeAll(async () => {
  [templates, catalogue] = await Promise.all([loadTemplates(), loadCatalogue()]);
});

/** Upper bounds for a complete `init`, including the health checks while a component starts. */
const MOST_QUERIES = 245;
const MOST_PROGRAMS = 25;

/**
 * A bare host whose kubelet starts the static pods in /etc/kubernetes/manifests, including an API server.
 * @param options.programMs time the host takes to answer the queries of one program
 * @param options.issuer generates keys and certificates
 */
function world({
  programMs = 0,
  issuer = issuerOfOneKey(),
  etcdVersion,
}: {
  readonly programMs?: number;
  readonly issuer?: CertificateIssuer;
  /** External etcd of this version; absent: local etcd. */
  readonly etcdVersion?: string;
} = {}): World {
  const clock = fakeClock();
  const cluster = fakeCluster({ now: clock.now });
  const admin = fakeCluster({ sharedWith: cluster, user: ADMINS, now: clock.now });
  const kubelet = fakeUnit({ activeState: 'inactive' });
  const host: FakeHost = fakeHost({
    name: 'cp-1',
    onAsk: () => clock.advance(programMs),
    units: { kubelet },
    files: {
      '/var/run/containerd/containerd.sock': { type: 'socket', mode: 0o660, owner: 'root:root' },
      '/usr/lib/systemd/system/kubelet.service': '[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n',
      '/proc/net/tcp': '',
      '/proc/meminfo': 'MemTotal:        8000000 kB\n',
    },
    commands: { ...hostCommands('cp-1'), date: () => ({ stdout: `${Math.floor(clock.now().getTime() / 1000)}\n` }) },
    http: () => (kubelet.state.activeState === 'active' ? { status: 200, body: 'ok' } : { error: 'connection refused' }),
  });
  let programs: number | null = null;
  kubelet.onStart = (unit) => {
    programs ??= host.roundTrips;
    runs(unit);
    if (!host.files.has('/etc/kubernetes/manifests/kube-apiserver.yaml')) return;
    host.files.set('/proc/net/tcp', regular(LISTENING));
    host.files.set(PEM, regular('pem\n'));
    void cluster
      .create({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'cp-1', labels: { 'kubernetes.io/hostname': 'cp-1' } } })
      .catch(() => undefined);
  };
  const reporter = recordingReporter();
  const context: PhaseContext = { host, cluster: null, clock, reporter };
  const shown: string[] = [];
  let tokens = 0;
  const optionsNow = (): InitOptions => {
    return {
      templates,
      catalogue,
      groups: new NodeGroups(),
      nodeRegistration: {},
      overlays: [],
      declared: [],
      settings: [],
      patches: [],
      run: DEFAULT_RUN,
      skipPreflight: false,
      staged: false,
      kubeletHealthCheckMs: 10_000,
      localAPIEndpoint: { advertiseAddress: '10.0.0.1' },
      timeouts: { controlPlaneComponentHealthCheck: '10s' },
      staticPodPatches: [],
      kubeProxy: null,
      proxyEnvironment: [],
      issuer,
      localDefaultRoute: {},
      cluster: {
        ...{ kubernetesVersion: 'v1.36.2', encryptionAlgorithm: 'ECDSA-P256', controlPlaneEndpoint: 'api.example:6443' },
        ...(etcdVersion === undefined ? {} : { etcd: { external: { endpoints: ['http://192.0.2.9:2379'] } } }),
      },
      kubelet: null,
      connect: async ({ kubeconfig }) => (kubeconfig.file.endsWith('super-admin.conf') ? cluster : admin),
      connectEtcd: async () => ({ ...fakeEtcd([]), version: async () => etcdVersion ?? '' }),
      given: null,
      releaseOf: async () => null,
      forceUpload: false,
      bootstrapTokens: [],
      freshTokens: [new Secret(`abcde${tokens++}.0123456789abcdef`)],
      makesTokens: true,
      withholdToken: false,
      showJoinCommand: (command) => void shown.push(command.reveal()),
      uploadCerts: false,
      certificateKey: null,
      certsToken: new Secret('certs0.0123456789abcdef'),
      showCertificateKey: () => undefined,
      withholdCertificateKey: false,
      opened: () => undefined,
    };
  };
  const options = { dryRun: false, skipPhases: [] };
  const run = () => runWorkflow(initWorkflow, context, optionsNow(), options);
  const plan = async () => {
    const planned = await planWorkflow(initWorkflow, context, optionsNow(), options);
    return { apply: () => planned.apply(context) };
  };
  return { host, cluster, admin, shown, plan, programsBefore: () => programs, reporter, run };
}

/** All files of the host and objects of the cluster after a run, without contents and token ids. */
function leftBy({ host, cluster }: World): readonly string[] {
  const files = [...host.files].map(([path, { type, mode, owner }]) => `${type} ${path} ${mode.toString(8)} ${owner}`);
  const objects = (cluster.store.since(0) ?? []).map(({ type, resource, object: { metadata } }) => {
    const name = metadata.name.replace(/^(bootstrap-token-).*/, '$1');
    return `${type === 'DELETED' ? 'no ' : ''}${resource.kind} ${metadata.namespace ?? ''}/${name}`;
  });
  return [...new Set([...files, ...objects])].sort();
}

describe('init on a bare host', () => {
  it('creates a control plane, and plans no changes the second time', async () => {
    const made = world();
    await made.run();
    expect(made.shown.map((command) => command.includes('--control-plane'))).toEqual([true, false]);
    expect(made.host.text('/etc/kubernetes/kubelet.conf')).toContain(`client-certificate: ${PEM}`);
    const again = await made.run();
    expect(again.host.phases.flatMap(({ plan }) => plan.changes)).toEqual([]);
    expect(made.shown[2]).toBe(made.shown[0]);
  });

  it('starts the kubelet after few programs on the host: with sudo, each takes seconds on a slow host', async () => {
    const { run, programsBefore } = world();
    await run();
    expect(programsBefore()).toBeLessThanOrEqual(10);
  });

  it('sends few fact queries and programs to a slow host', async () => {
    const { host, run } = world({ programMs: 3_000 });
    await run();
    expect(host.queries.length).toBeLessThanOrEqual(MOST_QUERIES);
    expect(host.roundTrips).toBeLessThanOrEqual(MOST_PROGRAMS);
  });

  it('generates keys while the kubelet checks its configuration', async () => {
    let isAsked = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      isAsked = resolve;
    });
    const one = issuerOfOneKey();
    const issuer: CertificateIssuer = { ...one, generateKey: (algorithm) => asked.then(() => one.generateKey(algorithm)) };
    const { host, run } = world({ issuer });
    const { query } = host;
    host.query = (queries, options) => {
      if (Object.values(queries).some((each) => each.kind === 'command' && each.stdin !== undefined)) isAsked();
      return query(queries, options);
    };
    await run();
    expect(host.text('/etc/kubernetes/pki/apiserver.key')).toContain('PRIVATE KEY');
  });

  it('reports changes on the host between the plan and its application', async () => {
    const { host, plan, reporter } = world({ programMs: 3_000 });
    const { apply } = await plan();
    host.files.set('/var/lib/kubelet/config.yaml', regular('maxPods: 7\n'));
    await apply();
    const changed = reporter.events.filter(({ code }) => code === 'PLAN_CHANGED');
    expect(changed.map(({ phase }) => phase)).toEqual(['kubelet-start']);
    expect(host.text('/var/lib/kubelet/config.yaml')).toContain('kind: KubeletConfiguration');
  });

  it('writes configuration before the kubelet starts, and keys before their users', async () => {
    const { run, host } = world();
    await run();
    const order = host.performed.map((operation) =>
      'path' in operation ? operation.path : 'argv' in operation ? operation.argv.join(' ') : '',
    );
    const at = (part: string): number => order.findIndex((each) => each.includes(part));
    const steps = [
      'pki/ca.key',
      'pki/apiserver.key',
      'admin.conf',
      'manifests/etcd.yaml',
      'manifests/kube-scheduler.yaml',
      'kubelet/config.yaml',
      'systemctl restart kubelet',
    ];
    expect(steps.map(at)).toEqual(steps.map(at).toSorted((a, b) => a - b));
    expect(Math.min(...steps.map(at))).toBeGreaterThanOrEqual(0);
  });

  it('refuses an external etcd that is too old, before the first change', async () => {
    const { host, run } = world({ etcdVersion: '3.4.23' });
    await expect(run()).rejects.toMatchObject({ code: 'ExternalEtcdVersion', exitCode: 3 });
    expect(host.performed).toEqual([]);
    await world({ etcdVersion: '3.5.24' }).run();
  });

  it('reports certificate errors when the login fails because of them', async () => {
    const { host, admin, cluster, run } = world();
    await run();
    const lockOut = () => {
      const refuse = () => new AppError({ code: 'CLUSTER_UNAUTHORIZED', message: 'Unauthorized' });
      for (const each of [admin, cluster]) for (let n = 0; n < 50; n++) each.failNext('read the version', refuse());
    };
    lockOut();
    await expect(run()).rejects.toMatchObject({ code: 'CLUSTER_UNAUTHORIZED' });
    const other = world();
    await other.run();
    host.files.set('/etc/kubernetes/pki/ca.crt', other.host.files.get('/etc/kubernetes/pki/ca.crt') as FileFact);
    lockOut();
    const refused = await run().catch((error: AppError) => error);
    expect(refused).toMatchObject({ exitCode: 3 });
    expect((refused as AppError).problems.map(({ code }) => code)).toContain('PKI_AUTHORITY_REPLACED');
  });

  it('reaches the same state after any interruption', async () => {
    const whole = world();
    await whole.run();
    const [expected, count] = [leftBy(whole), whole.host.performed.length];
    expect(count).toBeGreaterThan(35);
    // npm test interrupts a sample of the changes.
    for (let n = 0; n < count; n += THOROUGH ? 1 : 7) {
      const broken = world();
      broken.host.loseConnectionAfter(n);
      await expect(broken.run(), `after ${n}`).rejects.toMatchObject({ code: 'HOST_CONNECTION_LOST' });
      await broken.run();
      expect(leftBy(broken), `after ${n}`).toEqual(expected);
      expect(broken.reporter.codes(), `after ${n}`).not.toContain('PLAN_CHANGED');
    }
  });

  it.each([
    'create ConfigMap kube-system/kubeadm-config',
    'patch Node cp-1',
    'create ClusterRoleBinding kubeadm:kubelet-bootstrap',
    'create Deployment kube-system/coredns',
  ])('reaches the same state when the API server fails to %s', async (call) => {
    const [whole, broken] = [world(), world()];
    await whole.run();
    broken.admin.failNext(call, new AppError({ code: 'CLUSTER_UNREACHABLE', message: 'gone' }));
    await expect(broken.run()).rejects.toThrow('gone');
    await broken.run();
    expect(leftBy(broken)).toEqual(leftBy(whole));
  });
});
