import { describe, expect, it } from 'vitest';
import { userOf } from '../../../../lab/api-server/authenticate.ts';
import { authorize } from '../../../../lab/api-server/authorize.ts';
import { ruleAllows } from '../../../../lab/api-server/rbac.ts';
import { parseRequest } from '../../../../lab/api-server/request-info.ts';
import { createStore } from '../../../../lab/api-server/store.ts';
import type { JsonObject } from '../../../../src/base/json.ts';
import { type ResourceType, resourceOf } from '../../../../src/kube/resources.ts';

const request = (line: string) => {
  const [method = '', path = ''] = line.split(' ');
  return parseRequest(method, path);
};
const CM = '/api/v1/namespaces/kube-system/configmaps';

describe('ruleAllows', () => {
  const get = { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] };
  it.each<[string, JsonObject, string, boolean]>([
    ['verb, group and resource', get, `GET ${CM}/x`, true],
    ['another verb', get, `DELETE ${CM}/x`, false],
    ['list is not get', get, `GET ${CM}`, false],
    ['watch is not list', { ...get, verbs: ['list'] }, `GET ${CM}?watch=true`, false],
    ['any verb', { ...get, verbs: ['*'] }, `GET ${CM}?watch=1`, true],
    ['deletecollection is a separate verb', { ...get, verbs: ['delete'] }, `DELETE ${CM}`, false],
    ['another resource', get, 'GET /api/v1/namespaces/kube-system/secrets/x', false],
    ['any resource', { ...get, resources: ['*'] }, 'GET /api/v1/namespaces/kube-system/secrets/x', true],
    ['another group', get, 'GET /apis/apps/v1/namespaces/a/configmaps/x', false],
    ['any group', { ...get, apiGroups: ['*'] }, 'GET /apis/apps/v1/namespaces/a/configmaps/x', true],
    ['its name', { ...get, resourceNames: ['x'] }, `GET ${CM}/x`, true],
    ['another name', { ...get, resourceNames: ['x'] }, `GET ${CM}/y`, false],
    ['a list by name', { ...get, verbs: ['list'], resourceNames: ['x'] }, `GET ${CM}?fieldSelector=metadata.name%3Dx`, true],
    ['a list without that name', { ...get, verbs: ['list'], resourceNames: ['x'] }, `GET ${CM}`, false],
    ['a create has no name', { ...get, verbs: ['create'], resourceNames: ['x'] }, `POST ${CM}`, false],
    ['a subresource is not its resource', { ...get, resources: ['nodes'] }, 'GET /api/v1/nodes/x/status', false],
    ['a subresource', { ...get, resources: ['nodes/status'] }, 'GET /api/v1/nodes/x/status', true],
    ['that subresource of anything', { ...get, resources: ['*/status'] }, 'GET /api/v1/nodes/x/status', true],
    ['a resource is not its subresource', { ...get, resources: ['*/status'] }, 'GET /api/v1/nodes/x', false],
    ['a path', { nonResourceURLs: ['/version'], verbs: ['get'] }, 'GET /version', true],
    ['paths below', { nonResourceURLs: ['/healthz/*'], verbs: ['get'] }, 'GET /healthz/etcd', true],
    ['a path that only has this prefix', { nonResourceURLs: ['/version'], verbs: ['get'] }, 'GET /versions', false],
    ['any path', { nonResourceURLs: ['*'], verbs: ['*'] }, 'POST /x', true],
    ['paths are not resources', { nonResourceURLs: ['*'], verbs: ['*'] }, `GET ${CM}`, false],
    ['resources are not paths', { apiGroups: ['*'], resources: ['*'], verbs: ['*'] }, 'GET /version', false],
    ['an empty rule', {}, `GET ${CM}`, false],
  ])('%s', (_, rule, line, allowed) => {
    expect(ruleAllows(rule, request(line))).toBe(allowed);
  });
});

