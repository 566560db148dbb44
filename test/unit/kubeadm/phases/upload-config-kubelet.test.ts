import { describe, expect, it } from 'vitest';
import { applyPhases, planPhases } from '../../../../src/host/apply-phases.ts';
import type { PhaseContext } from '../../../../src/host/phase.ts';
import type { KubeObject, ObjectRef } from '../../../../src/kube/object.ts';
import { isGenerated, kubeletConfigMap, kubeletConfigRbac } from '../../../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { type UploadKubeletConfigInput, uploadConfigKubelet } from '../../../../src/kubeadm/phases/upload-config.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type FakeCluster, fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

const YAML = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 5\n';
const OTHER = YAML.replace('5', '6');
const INPUT: UploadKubeletConfigInput = {
  controlPlaneMinor: 36,
  yaml: YAML,
  generated: true,
  forceUpload: false,
};
const REF: ObjectRef = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system', name: 'kubelet-config' };
const RBAC = kubeletConfigRbac('kubelet-config');
const GENERATED = kubeletConfigMap('kubelet-config', YAML, true);

function contextOf(cluster: FakeCluster | null): PhaseContext {
  return { host: fakeHost(), cluster, clock: fakeClock(), reporter: recordingReporter() };
}

async function plan(cluster: FakeCluster | null, change: Partial<UploadKubeletConfigInput> = {}) {
  const [only] = await planPhases([uploadConfigKubelet], contextOf(cluster), { ...INPUT, ...change });
  if (only === undefined) throw new Error('no plan');
  return only.plan;
}

async function run(cluster: FakeCluster, change: Partial<UploadKubeletConfigInput> = {}): Promise<KubeObject> {
  const input = { ...INPUT, ...change };
  const context = contextOf(cluster);
  await applyPhases([uploadConfigKubelet], context, input, await planPhases([uploadConfigKubelet], context, input));
  return (await cluster.get(REF)) as KubeObject;
}

