/** One request. `{rv}`, `{uid}` and `{name}` in path and body stand for those of the last object that was answered. */
export interface Step {
  readonly send: string;
  readonly body?: unknown;
  /** A body that is sent unchanged. */
  readonly raw?: string;
  /** Content type; default JSON. */
  readonly type?: keyof typeof CONTENT_TYPES;
  /** The requesting user; default an admin that impersonates other users except `anonymous`. */
  readonly as?: { readonly user: string; readonly groups?: readonly string[] } | 'anonymous' | { readonly token: string };
  /** `status`: only status code and reason are compared, since the message depends on implementation details. */
  readonly compare?: 'all' | 'status' | 'nothing';
}

export interface Scenario {
  readonly name: string;
  readonly steps: readonly Step[];
}

export const CONTENT_TYPES = {
  json: 'application/json',
  yaml: 'application/yaml',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  patch: 'application/json-patch+json',
  other: 'application/foo',
} as const;

const configMap = (name: string, more: object = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, ...more });
const role = (name: string, rules: readonly object[]) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name },
  rules,
});
const bindingTo = (name: string, roleRef: object, subjects: readonly object[]) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', ...roleRef },
  subjects,
});
const node = (name: string) => ({ user: `system:node:${name}`, groups: ['system:nodes'] });

const CM = '/api/v1/namespaces/default/configmaps';
const SECRETS = '/api/v1/namespaces/default/secrets';
const NODES = '/api/v1/nodes';
const NS = '/api/v1/namespaces';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const CSRS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const SYSTEM = '/api/v1/namespaces/kube-system';

/** A CSR for CN=system:node:w1, O=system:nodes with an EC key. */
export const NODE_CSR = `-----BEGIN CERTIFICATE REQUEST-----
MIHrMIGSAgEAMDAxFTATBgNVBAoMDHN5c3RlbTpub2RlczEXMBUGA1UEAwwOc3lz
dGVtOm5vZGU6dzEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATRnVNBbUUhGzhe
kN4xIV07furPxONln+bpq0mwByOCysVeXuYDqS7Xx6VJMMJdjeUthg4EB2i1KeDK
jU1YG3aCoAAwCgYIKoZIzj0EAwIDSAAwRQIhAKnXFdlZdI8yOtUkoNLKvL/C0Szp
kEjypvQPtgsPL+oeAiAW2RLL+1SDmJLRcEc9ZgwrRGP6maTxOs0BLbUTVlQ5+Q==
-----END CERTIFICATE REQUEST-----
`;