describe('authorize', () => {
  const RBAC = 'rbac.authorization.k8s.io/v1';
  const typeOf = (kind: string) => resourceOf(RBAC, kind) as ResourceType;
  const store = createStore();
  const put = (kind: string, name: string, namespace: string | undefined, more: JsonObject) =>
    store.put(typeOf(kind), { apiVersion: RBAC, kind, metadata: { name, ...(namespace ? { namespace } : {}) }, ...more });
  const reads = [{ apiGroups: [''], resources: ['configmaps', 'nodes'], verbs: ['get'] }];
  put('Role', 'reader', 'kube-system', { rules: reads });
  put('ClusterRole', 'reader', undefined, { rules: reads });
  put('RoleBinding', 'a', 'kube-system', { roleRef: { kind: 'Role', name: 'reader' }, subjects: [{ kind: 'User', name: 'ann' }] });
  put('RoleBinding', 'b', 'kube-system', { roleRef: { kind: 'ClusterRole', name: 'reader' }, subjects: [{ kind: 'Group', name: 'devs' }] });
  put('ClusterRoleBinding', 'c', undefined, {
    roleRef: { kind: 'ClusterRole', name: 'reader' },
    subjects: [{ kind: 'ServiceAccount', namespace: 'ci', name: 'bot' }],
  });
  put('RoleBinding', 'd', 'kube-system', { roleRef: { kind: 'Role', name: 'gone' }, subjects: [{ kind: 'User', name: 'dan' }] });
  put('RoleBinding', 'e', 'ci', {
    roleRef: { kind: 'ClusterRole', name: 'reader' },
    subjects: [{ kind: 'ServiceAccount', name: 'local' }],
  });

  it.each([
    ['ann', [], `GET ${CM}/x`, true],
    ['ann', [], 'GET /api/v1/namespaces/default/configmaps/x', false],
    // A Role never applies to cluster-scoped objects.
    ['ann', [], 'GET /api/v1/nodes/x', false],
    ['bob', ['devs'], `GET ${CM}/x`, true],
    ['bob', ['devs'], 'GET /api/v1/nodes/x', false],
    ['bob', [], `GET ${CM}/x`, false],
    ['devs', [], `GET ${CM}/x`, false],
    ['system:serviceaccount:ci:bot', [], 'GET /api/v1/nodes/x', true],
    ['system:serviceaccount:other:bot', [], 'GET /api/v1/nodes/x', false],
    ['system:serviceaccount:ci:local', [], 'GET /api/v1/namespaces/ci/configmaps/x', true],
    ['eve', ['system:masters'], 'DELETE /api/v1/nodes/x', true],
    ['eve', [], 'GET /healthz', true],
    ['eve', [], 'GET /healthz/etcd', false],
  ])('%s in %j: %s', (name, groups, line, allowed) => {
    expect(authorize(store, userOf(name, groups), request(line)).allowed).toBe(allowed);
  });

  it('reports the missing role', () => {
    expect(authorize(store, userOf('dan', []), request(`GET ${CM}/x`))).toEqual({
      allowed: false,
      reason: 'RBAC: role.rbac.authorization.k8s.io "gone" not found',
    });
  });
});

describe('parseRequest', () => {
  it.each([
    ['GET /api/v1/namespaces', { verb: 'list', resource: 'namespaces', namespace: '', name: '' }],
    ['GET /api/v1/namespaces/a', { verb: 'get', resource: 'namespaces', namespace: 'a', name: 'a' }],
    ['PUT /api/v1/namespaces/a/finalize', { verb: 'update', resource: 'namespaces', name: 'a', subresource: 'finalize' }],
    ['GET /api/v1/namespaces/a/pods', { verb: 'list', resource: 'pods', namespace: 'a', name: '' }],
    ['GET /api/v1/namespaces/a/pods/b/log', { verb: 'get', resource: 'pods', namespace: 'a', name: 'b', subresource: 'log' }],
    ['GET /api/v1/pods?watch=0', { verb: 'list', resource: 'pods', namespace: '' }],
    ['GET /api/v1/pods?watch', { verb: 'watch', resource: 'pods' }],
    ['GET /apis/apps/v1/deployments', { verb: 'list', group: 'apps', version: 'v1', resource: 'deployments' }],
    ['GET /api/v1/nodes/a%2Fb', { verb: 'get', name: 'a/b' }],
    ['GET /api/v1', { kind: 'path', verb: 'get', path: '/api/v1' }],
    ['GET /apis/apps/v1', { kind: 'path', path: '/apis/apps/v1' }],
    ['OPTIONS /api/v1/pods', { verb: 'options' }],
  ])('%s', (line, expected) => {
    expect(request(line)).toMatchObject(expected);
  });
});
