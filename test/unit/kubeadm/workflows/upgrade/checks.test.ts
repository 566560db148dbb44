import { describe, expect, it } from 'vitest';
import type { ClusterContext } from '../../../../../src/host/phase.ts';
import { DEFAULT_RUN } from '../../../../../src/host/run-settings.ts';
import { clusterRefused } from '../../../../../src/kube/cluster-problems.ts';
import type { KubeObject } from '../../../../../src/kube/object.ts';
import { checkUpgrade, type UpgradeChecks } from '../../../../../src/kubeadm/workflows/upgrade/checks.ts';
import { type FakeClock, fakeClock } from '../../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../../support/fake-cluster.ts';
import { fakeHost } from '../../../../support/fake-host.ts';
import { recordingReporter } from '../../../../support/recording-reporter.ts';
import { withRun } from '../../../../support/with-run.ts';

const MANIFESTS = Object.fromEntries(
  ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((name) => [`/etc/kubernetes/manifests/${name}.yaml`, 'kind: Pod\n']),
);
const CHECKS: UpgradeChecks = {
  cluster: { kubernetesVersion: 'v1.35.6' },
  target: 'v1.36.2',
  versions: { allowExperimental: false, allowReleaseCandidates: false, force: false },
  // No Job.
  ...withRun({ dryRun: true }),
};

function node(name: string, { ready = true, controlPlane = true, unschedulable = false, version = 'v1.35.6' } = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: controlPlane ? { 'node-role.kubernetes.io/control-plane': '' } : {} },
    spec: { unschedulable },
    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'Unknown' }], nodeInfo: { kubeletVersion: version } },
  };
}

function coredns(corefile: string, images: readonly string[]): readonly KubeObject[] {
  const configMap = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'kube-system', name: 'coredns' },
    data: { Corefile: corefile },
  };
  return [
    configMap,
    ...images.map((image, i) => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { namespace: 'kube-system', name: `coredns${i}`, labels: { 'k8s-app': 'kube-dns' } },
      spec: { template: { spec: { containers: [{ name: 'coredns', image }] } } },
    })),
  ];
}

interface World {
  readonly cluster: FakeCluster;
  readonly clock: FakeClock;
  readonly messages: () => readonly string[];
  readonly check: (checks?: Partial<UpgradeChecks>) => ReturnType<typeof checkUpgrade>;
}

function world(objects: readonly KubeObject[] = [node('cp1')], files: Readonly<Record<string, string>> = MANIFESTS): World {
  const clock = fakeClock();
  const cluster = fakeCluster({ objects, gitVersion: 'v1.35.6', now: () => clock.now() });
  const reporter = recordingReporter();
  const context: ClusterContext = { host: fakeHost({ name: 'cp1', files }), cluster, clock, reporter };
  return {
    cluster,
    clock,
    messages: () => reporter.events.map(({ message }) => message),
    check: (checks = {}) => checkUpgrade(context, { ...CHECKS, ...checks }),
  };
}

const codesOf = (list: readonly { readonly code: string }[]): readonly string[] => list.map(({ code }) => code);

describe('checkUpgrade', () => {
  it('finds nothing in a healthy cluster, and creates nothing in a dry run', async () => {
    const { cluster, check } = world([node('cp1'), node('worker1', { controlPlane: false, ready: false })]);
    expect(await check()).toMatchObject({ refusals: [], warnings: [] });
    expect(cluster.calls.filter((call) => !/^(?:get|list|read)\b/.test(call))).toEqual([]);
  });

  it('names control planes that are NotReady, and manifests that do not exist', async () => {
    const { check } = world([node('cp1'), node('cp2', { ready: false })], {});
    const { refusals } = await check();
    expect(codesOf(refusals)).toEqual(['ControlPlaneNodesReady', 'StaticPodManifest']);
    expect(refusals[0]?.message).toContain('NotReady: cp2');
    expect(refusals[1]?.message).toContain('/etc/kubernetes/manifests/kube-scheduler.yaml');
  });

  it('warns about ignored checks', async () => {
    const { check } = world([node('cp1', { ready: false })], {});
    const { refusals, warnings } = await check(
      withRun({ dryRun: true, ignorePreflightErrors: ['staticpodmanifest', 'ControlPlaneNodesReady'] }),
    );
    expect(refusals).toEqual([]);
    expect(codesOf(warnings)).toEqual(['ControlPlaneNodesReady', 'StaticPodManifest']);
  });

  it('applies the version rules with the version of the API server', async () => {
    const { check } = world([node('cp1', { version: 'v1.32.0' })]);
    expect(codesOf((await check()).refusals)).toEqual(['UPGRADE_KUBELETS_TOO_OLD']);
    expect(codesOf((await check({ target: 'v1.37.0' })).refusals)).toContain('UPGRADE_SKIPS_MINOR');
    const forced = await check({ versions: { allowExperimental: false, allowReleaseCandidates: false, force: true } });
    expect([codesOf(forced.refusals), codesOf(forced.warnings)]).toEqual([[], ['UPGRADE_KUBELETS_TOO_OLD']]);
    expect(await check({ versions: null })).toMatchObject({ refusals: [], warnings: [] });
    expect(await check({ target: null })).toMatchObject({ refusals: [], warnings: [] });
  });

  it.each<[string, string, readonly string[], readonly string[]]>([
    ['an unknown plugin', '.:53 {\n  route53 a\n}\n', ['registry.k8s.io/coredns/coredns:v1.13.1'], ['CoreDNSUnsupportedPlugins']],
    ['an unknown release', '.:53 {\n  log\n}\n', ['example.org:5000/coredns'], ['CoreDNSMigration']],
    ['no Deployment', '.:53 {\n  log\n}\n', [], ['CoreDNSMigration']],
    ['two Deployments', '.:53 {\n  log\n}\n', ['a:v1.13.1', 'a:v1.13.1'], ['CoreDNSMigration']],
    ['the new release', '.:53 {\n  route53 a\n}\n', ['registry.k8s.io/coredns/coredns:v1.14.2@sha256:0123'], []],
  ])('checks CoreDNS: %s', async (_, corefile, images, codes) => {
    const { check } = world([node('cp1'), ...coredns(corefile, images)]);
    expect(codesOf((await check()).refusals)).toEqual(codes);
  });

  it('compares CoreDNS with a pinned image', async () => {
    const { check } = world([node('cp1'), ...coredns('.:53 {\n  route53 a\n}\n', ['a:v1.13.1'])]);
    expect((await check({ cluster: { dns: { imageTag: 'v1.13.1' } } })).refusals).toEqual([]);
  });
});