/** The requests to both the double and a real API server; the real responses are in golden/kube-apiserver-1.36.yaml. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'create',
    steps: [
      { send: `POST ${CM}`, body: configMap('c1', { data: { a: '1' } }) },
      { send: `POST ${CM}`, body: configMap('c1') },
      { send: `POST ${CM}`, body: { metadata: { name: 'c2' } } },
      { send: `POST ${CM}`, body: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } } },
      { send: `POST ${CM}`, body: { apiVersion: 'v1', kind: 'Foo', metadata: { name: 'x' } } },
      { send: `POST ${CM}`, body: { apiVersion: 'v2', kind: 'ConfigMap', metadata: { name: 'x' } } },
      { send: `POST ${CM}`, body: configMap('x', { metadata: { name: 'x', namespace: 'other' } }) },
      { send: `POST ${CM}`, body: configMap('x', { metadata: { name: 'x', resourceVersion: '5' } }) },
      { send: `POST ${CM}`, body: configMap('') },
      { send: `POST ${CM}`, body: { metadata: { generateName: 'gen-' } } },
      { send: `POST ${CM}`, body: configMap('Bad_Name', { data: { 'a b': '1' } }) },
      { send: `POST ${CM}`, body: configMap('x'.repeat(254)) },
      { send: `POST ${CM}`, body: configMap('x', { data: { x: 1 } }) },
      { send: `POST ${CM}`, body: configMap('x', { data: ['x'] }) },
      { send: `POST ${CM}`, body: configMap('x', { binaryData: { x: '!' } }) },
      { send: `POST ${CM}`, body: configMap('x', { metadata: { name: 'x', labels: { a: 'b c' }, annotations: { '-a': 'x' } } }) },
      // One at a time: the order of several is that of a Go map.
      ...['a/b/c', '/d', 'UP.case/x', '-x', 'y'.repeat(64)].map((key) => ({
        send: `POST ${CM}`,
        body: configMap('x', { metadata: { name: 'x', labels: { [key]: '' } } }),
      })),
      { send: `POST ${CM}`, body: configMap('x', { metadata: { name: 'x', labels: { a: 'v'.repeat(64) } } }) },
      { send: `POST ${NS}`, body: { metadata: { name: 'n'.repeat(64) } } },
      { send: `POST ${CM}`, body: configMap('x', { metadata: { name: 'x', labels: { a: 1 } } }) },
      { send: `POST ${CM}`, body: configMap('x', { metadata: 'x' }) },
      ...['.', '..', '..z', '', 'z'.repeat(254)].map((key) => ({ send: `POST ${CM}`, body: configMap('x', { data: { [key]: '' } }) })),
      { send: `POST ${CM}`, body: configMap('x', { data: { big: 'x'.repeat(1024 * 1024 + 1) } }), compare: 'status' },
      {
        send: `POST ${CM}`,
        body: {
          metadata: {
            name: 'c3',
            labels: {},
            annotations: null,
            creationTimestamp: null,
            uid: 'abc',
            ownerReferences: [],
            finalizers: [],
            selfLink: 'x',
            foo: 1,
          },
          data: { x: null, y: '' },
          bar: 3,
        },
      },
      { send: `POST ${CM}?fieldValidation=Strict`, body: { metadata: { name: 'c4', foo: 1 }, bar: 3 } },
      { send: `POST ${CM}?dryRun=All`, body: configMap('c5', { data: { a: 'b' } }) },
      { send: `GET ${CM}/c5` },
      { send: `POST ${CM}?dryRun=Some`, body: configMap('c5') },
      { send: `POST ${CM}`, raw: 'metadata:\n  name: c6\ndata: {a: b}\n', type: 'yaml' },
      { send: `POST ${CM}`, body: configMap('x'), type: 'other', compare: 'status' },
      { send: `POST ${CM}`, raw: '{"apiVersion":', compare: 'status' },
      { send: `POST ${CM}`, raw: '', compare: 'all' },
      { send: `POST ${CM}`, raw: '[]', compare: 'status' },
      { send: 'POST /api/v1/namespaces/nope/configmaps', body: configMap('x') },
      { send: 'POST /api/v1/configmaps', body: configMap('x') },
      { send: `POST ${CM}/c1`, body: configMap('c1') },
      { send: `GET ${CM}?labelSelector=none` },
    ],
  },
  {
    name: 'read',
    steps: [
      { send: `POST ${CM}`, body: configMap('r1', { metadata: { name: 'r1', labels: { app: 'a', tier: 'x' } } }) },
      { send: `POST ${CM}`, body: configMap('r2', { metadata: { name: 'r2', labels: { app: 'b' } } }) },
      { send: `GET ${CM}/r1` },
      { send: `GET ${CM}/none` },
      { send: `GET ${CM}?labelSelector=app%3Da` },
      { send: `GET ${CM}?labelSelector=app%20in%20(a,b),tier` },
      { send: `GET ${CM}?labelSelector=app,!tier` },
      { send: `GET ${CM}?labelSelector=app%20notin%20(b),app!%3Dc,app` },
      { send: `GET ${CM}?fieldSelector=metadata.name%3Dr2` },
      { send: `GET ${CM}?fieldSelector=metadata.name!%3Dr2,metadata.namespace%3Ddefault&labelSelector=app` },
      { send: `GET /api/v1/configmaps?fieldSelector=metadata.name%3Dr2` },
      { send: `GET ${CM}?labelSelector=app&limit=1` },
      ...[
        'a%20b%20c',
        ',',
        'a,,b',
        '!a%3Db',
        '%3Db',
        'a%3Db%3Dc',
        'a%20in%20x',
        'a%20in%20(x',
        'a%3D-x',
        'A_/b',
        'a%3E',
        'a%20in%20()',
      ].map((selector) => ({
        send: `GET ${CM}?labelSelector=${selector}`,
        compare: selector === 'a%20in%20()' ? ('status' as const) : ('all' as const),
      })),
      { send: `GET ${CM}?fieldSelector=foo%3Dx` },
      { send: `GET ${CM}?fieldSelector=metadata.name` },
      { send: `GET ${NODES}?fieldSelector=metadata.namespace%3Dx` },
      { send: `GET ${CM}?limit=abc` },
      { send: `GET ${CM}?resourceVersion=abc` },
      { send: `GET ${CM}?resourceVersion=99999999`, compare: 'status' },
      { send: `GET ${CM}?continue=zz&limit=1`, compare: 'status' },
      { send: 'GET /api/v1/namespaces/nope/configmaps', compare: 'all' },
      { send: 'GET /api/v1/foos' },
      { send: 'GET /apis/foo.example/v1/foos', compare: 'all' },
      { send: 'GET /apis/apps/v7' },
      { send: 'GET /apis/foo.example' },
      { send: 'GET /nope' },
      { send: `GET ${CM}/r1/status` },
      { send: `GET /api/v1/namespaces/default/nodes` },
      { send: 'GET /healthz' },
      { send: 'GET /livez' },
      { send: 'GET /readyz' },
      { send: 'GET /api', compare: 'status' },
      { send: 'GET /apis/certificates.k8s.io' },
      { send: 'GET /apis/certificates.k8s.io/v1', compare: 'status' },
    ],
  },
  {
    name: 'update',
    steps: [
      { send: `POST ${CM}`, body: configMap('u1', { data: { a: '1' } }) },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { data: { a: '1' } }) },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { data: { a: '2' }, metadata: { name: 'u1', resourceVersion: '{rv}' } }) },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { data: { a: '3' } }) },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { metadata: { name: 'u1', resourceVersion: '1' } }) },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { metadata: { name: 'u1', resourceVersion: 'abc' } }) },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { metadata: { name: 'u1', uid: 'x' } }) },
      { send: `PUT ${CM}/u1`, body: configMap('u2') },
      { send: `PUT ${CM}/u1`, body: configMap('') },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { metadata: { name: 'u1', namespace: 'other' } }) },
      { send: `PUT ${CM}/u9`, body: configMap('u9') },
      { send: `PUT ${CM}`, body: configMap('u1') },
      { send: `PUT ${CM}/u1?dryRun=All`, body: configMap('u1', { data: { a: '4' } }) },
      { send: `GET ${CM}/u1` },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { data: { a: '3' }, immutable: true }) },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { data: { a: '5' }, immutable: true }) },
      { send: `PUT ${CM}/u1`, body: configMap('u1', { data: { a: '3' } }) },
      {
        send: `PUT ${CM}/u1`,
        body: configMap('u1', { metadata: { name: 'u1', labels: { still: 'allowed' } }, data: { a: '3' }, immutable: true }),
      },
      { send: `PUT ${LEASES}/l1`, body: { metadata: { name: 'l1' }, spec: { holderIdentity: 'x' } } },
      { send: `PUT ${LEASES}/l1`, body: { metadata: { name: 'l1' }, spec: { holderIdentity: 'y' } } },
      { send: `PATCH ${LEASES}/l1`, body: { spec: { holderIdentity: 'z' } }, type: 'merge' },
    ],
  },
  {
    name: 'patch',
    steps: [
      { send: `POST ${CM}`, body: configMap('p1', { data: { a: '1' } }) },
      { send: `PATCH ${CM}/p1`, body: { data: { b: '2' } }, type: 'merge' },
      { send: `PATCH ${CM}/p1`, body: { data: { b: '2' } }, type: 'merge' },
      { send: `PATCH ${CM}/p1`, body: { data: { a: null } }, type: 'merge' },
      { send: `PATCH ${CM}/p1`, body: { data: { c: '3' }, metadata: { resourceVersion: '{rv}' } }, type: 'strategic' },
      { send: `PATCH ${CM}/p1`, body: { data: { c: '4' }, metadata: { resourceVersion: '1' } }, type: 'strategic' },
      { send: `PATCH ${CM}/p1`, body: { metadata: { name: 'p2' } }, type: 'merge' },
      { send: `PATCH ${CM}/p1`, body: { metadata: { namespace: 'kube-system' } }, type: 'merge' },
      { send: `PATCH ${CM}/p1`, body: { metadata: { uid: 'x' } }, type: 'merge', compare: 'status' },
      { send: `PATCH ${CM}/p1`, body: { metadata: { creationTimestamp: '2020-01-01T00:00:00Z' } }, type: 'merge' },
      { send: `PATCH ${CM}/p1`, body: { data: { a: 3 } }, type: 'merge', compare: 'status' },
      { send: `PATCH ${CM}/p1`, body: { data: [] }, type: 'merge', compare: 'status' },
      { send: `PATCH ${CM}/p1`, body: [], type: 'merge', compare: 'status' },
      { send: `PATCH ${CM}/p1`, body: [], type: 'strategic', compare: 'status' },
      { send: `PATCH ${CM}/p1`, raw: 'nonsense', type: 'merge', compare: 'status' },
      { send: `PATCH ${CM}/p1`, body: {} },
      { send: `PATCH ${CM}/none`, body: {}, type: 'merge' },
      { send: `PATCH ${CM}`, body: {}, type: 'merge' },
      { send: `PATCH ${CM}/p1?dryRun=All`, body: { data: { dry: 'run' } }, type: 'merge' },
      { send: `GET ${CM}/p1` },
      { send: `PATCH ${CM}/p1`, body: [{ op: 'add', path: '/data/z', value: '1' }], type: 'patch' },
      { send: `PATCH ${CM}/p1`, body: [{ op: 'replace', path: '/data/absent', value: '1' }], type: 'patch' },
      { send: `PATCH ${CM}/p1`, body: [{ op: 'remove', path: '/data/absent' }], type: 'patch' },
      { send: `PATCH ${CM}/p1`, body: [{ op: 'remove', path: '/data/never' }], type: 'patch' },
      { send: `PATCH ${CM}/p1`, body: [{ op: 'test', path: '/data/z', value: '2' }], type: 'patch' },
      { send: `PATCH ${CM}/p1`, body: [{ op: 'frob', path: '/data/z' }], type: 'patch' },
      { send: `PATCH ${CM}/p1`, body: { op: 'remove' }, type: 'patch', compare: 'status' },
      { send: `PATCH ${CM}/p1`, body: { metadata: { labels: { a: 'b', c: 'd' }, annotations: { x: 'y' } } }, type: 'strategic' },
      { send: `PATCH ${CM}/p1`, body: { metadata: { labels: { $patch: 'replace', e: 'f' } } }, type: 'strategic' },
    ],
  },
  {
    name: 'secret',
    steps: [
      { send: `POST ${SECRETS}`, body: { metadata: { name: 's1' }, stringData: { a: '1' } } },
      { send: `PATCH ${SECRETS}/s1`, body: { stringData: { b: '2' } }, type: 'merge' },
      { send: `PUT ${SECRETS}/s1`, body: { metadata: { name: 's1' }, data: { c: 'Mw==' } } },
      { send: `PATCH ${SECRETS}/s1`, body: { type: 'x' }, type: 'merge' },
      { send: `POST ${SECRETS}`, body: { metadata: { name: 's2' }, data: { x: '!!' } } },
      { send: `POST ${SECRETS}`, body: { metadata: { name: 's3' }, type: 'kubernetes.io/tls' } },
      { send: `POST ${SECRETS}`, body: { metadata: { name: 's4' }, type: 'custom', immutable: true, data: { x: 'MQ==' } } },
      { send: `PATCH ${SECRETS}/s4`, body: { data: { y: 'MQ==' } }, type: 'merge' },
      { send: `PATCH ${SECRETS}/s4`, body: { immutable: false }, type: 'merge' },
      { send: `GET ${SECRETS}?fieldSelector=type%3Dcustom` },
    ],
  },
  {
    name: 'delete',
    steps: [
      { send: `POST ${CM}`, body: configMap('d1') },
      { send: `DELETE ${CM}/d1?dryRun=All` },
      { send: `DELETE ${CM}/d1`, body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: 'x' } } },
      { send: `DELETE ${CM}/d1`, body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { resourceVersion: '1' } } },
      { send: `DELETE ${CM}/d1` },
      { send: `DELETE ${CM}/d1` },
      { send: `POST ${CM}`, body: configMap('d2', { metadata: { name: 'd2', finalizers: ['example.com/f'] } }) },
      { send: `DELETE ${CM}/d2` },
      { send: `DELETE ${CM}/d2` },
      { send: `PATCH ${CM}/d2`, body: { data: { a: 'b' } }, type: 'merge' },
      { send: `PATCH ${CM}/d2`, body: { metadata: { finalizers: null } }, type: 'merge' },
      { send: `GET ${CM}/d2` },
      { send: `POST ${CM}`, body: configMap('d3', { metadata: { name: 'd3', labels: { gone: 'x' } } }) },
      { send: `POST ${CM}`, body: configMap('d4', { metadata: { name: 'd4', labels: { gone: 'x' } } }) },
      { send: `DELETE ${CM}?labelSelector=gone%3Dx` },
      { send: `GET ${CM}?labelSelector=gone` },
      { send: `POST ${NS}`, body: { metadata: { name: 'doomed' } } },
      { send: `DELETE ${NS}/default` },
      { send: `DELETE ${NS}` },
      { send: 'POST /api/v1/namespaces/default/serviceaccounts', body: { metadata: { name: 'sa1' } } },
      { send: 'DELETE /api/v1/namespaces/default/serviceaccounts/sa1' },
      { send: `POST ${RBAC}/clusterroles`, body: { metadata: { name: 'del:role' }, rules: [] } },
      { send: `DELETE ${RBAC}/clusterroles/del:role`, body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: 'x' } } },
      { send: `DELETE ${RBAC}/clusterroles/del:role` },
    ],
  },
  {
    name: 'namespaces',
    steps: [
      { send: `POST ${NS}`, body: { metadata: { name: 'n1', labels: { a: 'b' } } } },
      { send: `POST ${NS}`, body: { metadata: { name: 'n.2' } } },
      { send: `PATCH ${NS}/n1`, body: { metadata: { labels: { c: 'd' } } }, type: 'strategic' },
      { send: `GET ${NS}/n1` },
      { send: `GET ${NS}?fieldSelector=metadata.name%3Dn1` },
    ],
  },
  {
    name: 'nodes',
    steps: [
      {
        send: `POST ${NODES}`,
        body: {
          metadata: { name: 'w1', labels: { 'kubernetes.io/hostname': 'w1' } },
          spec: { taints: [{ key: 'a', effect: 'NoSchedule' }], configSource: { configMap: { name: 'x' } } },
          status: {
            conditions: [{ type: 'Ready', status: 'False' }],
            addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
            config: { error: 'x' },
            nodeInfo: { kubeletVersion: 'v1.36.2' },
          },
        },
      },
      { send: `POST ${NODES}`, body: { metadata: { name: 'w0' } } },
      { send: `PATCH ${NODES}/w1`, body: { spec: { taints: [{ key: 'b', effect: 'NoExecute', value: 'v' }] } }, type: 'strategic' },
      { send: `PATCH ${NODES}/w1`, body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } }, type: 'strategic' },
      {
        send: `PATCH ${NODES}/w1/status`,
        body: {
          status: { conditions: [{ type: 'Disk', status: 'True' }] },
          metadata: { labels: { l: 'm' } },
          spec: { unschedulable: true },
        },
        type: 'strategic',
      },
      {
        send: `PATCH ${NODES}/w1/status`,
        body: { status: { addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] } },
        type: 'strategic',
      },
      {
        send: `PATCH ${NODES}/w1/status`,
        body: { status: { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] } },
        type: 'merge',
      },
      // Dropped, but field ownership may change, and with it the resourceVersion: the double keeps no managedFields.
      { send: `PATCH ${NODES}/w1`, body: { spec: { configSource: { configMap: { name: 'x' } } } }, type: 'strategic', compare: 'status' },
      { send: `PATCH ${NODES}/w1/status`, body: { status: { config: { error: 'x' } } }, type: 'strategic', compare: 'status' },
      { send: `PATCH ${NODES}/w1`, body: { spec: { taints: [{ key: 'a', effect: 'Foo' }] } }, type: 'strategic', compare: 'status' },
      {
        send: `PATCH ${NODES}/w1`,
        body: { spec: { taints: [{ key: '', effect: 'NoSchedule' }, { key: 'x' }] } },
        type: 'strategic',
        compare: 'status',
      },
      { send: `PATCH ${NODES}/w1`, body: { spec: { taints: null, unschedulable: true } }, type: 'strategic' },
      { send: `PATCH ${NODES}/w1`, body: { spec: { podCIDR: '10.0.0.0/24' } }, type: 'strategic' },
      { send: `PATCH ${NODES}/w1`, body: { spec: { podCIDR: '10.1.0.0/24' } }, type: 'strategic' },
      { send: `PATCH ${NODES}/w1`, body: { spec: { unschedulable: null, providerID: 'a://b' } }, type: 'merge' },
      { send: `PATCH ${NODES}/w1`, body: { spec: { providerID: 'a://c' } }, type: 'merge' },
      { send: `GET ${NODES}/w1/status` },
      { send: `GET ${NODES}?fieldSelector=spec.unschedulable%3Dtrue` },
      {
        send: `PATCH ${NODES}/w1`,
        body: { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' }, annotations: { a: 'b' } } },
        type: 'strategic',
      },
      { send: `POST ${NODES}`, body: { metadata: { name: 'W_2' } } },
    ],
  },
  {
    name: 'node identity',
    steps: [
      { send: `POST ${NODES}`, body: { metadata: { name: 'k1', labels: { 'kubernetes.io/hostname': 'k1', pool: 'x' } } }, as: node('k1') },
      { send: `POST ${NODES}`, body: { metadata: { name: 'k2' } }, as: node('k1') },
      { send: `POST ${NODES}`, body: { metadata: { name: 'k3', labels: { 'node-restriction.kubernetes.io/x': '' } } }, as: node('k3') },
      { send: `POST ${NODES}`, body: { metadata: { name: 'k3' }, spec: { configSource: { configMap: { name: 'x' } } } }, as: node('k3') },
      { send: `GET ${NODES}/k1`, as: node('k1') },
      { send: `GET ${NODES}/w9`, as: node('k1') },
      { send: `GET ${NODES}`, as: node('k1') },
      { send: `GET ${NODES}?fieldSelector=metadata.name%3Dk1`, as: node('k1') },
      { send: `DELETE ${NODES}/k1`, as: node('k1') },
      {
        send: `PATCH ${NODES}/k1/status`,
        body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } },
        type: 'strategic',
        as: node('k1'),
      },
      { send: `PATCH ${NODES}/k1`, body: { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }, type: 'strategic', as: node('k1') },
      {
        send: `PATCH ${NODES}/k1`,
        body: { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } },
        type: 'strategic',
        as: node('k1'),
      },
      {
        send: `PATCH ${NODES}/k1`,
        body: { metadata: { labels: { zone: 'a' }, annotations: { x: 'y' } } },
        type: 'strategic',
        as: node('k1'),
      },
      { send: `PATCH ${NODES}/k1`, body: {}, type: 'strategic', as: node('k2') },
      { send: `GET ${SYSTEM}/configmaps/kubelet-config`, as: node('k1') },
      { send: `GET ${SYSTEM}/configmaps`, as: node('k1') },
      { send: `PUT ${SYSTEM}/configmaps/kubelet-config`, body: configMap('kubelet-config'), as: node('k1') },
      { send: `GET ${SECRETS}/x`, as: node('k1') },
      { send: `POST ${LEASES}`, body: { metadata: { name: 'k1' }, spec: { holderIdentity: 'k1' } }, as: node('k1') },
      { send: `POST ${LEASES}`, body: { metadata: { name: 'k2' } }, as: node('k1') },
      { send: `GET ${LEASES}/k2`, as: node('k1') },
      { send: `GET ${LEASES}`, as: node('k1') },
      { send: 'GET /apis/coordination.k8s.io/v1/namespaces/default/leases/k1', as: node('k1') },
      { send: 'GET /api/v1/services', as: node('k1'), compare: 'status' },
      { send: `GET ${CSRS}`, as: node('k1') },
      { send: `GET ${NODES}/k1`, as: { user: 'system:node:', groups: ['system:nodes'] } },
      { send: `GET ${NODES}/k1`, as: { user: 'system:node:k1', groups: [] } },
    ],
  },
  {
    name: 'rbac',
    steps: [
      { send: `GET ${CM}`, as: 'anonymous' },
      { send: `GET ${CM}/x`, as: 'anonymous' },
      { send: `POST ${CM}`, body: configMap('x'), as: { user: 'bob' } },
      { send: `PUT ${NODES}/x/status`, body: {}, as: { user: 'bob' } },
      { send: `DELETE ${CM}`, as: { user: 'bob' } },
      { send: `GET ${NODES}?watch=true`, as: { user: 'bob' } },
      { send: 'GET /api/v1/namespaces/foo', as: { user: 'bob' } },
      { send: 'GET /metrics', as: { user: 'bob' } },
      { send: 'GET /api', as: 'anonymous' },
      { send: 'GET /version', as: 'anonymous', compare: 'status' },
      { send: 'GET /healthz', as: 'anonymous' },
      { send: 'GET /api/v1', as: { user: 'bob' }, compare: 'status' },
      { send: 'POST /api/v1/foos', body: {}, as: { user: 'bob' } },
      { send: 'GET /apis/foo.io/v1/namespaces/x/bars/y', as: { user: 'bob' } },
      { send: 'POST /apis/apps/v1/namespaces/d/deployments', body: {}, as: { user: 'bob' } },
      { send: 'GET /api/v1/namespaces/default/pods/x/log', as: { user: 'bob' } },
      {
        send: `POST ${RBAC}/namespaces/kube-public/roles`,
        body: role('info', [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['cluster-info'], verbs: ['get'] }]),
      },
      {
        send: `POST ${RBAC}/namespaces/kube-public/rolebindings`,
        body: bindingTo('info', { kind: 'Role', name: 'info' }, [{ kind: 'User', name: 'system:anonymous' }]),
      },
      { send: 'POST /api/v1/namespaces/kube-public/configmaps', body: configMap('cluster-info', { data: { a: 'b' } }) },
      { send: 'GET /api/v1/namespaces/kube-public/configmaps/none', as: 'anonymous' },
      {
        send: `POST ${RBAC}/namespaces/default/rolebindings`,
        body: bindingTo('dangling', { kind: 'Role', name: 'gone' }, [{ kind: 'Group', name: 'dev' }]),
      },
      { send: `GET ${CM}`, as: { user: 'eve', groups: ['dev'] } },
      {
        send: `POST ${RBAC}/namespaces/default/rolebindings`,
        body: bindingTo('bad', { kind: 'Foo', name: '' }, [{ kind: 'Bar', name: 'x' }]),
        compare: 'status',
      },
      {
        send: `POST ${RBAC}/namespaces/default/rolebindings`,
        body: bindingTo('admin', { kind: 'ClusterRole', name: 'cluster-admin' }, [{ kind: 'User', name: 'carl' }]),
      },
      {
        send: `PATCH ${RBAC}/namespaces/default/rolebindings/admin`,
        body: { roleRef: { name: 'view' } },
        type: 'merge',
        compare: 'status',
      },
      { send: `GET ${CM}?labelSelector=none`, as: { user: 'carl' } },
      { send: `GET ${SYSTEM}/configmaps`, as: { user: 'carl' } },
      {
        send: `POST ${RBAC}/namespaces/default/roles`,
        body: role('empty', [{ verbs: [] }, { verbs: ['get'], resources: ['x'] }]),
        compare: 'status',
      },
      { send: `GET ${CM}`, as: { token: 'nonsense' } },
      { send: 'GET /version', as: { token: 'nonsense' } },
    ],
  },
  {
    name: 'bootstrap tokens',
    steps: [
      {
        send: `POST ${SYSTEM}/secrets`,
        body: {
          metadata: { name: 'bootstrap-token-aaaaaa' },
          type: 'bootstrap.kubernetes.io/token',
          stringData: {
            'token-id': 'aaaaaa',
            'token-secret': '0123456789abcdef',
            'usage-bootstrap-authentication': 'true',
            'auth-extra-groups': 'system:bootstrappers:kubeadm:default-node-token',
          },
        },
        compare: 'status',
      },
      { send: 'POST /apis/authentication.k8s.io/v1/selfsubjectreviews', body: {}, as: { token: 'aaaaaa.0123456789abcdef' } },
      { send: `GET ${NODES}/x`, as: { token: 'aaaaaa.0123456789abcdef' } },
      { send: `GET ${NODES}/x`, as: { token: 'aaaaaa.0123456789abcdee' } },
      // Each token is used only once, because a real server caches the result for ten seconds.
      ...[
        { id: 'bbbbbb', data: { expiration: '2020-01-01T00:00:00Z', 'usage-bootstrap-authentication': 'true' } },
        { id: 'cccccc', data: { expiration: '2190-01-01T00:00:00Z', 'usage-bootstrap-authentication': 'true' } },
        { id: 'dddddd', data: { 'usage-bootstrap-authentication': 'yes' } },
        { id: 'eeeeee', data: { 'usage-bootstrap-authentication': 'true', 'auth-extra-groups': 'system:masters' } },
        { id: 'ffffff', data: { expiration: 'soon', 'usage-bootstrap-authentication': 'true' } },
      ].flatMap(({ id, data }) => [
        {
          send: `POST ${SYSTEM}/secrets`,
          body: {
            metadata: { name: `bootstrap-token-${id}` },
            type: 'bootstrap.kubernetes.io/token',
            stringData: { 'token-id': id, 'token-secret': '0123456789abcdef', ...data },
          },
          compare: 'status' as const,
        },
        { send: `GET ${NODES}/x`, as: { token: `${id}.0123456789abcdef` } },
      ]),
    ],
  },
  {
    name: 'certificate signing requests',
    steps: [
      {
        send: `POST ${CSRS}`,
        body: {
          metadata: { name: 'csr-1' },
          spec: {
            request: Buffer.from(NODE_CSR).toString('base64'),
            signerName: 'kubernetes.io/kubelet-serving',
            usages: ['digital signature', 'client auth'],
            username: 'nobody',
          },
          status: { conditions: [{ type: 'Approved', status: 'True' }] },
        },
        as: { user: 'system:bootstrap:aaaaaa', groups: ['system:masters', 'system:bootstrappers'] },
      },
      {
        send: `POST ${CSRS}`,
        body: { metadata: { name: 'csr-2' }, spec: { request: 'eA==', signerName: '', usages: ['x'] } },
        compare: 'status',
      },
      {
        send: `PATCH ${CSRS}/csr-1/approval`,
        body: { status: { conditions: [{ type: 'Approved', status: 'True', reason: 'ByHand', message: 'm' }], certificate: 'eA==' } },
        type: 'merge',
      },
      { send: `PATCH ${CSRS}/csr-1`, body: { spec: { signerName: 'a.b/c' }, status: { conditions: [] } }, type: 'merge' },
      { send: `GET ${CSRS}?fieldSelector=spec.signerName%3Dkubernetes.io/kubelet-serving`, compare: 'status' },
    ],
  },
  {
    name: 'reviews and tokens',
    steps: [
      { send: 'POST /apis/authentication.k8s.io/v1/selfsubjectreviews', body: {}, as: { user: 'bob', groups: ['g'] } },
      { send: 'GET /apis/authentication.k8s.io/v1/selfsubjectreviews' },
      {
        send: 'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
        body: { spec: { resourceAttributes: { namespace: 'default', verb: 'get', resource: 'configmaps', name: 'x' } } },
        as: { user: 'bob' },
      },
      { send: 'POST /api/v1/namespaces/default/serviceaccounts', body: { metadata: { name: 'robot' } } },
      { send: 'POST /api/v1/namespaces/default/serviceaccounts/robot/token', body: { spec: { expirationSeconds: 5 } } },
      { send: 'POST /api/v1/namespaces/default/serviceaccounts/none/token', body: { spec: {} } },
    ],
  },
];