describe('upload-config/kubelet', () => {
  it('creates the ConfigMap, Role and RoleBinding in an empty cluster, and plans nothing the second time', async () => {
    const cluster = fakeCluster();
    const { changes } = await plan(cluster);
    expect(changes.map(({ kind, reason }) => [kind, reason])).toEqual(Array(3).fill(['create-object', 'does not exist']));
    const uploaded = await run(cluster);
    expect(uploaded.data).toEqual({ kubelet: YAML });
    expect(isGenerated(uploaded)).toBe(true);
    expect(await plan(cluster)).toEqual({
      changes: [],
      warnings: [],
      noop: 'ConfigMap kube-system/kubelet-config and its RBAC rules are unchanged',
    });
  });

  it('adds no hash annotation to a configuration of the user', async () => {
    const uploaded = await run(fakeCluster(), { generated: false });
    expect(uploaded.metadata.annotations).toBeUndefined();
  });

  it.each([
    [23, 'kubelet-config-1.23'],
    [24, 'kubelet-config'],
  ])('uses the names of 1.%i', async (controlPlaneMinor, name) => {
    const { changes } = await plan(fakeCluster(), { controlPlaneMinor });
    expect(changes.map((change) => (change.kind === 'create-object' ? change.object.metadata.name : null))).toEqual([
      name,
      `kubeadm:${name}`,
      `kubeadm:${name}`,
    ]);
  });

  it('generates a configuration for other settings again, and keeps labels and annotations of others', async () => {
    const old = kubeletConfigMap('kubelet-config', OTHER, true);
    const found = {
      ...old,
      metadata: { ...old.metadata, labels: { custom: 'x' }, annotations: { ...old.metadata.annotations, note: 'y' } },
    };
    const cluster = fakeCluster({ objects: [found, ...RBAC] });
    expect((await plan(cluster)).changes).toMatchObject([
      { kind: 'update-object', reason: 'the content differs, and was not edited by hand' },
    ]);
    const uploaded = await run(cluster);
    expect(uploaded.data).toEqual({ kubelet: YAML });
    expect(uploaded.metadata).toMatchObject({ labels: { custom: 'x' }, annotations: { note: 'y' } });
    expect(isGenerated(uploaded)).toBe(true);
  });

  it('removes the hash annotation from a configuration that the user now supplies', async () => {
    const cluster = fakeCluster({ objects: [kubeletConfigMap('kubelet-config', OTHER, true), ...RBAC] });
    const uploaded = await run(cluster, { generated: false });
    expect(uploaded.data).toEqual({ kubelet: YAML });
    expect(isGenerated(uploaded)).toBe(false);
    expect(JSON.stringify(uploaded.metadata)).not.toContain('component-config.hash');
  });

  describe('of a configuration edited by hand', () => {
    const edited = { ...GENERATED, data: { kubelet: OTHER, more: 'custom' } };

    it('keeps it and shows the difference', async () => {
      const cluster = fakeCluster({ objects: [edited, ...RBAC] });
      const { changes, warnings, noop } = await plan(cluster);
      expect(changes).toEqual([]);
      expect(noop).toBe('ConfigMap kube-system/kubelet-config is kept');
      expect(warnings).toMatchObject([{ code: 'KUBELET_CONFIG_KEPT' }]);
      expect(warnings?.[0]?.message).toContain('--force-upload. Difference:\n--- kube-system/kubelet-config in the cluster\n');
      expect(warnings?.[0]?.message).toContain('\n-maxPods: 6\n+maxPods: 5\n');
      expect((await run(cluster)).data).toEqual(edited.data);
    });

    it('replaces it with --force-upload, except for other keys', async () => {
      const cluster = fakeCluster({ objects: [edited, ...RBAC] });
      expect((await plan(cluster, { forceUpload: true })).changes).toMatchObject([
        { reason: 'the content differs, and --force-upload was given' },
      ]);
      expect((await run(cluster, { forceUpload: true })).data).toEqual({ kubelet: YAML, more: 'custom' });
    });

    it('still corrects the RBAC', async () => {
      const { changes, noop } = await plan(fakeCluster({ objects: [edited] }));
      expect(changes.map(({ kind }) => kind)).toEqual(['create-object', 'create-object']);
      expect(noop).toBeUndefined();
    });
  });

  it.each([
    ['other formatting', '# mine\nkind: KubeletConfiguration\nmaxPods: 0x5\napiVersion: "kubelet.config.k8s.io/v1beta1"\n'],
    ['identical text', YAML],
  ])('ignores a difference in %s', async (_, kubelet) => {
    const found = { ...GENERATED, data: { kubelet } };
    expect((await plan(fakeCluster({ objects: [found, ...RBAC] }))).changes).toEqual([]);
  });

  it.each([
    ['invalid YAML', { kubelet: 'a: [\n' }],
    ['missing key', { other: 'x' }],
    ['empty key', { kubelet: '' }],
  ])('reports a difference for %s', async (_, data) => {
    const found = { ...GENERATED, data };
    expect((await plan(fakeCluster({ objects: [found, ...RBAC] }))).warnings).toMatchObject([{ code: 'KUBELET_CONFIG_KEPT' }]);
  });

  it('restores a changed Role', async () => {
    const [role, binding] = RBAC;
    const cluster = fakeCluster({ objects: [GENERATED, { ...role, rules: [] }, binding] });
    expect((await plan(cluster)).changes).toMatchObject([{ kind: 'update-object', reason: 'its rules differ' }]);
    await run(cluster);
    expect(await plan(cluster)).toMatchObject({ changes: [] });
  });

  it('replaces a RoleBinding with another, immutable roleRef', async () => {
    const [role, binding] = RBAC as readonly [KubeObject, KubeObject];
    const other = { ...binding, metadata: { ...binding.metadata, labels: { custom: 'x' } } };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'other' };
    const cluster = fakeCluster({ objects: [GENERATED, role, { ...other, roleRef }] });
    expect((await plan(cluster)).changes.map(({ kind }) => kind)).toEqual(['delete-object', 'create-object']);
    await run(cluster);
    const ref = { apiVersion: binding.apiVersion, kind: binding.kind, namespace: 'kube-system', name: binding.metadata.name };
    expect(await cluster.get(ref)).toMatchObject({ metadata: { labels: { custom: 'x' } }, roleRef: binding.roleRef });
    expect(await plan(cluster)).toMatchObject({ changes: [] });
  });

  it('does not overwrite a concurrent change', async () => {
    const cluster = fakeCluster({ objects: [kubeletConfigMap('kubelet-config', OTHER, true), ...RBAC] });
    const inspect = await uploadConfigKubelet.inspect(contextOf(cluster), INPUT);
    const [change] = inspect.plan.changes;
    await cluster.patch(REF, 'merge', { data: { kubelet: 'custom: true\n' } });
    expect(change).toMatchObject({ kind: 'update-object', before: { metadata: { resourceVersion: expect.any(String) } } });
    const stale = { ...uploadConfigKubelet, inspect: async () => inspect };
    await expect(applyPhases([stale], contextOf(cluster), INPUT, [])).rejects.toMatchObject({ code: 'CLUSTER_CONFLICT' });
    expect((await cluster.get(REF))?.data).toEqual({ kubelet: 'custom: true\n' });
  });

  it('is planned for a cluster that does not exist yet', async () => {
    expect((await plan(null)).changes).toHaveLength(3);
  });

  it('reports a rejection by the API server', async () => {
    const cluster = fakeCluster({ user: { name: 'unprivileged', groups: [] } });
    await expect(plan(cluster)).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
  });
});
