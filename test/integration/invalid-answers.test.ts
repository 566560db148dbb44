import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { collect } from '../contract/cluster.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { runCommand } from '../support/run-cli.ts';

/** A web server in place of the API server: answers every request with 200 and one JSON object. */
let body: object = {};
let web: Server;
let url: string;
let kubeconfig: string;
const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-answers-'));
const kubelet = join(directory, 'kubelet.yaml');

beforeAll(async () => {
  web = createServer((_, response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(`${JSON.stringify({ gitVersion: 'v1.36.2', ...body })}\n`);
  });
  url = `http://127.0.0.1:${await listenOnLoopback(web)}`;
  kubeconfig = join(directory, 'admin.conf');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'c', user: '' } }],
    clusters: [{ name: 'c', cluster: { server: url } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  writeFileSync(kubelet, 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n');
});
afterAll(async () => {
  await new Promise((resolve) => web.close(resolve));
  rmSync(directory, { recursive: true, force: true });
});

const META = { resourceVersion: '1' };
/** `KIND` is replaced by the listed kind. */
const LISTS: readonly (readonly [what: string, body: object, reason: string])[] = [
  ['no items', {}, 'items: expected array, received undefined'],
  ['items that are not a list', { metadata: META, items: { a: 1 } }, 'items: expected array, received object'],
  ['an item that is not an object', { metadata: META, items: [null] }, 'items[0]: expected object, received null'],
  ['an item without metadata', { metadata: META, items: [{ spec: {} }] }, 'items[0].metadata: expected object, received undefined'],
  ['an item without a name', { metadata: META, items: [{ metadata: {} }] }, 'items[0].metadata.name: expected string, received undefined'],
  [
    'labels that are not strings',
    { metadata: META, items: [{ metadata: { name: 'x', labels: { a: 1 } } }] },
    'items[0].metadata.labels.a: expected',
  ],
  [
    'annotations that are a string',
    { metadata: META, items: [{ metadata: { name: 'x', annotations: 'a' } }] },
    'items[0].metadata.annotations: exp',
  ],
  ['no metadata of the list', { items: [] }, 'metadata: expected object, received undefined'],
];
const COMMANDS: readonly (readonly [argv: readonly string[], path: string])[] = [
  [['csr', 'list'], 'GET /apis/certificates.k8s.io/v1/certificatesigningrequests'],
  [['token', 'list'], 'GET /api/v1/namespaces/kube-system/secrets'],
  [['dynamic', 'status'], 'GET /api/v1/nodes'],
  [['dynamic', 'gc'], 'GET /api/v1/n'],
];

describe.each(COMMANDS)('%j reports', (argv, path) => {
  it.each(LISTS)('a list with %s', async (_, answer, reason) => {
    body = answer;
    const { code, stdout, stderr } = await runCommand([...argv, '--kubeconfig', kubeconfig]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`: ${url} answered ${path}`);
    expect(stderr).toContain(` with an invalid Kubernetes object: ${reason}`);
    expect(stderr).toMatch(/\. Check the server address in the kubeconfig: .*\. \[CLUSTER_ANSWER_INVALID\]\n$/);
    // A command that changes a cluster prints the cluster's name first.
    const problems = stderr
      .trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith('cluster: '));
    expect(problems).toHaveLength(1);
  });
});