describe('checkUpgrade: CreateJob', () => {
  const nameOf = ({ cluster }: World): string => /create Job kube-system\/(\S+)/.exec(cluster.calls.join('\n'))?.[1] ?? '';
  const setCondition = async (w: World, type: string, message?: string): Promise<void> => {
    const ref = { apiVersion: 'batch/v1', kind: 'Job', namespace: 'kube-system', name: nameOf(w) };
    await w.cluster.patch(
      ref,
      'merge',
      { status: { conditions: [{ type, status: 'True', ...(message && { message }) }] } },
      { subresource: 'status' },
    );
  };

  it('creates a Job with the pause image, and waits until it completes', async () => {
    const w = world();
    w.clock.at(3_000, () => void setCondition(w, 'Complete'));
    expect(await w.check({ run: DEFAULT_RUN, cluster: { imageRepository: 'registry.test' } })).toMatchObject({
      refusals: [],
      warnings: [],
    });
    const job = await w.cluster.get({ apiVersion: 'batch/v1', kind: 'Job', namespace: 'kube-system', name: nameOf(w) });
    expect(nameOf(w)).toMatch(/^upgrade-health-check-\d+$/);
    expect(job?.spec).toMatchObject({
      backoffLimit: 0,
      ttlSecondsAfterFinished: 65,
      activeDeadlineSeconds: 65,
      template: { spec: { containers: [{ image: 'registry.test/pause:3.10.2', args: ['-v'] }] } },
    });
  });

  it('reports why the Job did not complete', async () => {
    const w = world();
    w.clock.at(3_000, () => void setCondition(w, 'Failed', 'deadline exceeded'));
    const { refusals } = await w.check({ run: DEFAULT_RUN });
    expect(refusals[0]?.message).toMatch(
      /preflight: Job kube-system\/upgrade-health-check-\d+ did not complete within 60s: deadline exceeded/,
    );
    expect(w.clock.elapsedMs).toBe(60_000);
    expect(w.messages()[0]).toContain('waiting for Job kube-system/upgrade-health-check-');
  });

  it('repeats the creation, and reports why it failed in the end', async () => {
    const once = world();
    once.cluster.failNext('create Job', clusterRefused('create Job', { httpStatus: 500, message: 'overloaded' }));
    once.clock.at(3_000, () => void setCondition(once, 'Complete'));
    expect((await once.check({ run: DEFAULT_RUN })).refusals).toEqual([]);

    const always = world();
    const fail = (): void =>
      always.cluster.failNext('create Job', clusterRefused('create Job', { httpStatus: 500, message: 'overloaded' }));
    const create = always.cluster.create.bind(always.cluster);
    Object.assign(always.cluster, {
      create: (object: KubeObject) => {
        fail();
        return create(object);
      },
    });
    const { refusals } = await always.check({ run: DEFAULT_RUN });
    expect(codesOf(refusals)).toEqual(['CreateJob']);
    expect(refusals[0]?.message).toContain('was not created');
  });

  it('is skipped when no Node is schedulable', async () => {
    const w = world([node('cp1', { unschedulable: true })]);
    const { refusals, warnings } = await w.check({ run: DEFAULT_RUN });
    expect([refusals, codesOf(warnings)]).toEqual([[], ['CreateJob']]);
    expect(nameOf(w)).toBe('');
  });
});
