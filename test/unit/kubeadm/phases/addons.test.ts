import { describe, expect, it } from 'vitest';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { Phase, PhaseContext } from '../../../../src/host/phase.ts';
import type { PhasePlan } from '../../../../src/host/plan/change.ts';
import type { KubeObject, ObjectRef } from '../../../../src/kube/object.ts';
import { corednsObjects } from '../../../../src/kubeadm/addons/coredns.ts';
import { kubeProxyObjects } from '../../../../src/kubeadm/addons/kube-proxy.ts';
import { type AddonCorednsInput, type AddonKubeProxyInput, addonCoredns, addonKubeProxy } from '../../../../src/kubeadm/phases/addons.ts';
import { controlPlaneNode } from '../../../support/control-plane-node.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const CLUSTER = `
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: 192.0.2.10}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.2
`;

const coredns = (cluster = ''): AddonCorednsInput => ({
  objects: corednsObjects(controlPlaneNode(CLUSTER + cluster)),
  forceUpload: false,
});
const kubeProxy = (cluster = ''): AddonKubeProxyInput => ({
  ...kubeProxyObjects(controlPlaneNode(CLUSTER + cluster)),
  forceUpload: false,
});

function contextOf(cluster: FakeCluster | null): PhaseContext {
  return { host: fakeHost(), cluster, clock: fakeClock(), reporter: recordingReporter() };
}

async function plan<Input>(phase: Phase<Input>, cluster: FakeCluster | null, input: Input): Promise<PhasePlan> {
  const [only] = await planPhases([phase], contextOf(cluster), input);
  if (only === undefined) throw new Error('no plan');
  return only.plan;
}

async function run<Input>(phase: Phase<Input>, cluster: FakeCluster, input: Input): Promise<void> {
  await applyPhases([phase], contextOf(cluster), input, []);
}

const DEPLOYMENT: ObjectRef = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'kube-system', name: 'coredns' };
const DAEMON_SET: ObjectRef = { ...DEPLOYMENT, kind: 'DaemonSet', name: 'kube-proxy' };
const configMap = (name: string): ObjectRef => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name });

/** Changes an object like another client of the cluster. */
async function edit(cluster: FakeCluster, ref: ObjectRef, change: (object: KubeObject) => object): Promise<void> {
  const found = (await cluster.get(ref)) as KubeObject;
  await cluster.update({ ...found, ...change(found) });
}

describe.each([
  [
    'addon/coredns',
    addonCoredns,
    coredns,
    'CoreDNS is unchanged',
    ['ConfigMap', 'ClusterRole', 'ClusterRoleBinding', 'ServiceAccount', 'Deployment', 'Service'],
  ],
  [
    'addon/kube-proxy',
    addonKubeProxy,
    kubeProxy,
    'kube-proxy is unchanged',
    ['ConfigMap', 'DaemonSet', 'ServiceAccount', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  ],
] as const)('%s', (_, phase, inputOf, current, kinds) => {
  const any = phase as Phase<unknown>;

  it('creates its objects, and plans nothing the second time', async () => {
    const cluster = fakeCluster();
    const first = await plan(any, cluster, inputOf());
    expect(first.changes.map((change) => (change.kind === 'create-object' ? change.object.kind : change.kind))).toEqual(kinds);
    await run(any, cluster, inputOf());
    expect(await plan(any, cluster, inputOf())).toEqual({ changes: [], warnings: [], noop: current });
  });

  it('is planned for a cluster that does not exist yet', async () => {
    expect((await plan(any, null, inputOf())).changes).toHaveLength(kinds.length);
  });

  it('is skipped when the configuration disables it', async () => {
    expect((await plan(any, fakeCluster(), { ...inputOf(), objects: null })).noop).toMatch(/^skipped: (?:dns|proxy)\.disabled is set$/);
  });

  it('updates existing objects to another version', async () => {
    const cluster = fakeCluster();
    await run(any, cluster, inputOf());
    const other = 'imageRepository: registry.example.org\n';
    const { changes } = await plan(any, cluster, inputOf(other));
    expect(changes.map(({ reason }) => reason)).toEqual(['its spec.template.spec.containers[0].image differs']);
    await run(any, cluster, inputOf(other));
    expect((await plan(any, cluster, inputOf(other))).noop).toBe(current);
  });
});

describe('addon/coredns', () => {
  const COREFILE = '.:53 {\n    forward . 10.0.0.1\n}\n';

  it('keeps an edited Corefile, and shows the difference', async () => {
    const cluster = fakeCluster();
    await run(addonCoredns, cluster, coredns());
    await edit(cluster, configMap('coredns'), () => ({ data: { Corefile: COREFILE } }));
    const kept = await plan(addonCoredns, cluster, coredns());
    expect(kept.changes).toEqual([]);
    expect(kept.warnings?.[0]?.code).toBe('COREFILE_KEPT');
    expect(kept.warnings?.[0]?.message).toContain('\n-    forward . 10.0.0.1\n');
    await run(addonCoredns, cluster, { ...coredns(), forceUpload: true });
    expect((await plan(addonCoredns, cluster, coredns())).noop).toBe('CoreDNS is unchanged');
  });

  it('generates the Corefile again for another domain', async () => {
    const cluster = fakeCluster();
    await run(addonCoredns, cluster, coredns());
    const { changes, warnings } = await plan(addonCoredns, cluster, coredns('networking: {dnsDomain: lab.local}\n'));
    expect(warnings).toEqual([]);
    expect(changes.map(({ kind }) => kind)).toEqual(['update-object']);
  });

  it('keeps the number of replicas', async () => {
    const cluster = fakeCluster();
    await run(addonCoredns, cluster, coredns());
    await edit(cluster, DEPLOYMENT, ({ spec }) => ({ spec: { ...(spec as object), replicas: 5 } }));
    expect((await plan(addonCoredns, cluster, coredns())).noop).toBe('CoreDNS is unchanged');
  });

  it('keeps the immutable clusterIP of the Service, and warns', async () => {
    const cluster = fakeCluster();
    await run(addonCoredns, cluster, coredns());
    const moved = await plan(addonCoredns, cluster, coredns('networking: {serviceSubnet: 10.50.0.0/16}\n'));
    expect(moved).toMatchObject({ changes: [], warnings: [{ code: 'DNS_ADDRESS_KEPT' }] });
    expect(moved.warnings?.[0]?.message).toContain('its clusterIP is 10.96.0.10 instead of 10.50.0.10');
  });
});

describe('addon/kube-proxy', () => {
  it('keeps an edited configuration', async () => {
    const cluster = fakeCluster();
    await run(addonKubeProxy, cluster, kubeProxy());
    await edit(cluster, configMap('kube-proxy'), ({ data }) => ({ data: { ...(data as object), 'config.conf': 'mode: ipvs' } }));
    const kept = await plan(addonKubeProxy, cluster, kubeProxy());
    expect(kept).toMatchObject({ changes: [], warnings: [{ code: 'KUBE_PROXY_CONFIG_KEPT' }] });
    expect(kept.warnings?.[0]?.message).toContain('kube-system/kube-proxy config.conf in the cluster');
  });

  it('keeps fields that others set in its objects', async () => {
    const cluster = fakeCluster();
    await run(addonKubeProxy, cluster, kubeProxy());
    await edit(cluster, DAEMON_SET, (object) => ({ metadata: { ...object.metadata, annotations: { custom: 'x' } } }));
    await run(addonKubeProxy, cluster, kubeProxy('imageRepository: registry.example.org\n'));
    expect((await cluster.get(DAEMON_SET))?.metadata.annotations).toEqual({ custom: 'x' });
  });
});
