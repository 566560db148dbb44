import type { JsonObject } from '../../src/base/json.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { KUBE_PUBLIC, KUBE_SYSTEM, MASTERS_GROUP_NAME } from '../../src/kube/well-known.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
const DEFAULTS = { labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } };
const READ = ['get', 'list', 'watch'];
const PUBLIC_URLS = ['/livez', '/readyz', '/healthz', '/version', '/version/'];
const CSRS = 'certificates.k8s.io';

/**
 * The initial objects of an API server: its namespaces and the roles that the workflows use. @see
 * plugin/pkg/auth/authorizer/rbac/bootstrappolicy (1.36)
 */
export const BOOTSTRAP_OBJECTS: readonly KubeObject[] = [
  ...['default', 'kube-node-lease', KUBE_PUBLIC, KUBE_SYSTEM].map((name) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
  })),
  role('cluster-admin', [resources(['*'], ['*'], ['*']), urls(['*'], ['*'])]),
  role('system:discovery', [urls([...PUBLIC_URLS, '/openapi', '/openapi/*', '/api', '/api/*', '/apis', '/apis/*'], ['get'])]),
  role('system:public-info-viewer', [urls(PUBLIC_URLS, ['get'])]),
  role('system:basic-user', [
    resources(['authorization.k8s.io'], ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'], ['create']),
    resources(['authentication.k8s.io'], ['selfsubjectreviews'], ['create']),
  ]),
  role('system:node-bootstrapper', [resources([CSRS], ['certificatesigningrequests'], ['create', ...READ])]),
  role('system:certificates.k8s.io:certificatesigningrequests:nodeclient', [
    resources([CSRS], ['certificatesigningrequests/nodeclient'], ['create']),
  ]),
  role('system:certificates.k8s.io:certificatesigningrequests:selfnodeclient', [
    resources([CSRS], ['certificatesigningrequests/selfnodeclient'], ['create']),
  ]),
  role('system:kubelet-api-admin', [
    resources([''], ['nodes'], READ),
    resources([''], ['nodes'], ['proxy']),
    resources([''], ['nodes/log', 'nodes/metrics', 'nodes/proxy', 'nodes/stats'], ['*']),
  ]),
  role('system:node-proxier', [
    resources([''], ['endpoints', 'services'], ['list', 'watch']),
    resources([''], ['nodes'], READ),
    resources(['', 'events.k8s.io'], ['events'], ['create', 'patch', 'update']),
    resources(['discovery.k8s.io'], ['endpointslices'], ['list', 'watch']),
  ]),
  binding('cluster-admin', [group(MASTERS_GROUP_NAME)]),
  binding('system:discovery', [group('system:authenticated')]),
  binding('system:basic-user', [group('system:authenticated')]),
  binding('system:public-info-viewer', [group('system:authenticated'), group('system:unauthenticated')]),
  binding('system:node-proxier', [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:kube-proxy' }]),
];

function role(name: string, rules: readonly JsonObject[]): KubeObject {
  return { apiVersion: RBAC, kind: 'ClusterRole', metadata: { name, ...DEFAULTS }, rules };
}

function binding(name: string, subjects: readonly JsonObject[]): KubeObject {
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name };
  return { apiVersion: RBAC, kind: 'ClusterRoleBinding', metadata: { name, ...DEFAULTS }, roleRef, subjects };
}

function group(name: string): JsonObject {
  return { apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name };
}

function resources(apiGroups: readonly string[], names: readonly string[], verbs: readonly string[]): JsonObject {
  return { apiGroups, resources: names, verbs };
}

function urls(nonResourceURLs: readonly string[], verbs: readonly string[]): JsonObject {
  return { nonResourceURLs, verbs };
}
