import { describe, expect, it } from 'vitest';
import { qualifiedResource } from '../../../lab/api-server/served-kinds.ts';
import { apiVersionOf, parseApiVersion, RESOURCES, type ResourceType, resourceOf, resourcePath } from '../../../src/kube/resources.ts';

const typeOf = (apiVersion: string, kind: string) => resourceOf(apiVersion, kind) as ResourceType;

describe('resourcePath', () => {
  it.each([
    ['v1', 'ConfigMap', { namespace: 'kube-system', name: 'x' }, '/api/v1/namespaces/kube-system/configmaps/x'],
    ['v1', 'ConfigMap', { namespace: 'kube-system' }, '/api/v1/namespaces/kube-system/configmaps'],
    ['v1', 'ConfigMap', {}, '/api/v1/configmaps'],
    ['v1', 'Node', { name: 'w1', subresource: 'status' }, '/api/v1/nodes/w1/status'],
    ['v1', 'Node', { namespace: 'ignored', name: 'w1' }, '/api/v1/nodes/w1'],
    ['v1', 'Namespace', { name: 'default' }, '/api/v1/namespaces/default'],
    ['apps/v1', 'Deployment', { namespace: 'a', name: 'b' }, '/apis/apps/v1/namespaces/a/deployments/b'],
    [
      'rbac.authorization.k8s.io/v1',
      'ClusterRole',
      { name: 'kubeadm:get-nodes' },
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/kubeadm%3Aget-nodes',
    ],
    ['v1', 'ConfigMap', { namespace: 'a', name: '../../secrets/x' }, '/api/v1/namespaces/a/configmaps/..%2F..%2Fsecrets%2Fx'],
  ])('%s %s %j', (apiVersion, kind, at, path) => {
    expect(resourcePath(typeOf(apiVersion, kind), at)).toBe(path);
  });
});

describe('the table of resources', () => {
  it('has each kind and each path once', () => {
    expect(new Set(RESOURCES.map((type) => `${apiVersionOf(type)} ${type.kind}`)).size).toBe(RESOURCES.length);
    expect(new Set(RESOURCES.map(qualifiedResource)).size).toBe(RESOURCES.length);
  });

  it('contains nothing else', () => {
    expect(resourceOf('v1', 'Unicorn')).toBeUndefined();
    expect(resourceOf('v2', 'ConfigMap')).toBeUndefined();
  });
});

it.each([
  ['v1', { group: '', version: 'v1' }],
  ['apps/v1', { group: 'apps', version: 'v1' }],
])('parseApiVersion %s', (text, parsed) => {
  expect(parseApiVersion(text)).toEqual(parsed);
  expect(apiVersionOf(parsed)).toBe(text);
});