describe('fields that the program reads are validated', () => {
  const item = (members: object): object => ({ metadata: META, items: [{ metadata: { name: 'x' }, ...members }] });
  it.each<[readonly string[], object, string]>([
    [['token', 'list'], item({ data: { 'token-id': 4 } }), 'items[0].data.token-id: expected string, received number'],
    [['dynamic', 'status'], item({ status: { conditions: 'x' } }), 'items[0].status.conditions: expected array, received string'],
    [['dynamic', 'status'], item({ status: { conditions: [null] } }), 'items[0].status.conditions[0]: expected object, received null'],
    [['dynamic', 'status'], item({ status: null }), 'items[0].status: expected object, received null'],
    [
      ['dynamic', 'status'],
      item({ status: { nodeInfo: { kubeletVersion: 4 } } }),
      'items[0].status.nodeInfo.kubeletVersion: expected string',
    ],
    [['dynamic', 'gc'], item({ data: [] }), 'items[0].data: expected record, received array'],
  ])('%j %j', async (argv, answer, reason) => {
    body = answer;
    const { code, stderr } = await runCommand([...argv, '--kubeconfig', kubeconfig]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
    expect(stderr).toMatch(/\[CLUSTER_ANSWER_INVALID\]\n$/);
  });
});

describe('config diff cluster reports', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kubelet-config' } };
  it.each<[string, object, string]>([
    ['an object without metadata', {}, 'apiVersion: expected string, received undefined'],
    ['an object without apiVersion, as of a status page', { status: 'ok' }, 'apiVersion: expected string, received undefined'],
    ['an object without a name', { ...object, metadata: {} }, 'metadata.name: expected string, received undefined'],
    ['metadata that is a list', { ...object, metadata: [] }, 'metadata: expected object, received array'],
    ['an object of another kind', { ...object, kind: 'Pod' }, 'kind: expected ConfigMap, received Pod'],
    ['an object of another name', { ...object, metadata: { name: 'other' } }, 'metadata.name: expected kube'],
  ])('%s', async (_, answer, reason) => {
    body = answer;
    const { code, stdout, stderr } = await runCommand(['config', 'diff', 'cluster', kubelet, '--kubeconfig', kubeconfig]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`: ${url} answered GET /api/v1/namespaces/kube-system/configmaps/kube`);
    expect(stderr).toContain(` with an invalid Kubernetes object: ${reason}`);
    expect(stderr).toMatch(/\[CLUSTER_ANSWER_INVALID\]\n$/);
  });
});

describe('API server client', () => {
  const node: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'x' } };
  const ref = { apiVersion: 'v1', kind: 'Node', name: 'x' };
  const invalid = (method: string, reason: string) => ({
    code: 'CLUSTER_ANSWER_INVALID',
    message: expect.stringMatching(new RegExp(`answered ${method} /api/v1/nodes\\S* with an invalid Kubernetes object: ${reason}`)),
  });
  let cluster: Cluster;
  beforeAll(() => {
    cluster = kubeCluster({ kubeconfig: { path: kubeconfig } });
  });
  afterAll(() => cluster.close());

  it.each<[string, string, () => Promise<unknown>]>([
    ['create', 'POST', () => cluster.create(node)],
    ['update', 'PUT', () => cluster.update(node)],
    ['patch', 'PATCH', () => cluster.patch(ref, 'merge', {})],
    ['delete', 'DELETE', () => cluster.delete(ref)],
    ['get', 'GET', () => cluster.get(ref)],
  ])('rejects an answer without metadata to %s', async (_, method, call) => {
    body = { apiVersion: 'v1', kind: 'Node' };
    await expect(call()).rejects.toMatchObject(invalid(method, 'metadata: expected object, received undefined'));
  });

  it.each<[string, object, string]>([
    [
      'without metadata',
      { type: 'ADDED', object: { apiVersion: 'v1', kind: 'Node' } },
      'object.metadata: expected object, received undefined',
    ],
    ['of another kind', { type: 'MODIFIED', object: { ...node, kind: 'Pod' } }, 'object.kind: expected Node, received Pod'],
    ['that is a bookmark without a version', { type: 'BOOKMARK', object: node }, 'object.metadata.resourceVersion: expected string'],
  ])('rejects an event %s', async (_, event, reason) => {
    body = event;
    await expect(collect(cluster.watch({ apiVersion: 'v1', kind: 'Node' }, {}))).rejects.toMatchObject(
      invalid('GET', reason.replaceAll('.', '\\.')),
    );
  });

  it('accepts a bookmark, whose object has a resourceVersion and no name', async () => {
    const bookmark = {
      type: 'BOOKMARK',
      object: { apiVersion: 'v1', kind: 'Node', metadata: { resourceVersion: '7', creationTimestamp: null } },
    };
    body = bookmark;
    const first = await cluster.watch({ apiVersion: 'v1', kind: 'Node' }, {})[Symbol.asyncIterator]().next();
    expect(first.value).toMatchObject(bookmark);
  });

  it('accepts the answer to a review, which has no name', async () => {
    const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', metadata: { creationTimestamp: null } };
    body = { ...review, status: { allowed: true } };
    expect(await cluster.create({ ...review, metadata: {} } as unknown as KubeObject)).toMatchObject({ status: { allowed: true } });
  });

  it('accepts a list whose items are null, as some aggregated API servers write an empty list', async () => {
    body = { apiVersion: 'v1', kind: 'NodeList', metadata: {}, items: null };
    expect(await cluster.list({ apiVersion: 'v1', kind: 'Node' })).toEqual({ items: [], resourceVersion: '' });
  });
});
