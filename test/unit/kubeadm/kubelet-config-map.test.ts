import { describe, expect, it } from 'vitest';
import { diffRbac } from '../../../src/host/plan/rbac-diff.ts';
import type { KubeObject } from '../../../src/kube/object.ts';
import {
  configMapHash,
  isGenerated,
  kubeletConfigMap,
  kubeletConfigMapName,
  kubeletConfigRbac,
} from '../../../src/kubeadm/cluster-objects/kubelet-config-map.ts';

const HASH = 'kubeadm.kubernetes.io/component-config.hash';

describe('kubeletConfigMapName', () => {
  it.each([
    [21, 'kubelet-config-1.21'],
    [23, 'kubelet-config-1.23'],
    [24, 'kubelet-config'],
    [36, 'kubelet-config'],
  ])('of 1.%i is %s', (minor, name) => {
    expect(kubeletConfigMapName(minor)).toBe(name);
  });
});

describe('configMapHash', () => {
  it('matches kubeadm', () => {
    expect(configMapHash({ foo: 'bar' })).toBe('sha256:fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9');
  });

  it.each([
    ['values in the order of their keys, without the keys', configMapHash({ b: 'ar', a: 'foob' }), configMapHash({ x: 'foobar' })],
    [
      'binary data after string data',
      configMapHash({ z: 'a' }, { b: new Uint8Array([99]), a: new Uint8Array([98]) }),
      configMapHash({ x: 'abc' }),
    ],
    ['nothing', configMapHash({}), 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
  ])('hashes %s', (_, hash, expected) => {
    expect(hash).toBe(expected);
  });
});

describe('kubeletConfigMap', () => {
  it('has the hash annotation of kubeadm when it is generated', () => {
    const configMap = kubeletConfigMap('kubelet-config', 'kind: KubeletConfiguration\n', true);
    expect(configMap).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: {
        name: 'kubelet-config',
        namespace: 'kube-system',
        annotations: { [HASH]: configMapHash({ kubelet: 'kind: KubeletConfiguration\n' }) },
      },
      data: { kubelet: 'kind: KubeletConfiguration\n' },
    });
    expect(isGenerated(configMap)).toBe(true);
  });

  it('has no hash annotation when the user supplied it', () => {
    const configMap = kubeletConfigMap('kubelet-config', 'a', false);
    expect(configMap.metadata).toEqual({ name: 'kubelet-config', namespace: 'kube-system' });
    expect(isGenerated(configMap)).toBe(false);
  });
});

describe('isGenerated', () => {
  const generated = kubeletConfigMap('kubelet-config', 'a', true);

  it.each<[string, KubeObject, boolean]>([
    ['unchanged', generated, true],
    ['edited by hand', { ...generated, data: { kubelet: 'b' } }, false],
    ['with an additional key', { ...generated, data: { kubelet: 'a', other: 'x' } }, false],
    ['without data', { apiVersion: 'v1', kind: 'ConfigMap', metadata: generated.metadata }, false],
    ['without annotations', { ...generated, metadata: { name: 'kubelet-config' } }, false],
  ])('%s: %s', (_, configMap, expected) => {
    expect(isGenerated(configMap)).toBe(expected);
  });
});

describe('kubeletConfigRbac', () => {
  it('allows nodes and joining nodes to read only that ConfigMap', () => {
    const [role, binding] = kubeletConfigRbac('kubelet-config');
    expect(role).toMatchObject({
      kind: 'Role',
      metadata: { name: 'kubeadm:kubelet-config', namespace: 'kube-system' },
      rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['kubelet-config'], verbs: ['get'] }],
    });
    expect(binding).toMatchObject({
      kind: 'RoleBinding',
      metadata: role.metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'kubeadm:kubelet-config' },
      subjects: [
        { kind: 'Group', name: 'system:nodes' },
        { kind: 'Group', name: 'system:bootstrappers:kubeadm:default-node-token' },
      ],
    });
  });
});

describe('diffRbac', () => {
  const [role, binding] = kubeletConfigRbac('kubelet-config');
  const stored: KubeObject = {
    ...binding,
    metadata: { ...binding.metadata, uid: 'u', resourceVersion: '7', labels: { custom: 'x' } },
    subjects: [
      { kind: 'Group', name: 'system:nodes', apiGroup: 'rbac.authorization.k8s.io' },
      { kind: 'Group', name: 'system:bootstrappers:kubeadm:default-node-token', apiGroup: 'rbac.authorization.k8s.io' },
    ],
  };

  it('creates a missing object', () => {
    expect(diffRbac(null, role)).toEqual([{ kind: 'create-object', object: role, reason: 'does not exist' }]);
  });

  it('keeps defaulted fields and labels of others', () => {
    expect(diffRbac(stored, binding)).toEqual([]);
  });

  it('replaces only what differs', () => {
    const found = { ...stored, subjects: [{ kind: 'Group', name: 'system:nodes' }] };
    const [change, ...more] = diffRbac(found, binding);
    expect(more).toEqual([]);
    expect(change).toMatchObject({ kind: 'update-object', before: found, reason: 'its subjects differ' });
    expect(change).toMatchObject({ object: { metadata: stored.metadata, subjects: binding.subjects, roleRef: binding.roleRef } });
  });

  it.each<[string, KubeObject, KubeObject, string]>([
    ['rules', { ...role, rules: [] }, role, 'its rules differ'],
    ['missing rules', { apiVersion: role.apiVersion, kind: role.kind, metadata: role.metadata }, role, 'its rules differ'],
    [
      'roleRef',
      { ...binding, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'other' } },
      binding,
      'its roleRef differs; a roleRef is immutable',
    ],
    ['several fields', { ...binding, roleRef: null, subjects: [] }, binding, 'its roleRef and subjects differ; a roleRef is immutable'],
    [
      'subjects of another API group',
      { ...binding, subjects: [{ kind: 'Group', name: 'system:nodes', apiGroup: 'example.com' }] },
      { ...binding, subjects: [{ kind: 'Group', name: 'system:nodes' }] },
      'its subjects differ',
    ],
  ])('reports that %s differ', (_, found, desired, reason) => {
    expect(diffRbac(found, desired)[0]?.reason).toBe(reason);
  });
});
