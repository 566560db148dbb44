import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NodeProxy } from '../../lab/api-server/node-proxy.ts';
import type { Cluster, WatchEvent } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';

/** A running cluster and operations on it from outside. */
export interface ClusterWorld {
  /** As an admin. */
  readonly cluster: Cluster;
  /** The same cluster as another user. */
  as(user: string, groups?: readonly string[]): Promise<Cluster>;
  /** Starts a kubelet behind a Node that answers `/configz`; null where no kubelet is available. */
  readonly proxyNode: ((name: string, proxy: NodeProxy) => void) | null;
  /** Makes the server discard its history; a watch from an older version is rejected. */
  readonly forgetHistory: () => Promise<void>;
  /** Makes the server send bookmarks to open watches; null when this cannot be triggered. */
  readonly bookmark: (() => void) | null;
  /** Stops the server and starts it again; null when the cluster has no server. */
  readonly restart: ((whileDown: () => Promise<void>) => Promise<void>) | null;
  close(): Promise<void>;
}

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap' } as const;
const NODE = { apiVersion: 'v1', kind: 'Node' } as const;

const configMap = (name: string, data: Record<string, string> = {}, labels?: Record<string, string>): KubeObject => ({
  ...CONFIG_MAP,
  metadata: { name, namespace: 'default', ...(labels ? { labels } : {}) },
  data,
});
const ref = (name: string) => ({ ...CONFIG_MAP, namespace: 'default', name });
const nodeRef = (name: string) => ({ ...NODE, name });

/** The common behaviour of every Cluster implementation. */
export function clusterContract(name: string, start: () => Promise<ClusterWorld>): void {
  describe(name, () => {
    let world: ClusterWorld;
    let cluster: Cluster;
    beforeAll(async () => {
      world = await start();
      cluster = world.cluster;
    });
    afterAll(() => world?.close());

    it('returns its version and address', async () => {
      expect(await cluster.version()).toMatch(/^v1\.\d+\.\d+/);
      expect(cluster.server).toMatch(/^https:\/\//);
    });

    it('returns the result of a dry-run patch without storing it', async () => {
      await cluster.create(configMap('dry-1', { a: '1' }));
      const shown = await cluster.patch(ref('dry-1'), 'merge', { data: { a: '2' } }, { dryRun: true });
      expect(shown.data).toEqual({ a: '2' });
      expect((await cluster.get(ref('dry-1')))?.data).toEqual({ a: '1' });
    });

    describe('get', () => {
      it.each([
        ['a ConfigMap', ref('absent')],
        ['a Node', nodeRef('absent')],
        ['an object in a namespace that does not exist', { ...ref('absent'), namespace: 'nowhere' }],
      ])('returns null for %s that does not exist', async (_, absent) => {
        expect(await cluster.get(absent)).toBeNull();
      });

      it('returns the created object', async () => {
        const created = await cluster.create(configMap('get-1', { a: '1' }, { app: 'x' }));
        expect(created).toMatchObject({
          ...CONFIG_MAP,
          metadata: { name: 'get-1', namespace: 'default', labels: { app: 'x' } },
          data: { a: '1' },
        });
        expect(created.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
        expect(created.metadata.resourceVersion).toMatch(/^\d+$/);
        expect(created.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
        expect(await cluster.get(ref('get-1'))).toEqual(created);
      });
    });

    describe('create', () => {
      it('rejects an existing object', async () => {
        await cluster.create(configMap('create-1'));
        await expect(cluster.create(configMap('create-1'))).rejects.toMatchObject({
          code: 'CLUSTER_ALREADY_EXISTS',
          message: 'cannot create ConfigMap default/create-1: configmaps "create-1" already exists [CLUSTER_ALREADY_EXISTS]',
        });
      });

      it('rejects a namespace that does not exist', async () => {
        const lost = { ...configMap('create-2'), metadata: { name: 'create-2', namespace: 'nowhere' } };
        await expect(cluster.create(lost)).rejects.toMatchObject({ code: 'CLUSTER_NOT_FOUND' });
      });

      it('rejects an invalid object with the message of the server', async () => {
        await expect(cluster.create(configMap('Create_3'))).rejects.toMatchObject({
          code: 'CLUSTER_INVALID',
          message: expect.stringContaining('ConfigMap "Create_3" is invalid: metadata.name: Invalid value: "Create_3"'),
        });
      });

      it('rejects a kind that is not served', async () => {
        const unknown = { apiVersion: 'example.com/v1', kind: 'Unicorn', metadata: { name: 'u' } };
        await expect(cluster.create(unknown)).rejects.toMatchObject({
          code: 'CLUSTER_NO_SUCH_KIND',
          message: expect.stringContaining('has no kind Unicorn in example.com/v1'),
        });
      });

      it('never repeats a secret in an error', async () => {
        const secret: KubeObject = {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'create-4', namespace: 'default' },
          stringData: { key: 'hunter2' },
        };
        await cluster.create(secret);
        const patch = { stringData: { key: { nested: 'hunter2' } } };
        const error: unknown = await cluster
          .patch({ apiVersion: 'v1', kind: 'Secret', namespace: 'default', name: 'create-4' }, 'merge', patch)
          .catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'CLUSTER_INVALID' });
        expect(String(error)).not.toMatch(/hunter2|aHVudGVyMg/);
      });
    });

    describe('update', () => {
      it('replaces the whole object', async () => {
        await cluster.create(configMap('update-1', { a: '1', b: '2' }, { app: 'x' }));
        const updated = await cluster.update(configMap('update-1', { a: '3' }));
        expect(updated).toMatchObject({ data: { a: '3' } });
        expect(updated.metadata.labels).toBeUndefined();
      });

      it('succeeds with the latest resourceVersion, and fails with an older one', async () => {
        const first = await cluster.create(configMap('update-2', { a: '1' }));
        const second = await cluster.update({ ...first, data: { a: '2' } });
        await expect(cluster.update({ ...first, data: { a: '3' } })).rejects.toMatchObject({
          code: 'CLUSTER_CONFLICT',
          message: expect.stringContaining('the object has been modified'),
        });
        expect(await cluster.get(ref('update-2'))).toEqual(second);
      });

      it('keeps the resourceVersion when nothing changes', async () => {
        const created = await cluster.create(configMap('update-3', { a: '1' }));
        const updated = await cluster.update(configMap('update-3', { a: '1' }));
        expect(updated.metadata.resourceVersion).toBe(created.metadata.resourceVersion);
      });

      it('rejects an object that does not exist', async () => {
        await expect(cluster.update(configMap('update-4'))).rejects.toMatchObject({ code: 'CLUSTER_NOT_FOUND' });
      });
    });

    describe('patch', () => {
      it('merges', async () => {
        await cluster.create(configMap('patch-1', { a: '1', b: '2' }));
        const patched = await cluster.patch(ref('patch-1'), 'merge', { data: { b: null, c: '3' } });
        expect(patched).toMatchObject({ data: { a: '1', c: '3' } });
        expect(patched.data).not.toHaveProperty('b');
      });

      it('runs JSON patch operations, all or none', async () => {
        await cluster.create(configMap('patch-2', { a: '1' }));
        await cluster.patch(ref('patch-2'), 'json', [
          { op: 'test', path: '/data/a', value: '1' },
          { op: 'add', path: '/data/b', value: '2' },
        ]);
        const failing = [
          { op: 'add', path: '/data/c', value: '3' },
          { op: 'test', path: '/data/a', value: 'other' },
        ];
        await expect(cluster.patch(ref('patch-2'), 'json', failing)).rejects.toMatchObject({ code: 'CLUSTER_INVALID' });
        expect(await cluster.get(ref('patch-2'))).toMatchObject({ data: { a: '1', b: '2' } });
      });

      it('rejects a missing object', async () => {
        await expect(cluster.patch(ref('patch-3'), 'merge', {})).rejects.toMatchObject({ code: 'CLUSTER_NOT_FOUND' });
      });

      it('succeeds only with the current resourceVersion', async () => {
        const created = await cluster.create(configMap('patch-4', { a: '1' }));
        const { resourceVersion = '' } = created.metadata;
        await cluster.patch(ref('patch-4'), 'merge', { metadata: { resourceVersion }, data: { a: '2' } });
        await expect(cluster.patch(ref('patch-4'), 'merge', { metadata: { resourceVersion }, data: { a: '3' } })).rejects.toMatchObject({
          code: 'CLUSTER_CONFLICT',
        });
      });

      it('changes labels, annotations and taints of a Node, and its status only through the subresource', async () => {
        await cluster.create({
          ...NODE,
          metadata: { name: 'patch-node', labels: { 'kubernetes.io/hostname': 'patch-node' } },
          spec: { taints: [{ key: 'first', effect: 'NoSchedule' }] },
        });
        const patched = await cluster.patch(nodeRef('patch-node'), 'strategic', {
          metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' }, annotations: { a: 'b' } },
          spec: { taints: [{ key: 'second', effect: 'NoExecute', value: 'v' }] },
          status: { conditions: [{ type: 'Ready', status: 'True' }] },
        });
        expect(patched.metadata.labels).toMatchObject({
          'kubernetes.io/hostname': 'patch-node',
          'node-role.kubernetes.io/control-plane': '',
        });
        expect(patched.metadata.annotations).toMatchObject({ a: 'b' });
        // Taints have no merge key: the list is replaced.
        expect(patched.spec).toMatchObject({ taints: [{ key: 'second', effect: 'NoExecute', value: 'v' }] });
        expect(patched.status).not.toHaveProperty('conditions');
        const ready = {
          status: { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] },
          spec: { unschedulable: true },
        };
        await cluster.patch(nodeRef('patch-node'), 'strategic', ready, { subresource: 'status' });
        const disk = { status: { conditions: [{ type: 'DiskPressure', status: 'False' }] } };
        const both = await cluster.patch(nodeRef('patch-node'), 'strategic', disk, { subresource: 'status' });
        expect(both.status).toMatchObject({ conditions: [{ type: 'DiskPressure' }, { type: 'Ready', reason: 'KubeletReady' }] });
        expect(both.spec).not.toHaveProperty('unschedulable');
      });
    });

    describe('list', () => {
      beforeAll(async () => {
        await cluster.create(configMap('list-1', {}, { suite: 'list', tier: 'a' }));
        await cluster.create(configMap('list-2', {}, { suite: 'list', tier: 'b' }));
        await cluster.create({
          ...configMap('list-3', {}, { suite: 'list' }),
          metadata: { name: 'list-3', namespace: 'kube-system', labels: { suite: 'list' } },
        });
      });
      const names = async (options: object, namespace?: string) => {
        const kind = namespace === undefined ? CONFIG_MAP : { ...CONFIG_MAP, namespace };
        return (await cluster.list(kind, options)).items.map((item) => item.metadata.name);
      };

      it.each([
        ['suite=list', ['list-1', 'list-2']],
        ['suite=list,tier in (a,c)', ['list-1']],
        ['suite=list,tier notin (a)', ['list-2']],
        ['suite=list,tier!=b', ['list-1']],
        ['suite,!tier', []],
      ])('selects by label: %s', async (labelSelector, expected) => {
        expect(await names({ labelSelector }, 'default')).toEqual(expected);
      });

      it('selects by field', async () => {
        expect(await names({ fieldSelector: 'metadata.name=list-2' }, 'default')).toEqual(['list-2']);
      });

      it('spans all namespaces without a namespace', async () => {
        expect(await names({ labelSelector: 'suite=list' })).toEqual(['list-1', 'list-2', 'list-3']);
      });

      it('returns complete objects, and a resourceVersion for a watch', async () => {
        const { items, resourceVersion } = await cluster.list({ ...CONFIG_MAP, namespace: 'default' }, { labelSelector: 'tier=a' });
        expect(items).toEqual([await cluster.get(ref('list-1'))]);
        expect(resourceVersion).toMatch(/^\d+$/);
      });

      it('returns an empty list for a namespace that does not exist', async () => {
        expect(await names({}, 'nowhere')).toEqual([]);
      });

      it('rejects an invalid selector', async () => {
        await expect(cluster.list(CONFIG_MAP, { labelSelector: 'a b c' })).rejects.toMatchObject({
          code: 'CLUSTER_ERROR',
          message: expect.stringContaining("unable to parse requirement: found 'b'"),
        });
      });
    });

    describe('delete', () => {
      it('deletes, and returns null for a missing object', async () => {
        const created = await cluster.create(configMap('delete-1'));
        expect(await cluster.delete(ref('delete-1'))).toMatchObject({
          ...CONFIG_MAP,
          metadata: { name: 'delete-1', namespace: 'default', uid: created.metadata.uid },
        });
        expect(await cluster.get(ref('delete-1'))).toBeNull();
        expect(await cluster.delete(ref('delete-1'))).toBeNull();
      });

      it('only marks objects with finalizers', async () => {
        await cluster.create({
          ...configMap('delete-2'),
          metadata: { name: 'delete-2', namespace: 'default', finalizers: ['example.com/wait'] },
        });
        const marked = await cluster.delete(ref('delete-2'));
        expect(marked?.metadata.deletionTimestamp).toMatch(/Z$/);
        expect(await cluster.get(ref('delete-2'))).toEqual(marked);
        await cluster.patch(ref('delete-2'), 'merge', { metadata: { finalizers: null } });
        expect(await cluster.get(ref('delete-2'))).toBeNull();
      });
    });

    describe('watch', () => {
      const version = async () => (await cluster.list({ ...CONFIG_MAP, namespace: 'default' })).resourceVersion;
      const kind = { ...CONFIG_MAP, namespace: 'default' };

      it('sends every change after a version, in order', async () => {
        const resourceVersion = await version();
        const created = await cluster.create(configMap('watch-1', { a: '1' }));
        const updated = await cluster.update(configMap('watch-1', { a: '2' }));
        await cluster.delete(ref('watch-1'));
        const events = await take(3, (signal) => cluster.watch(kind, { resourceVersion, signal }));
        expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED']);
        expect(events[0]?.object).toEqual(created);
        expect(events[1]?.object).toEqual(updated);
        expect(events[2]?.object).toMatchObject({ ...CONFIG_MAP, metadata: { name: 'watch-1' }, data: { a: '2' } });
        expect(Number(events[2]?.object.metadata.resourceVersion)).toBeGreaterThan(Number(updated.metadata.resourceVersion));
      });

      it('sends changes that happen while it is open', async () => {
        const resourceVersion = await version();
        const watching = take(2, (signal) =>
          cluster.watch({ ...kind, namespace: 'default' }, { resourceVersion, signal, fieldSelector: 'metadata.name=watch-2' }),
        );
        await cluster.create(configMap('watch-other'));
        await cluster.create(configMap('watch-2', { a: '1' }));
        await cluster.patch(ref('watch-2'), 'merge', { data: { a: 'ä€😀\nx' } });
        expect((await watching).map(({ type, object }) => [type, object.data])).toEqual([
          ['ADDED', { a: '1' }],
          ['MODIFIED', { a: 'ä€😀\nx' }],
        ]);
      });

      it('resumes from the last version seen', async () => {
        const resourceVersion = await version();
        await cluster.create(configMap('watch-3', { a: '1' }));
        const [first] = await take(1, (signal) => cluster.watch(kind, { resourceVersion, signal }));
        await cluster.update(configMap('watch-3', { a: '2' }));
        const seen = first?.object.metadata.resourceVersion ?? '';
        const [second] = await take(1, (signal) => cluster.watch(kind, { resourceVersion: seen, signal }));
        expect(second).toMatchObject({ type: 'MODIFIED', object: { data: { a: '2' } } });
      });

      it('sends ADDED and DELETED when an object starts and stops matching its selector', async () => {
        const resourceVersion = await version();
        await cluster.create(configMap('watch-4', { n: '1' }, { shown: 'no' }));
        await cluster.update(configMap('watch-4', { n: '2' }, { shown: 'yes' }));
        await cluster.update(configMap('watch-4', { n: '3' }, { shown: 'no' }));
        const events = await take(2, (signal) => cluster.watch(kind, { resourceVersion, signal, labelSelector: 'shown=yes' }));
        expect(events.map(({ type, object }) => [type, object.data])).toEqual([
          ['ADDED', { n: '2' }],
          ['DELETED', { n: '2' }],
        ]);
      });

      it('ends without an error when it is aborted', async () => {
        const resourceVersion = await version();
        const stop = new AbortController();
        const watching = collect(cluster.watch(kind, { resourceVersion, signal: stop.signal }));
        stop.abort();
        expect(await watching).toEqual([]);
      });

      it('ends immediately when it was aborted before', async () => {
        expect(await collect(cluster.watch(kind, { resourceVersion: '1', signal: AbortSignal.abort() }))).toEqual([]);
      });

      it('sends bookmarks', async (test) => {
        const { bookmark } = world;
        if (bookmark === null) return test.skip();
        const resourceVersion = await version();
        const marker = await cluster.create(configMap('watch-5'));
        const stop = new AbortController();
        const events: WatchEvent[] = [];
        for await (const event of cluster.watch({ ...CONFIG_MAP, namespace: 'default' }, { resourceVersion, signal: stop.signal })) {
          events.push(event);
          if (event.type === 'BOOKMARK') break;
          bookmark();
        }
        expect(events.at(-1)).toEqual({
          type: 'BOOKMARK',
          object: { ...CONFIG_MAP, metadata: { resourceVersion: marker.metadata.resourceVersion } },
        });
      });

      it('is rejected for an expired version', async () => {
        const resourceVersion = await version();
        await cluster.create(configMap('watch-6'));
        await world.forgetHistory();
        await expect(collect(cluster.watch(kind, { resourceVersion }))).rejects.toMatchObject({
          code: 'CLUSTER_GONE',
          message: expect.stringMatching(/^cannot watch ConfigMaps in namespace "default": too old resource version: \d+ \(\d+\)/),
        });
        const fresh = await version();
        await cluster.create(configMap('watch-7'));
        expect(await take(1, (signal) => cluster.watch(kind, { resourceVersion: fresh, signal }))).toMatchObject([
          { object: { metadata: { name: 'watch-7' } } },
        ]);
      });

      it('ends when the server stops, and resumes when it restarts', async (test) => {
        const { restart } = world;
        if (restart === null) return test.skip();
        const resourceVersion = await version();
        const watching = collect(cluster.watch(kind, { resourceVersion }));
        await cluster.create(configMap('watch-8'));
        let whileDown: unknown;
        await restart(async () => {
          whileDown = await cluster.get(ref('watch-8')).catch((error: unknown) => error);
        });
        const events = await watching;
        expect(whileDown).toMatchObject({ code: 'CLUSTER_UNREACHABLE', message: expect.stringContaining(': connection refused. ') });
        expect(events.map(({ object }) => object.metadata.name)).toEqual(['watch-8']);
        const fresh = await version();
        await cluster.create(configMap('watch-9'));
        expect(await take(1, (signal) => cluster.watch(kind, { resourceVersion: fresh, signal }))).toMatchObject([
          { object: { metadata: { name: 'watch-9' } } },
        ]);
      });
    });

    describe('a user without permissions', () => {
      const cases: readonly (readonly [string, (bob: Cluster) => Promise<unknown>, string])[] = [
        [
          'get',
          (bob) => bob.get(ref('x')),
          'cannot get ConfigMap default/x: configmaps "x" is forbidden: User "bob" cannot get resource "configmaps" in API group "" in the namespace "default"',
        ],
        [
          'list',
          (bob) => bob.list(NODE),
          'cannot list Nodes: nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope',
        ],
        [
          'create',
          (bob) => bob.create(configMap('x')),
          'cannot create ConfigMap default/x: configmaps is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "default"',
        ],
        [
          'patch',
          (bob) => bob.patch(nodeRef('x'), 'merge', {}, { subresource: 'status' }),
          'cannot patch Node x: nodes "x" is forbidden: User "bob" cannot patch resource "nodes/status" in API group "" at the cluster scope',
        ],
        [
          'watch',
          (bob) => collect(bob.watch(NODE, {})),
          'cannot watch Nodes: nodes is forbidden: User "bob" cannot watch resource "nodes" in API group "" at the cluster scope',
        ],
      ];
      it.each(cases)('is refused to %s', async (_, query, message) => {
        const bob = await world.as('bob');
        await expect(query(bob)).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN', message: `${message} [CLUSTER_FORBIDDEN]` });
        await bob.close();
      });

      it('may do what a role allows', async () => {
        const bob = await world.as('carl', ['readers']);
        const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1' };
        await cluster.create(configMap('role-1', { a: '1' }));
        await cluster.create({
          ...rbac,
          kind: 'Role',
          metadata: { name: 'role-1', namespace: 'default' },
          rules: [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['role-1'], verbs: ['get'] }],
        });
        await cluster.create({
          ...rbac,
          kind: 'RoleBinding',
          metadata: { name: 'role-1', namespace: 'default' },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'role-1' },
          subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }],
        });
        expect(await eventually(() => bob.get(ref('role-1')))).toMatchObject({ data: { a: '1' } });
        await expect(bob.get(ref('role-2'))).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });
        await bob.close();
      });
    });

    describe('getRaw', () => {
      const configz = (node: string) => `/api/v1/nodes/${node}/proxy/configz`;

      it('returns the object at a path', async () => {
        expect(await cluster.getRaw('/api/v1/namespaces/default')).toMatchObject({ kind: 'Namespace', metadata: { name: 'default' } });
      });

      it('rejects a node that does not exist', async () => {
        await expect(cluster.getRaw(configz('raw-0'))).rejects.toMatchObject({
          code: 'CLUSTER_NOT_FOUND',
          message: `cannot get ${configz('raw-0')}: nodes "raw-0" not found [CLUSTER_NOT_FOUND]`,
        });
      });

      it('rejects a user without permission', async () => {
        const bob = await world.as('bob');
        await expect(bob.getRaw(configz('raw-1'))).rejects.toMatchObject({
          code: 'CLUSTER_FORBIDDEN',
          message: expect.stringContaining('User "bob" cannot get resource "nodes/proxy" in API group "" at the cluster scope'),
        });
        await bob.close();
      });

      it('reaches the kubelet of a node', async () => {
        if (world.proxyNode === null) return;
        await cluster.create({ ...NODE, metadata: { name: 'raw-1' } });
        world.proxyNode('raw-1', (path) => (path === '/configz' ? { status: 200, body: { kubeletconfig: { maxPods: 42 } } } : null));
        expect(await cluster.getRaw(configz('raw-1'))).toEqual({ kubeletconfig: { maxPods: 42 } });
        await expect(cluster.getRaw('/api/v1/nodes/raw-1/proxy/nowhere')).rejects.toMatchObject({
          code: 'CLUSTER_NOT_FOUND',
          message: 'cannot get /api/v1/nodes/raw-1/proxy/nowhere: 404 page not found [CLUSTER_NOT_FOUND]',
        });
      });

      it('reports an unreachable kubelet', async () => {
        if (world.proxyNode === null) return;
        await cluster.create({
          ...NODE,
          metadata: { name: 'raw-2' },
          status: { addresses: [{ type: 'InternalIP', address: '10.0.0.2' }] },
        });
        world.proxyNode('raw-2', () => 'down');
        await expect(cluster.getRaw(configz('raw-2'))).rejects.toMatchObject({
          code: 'CLUSTER_ERROR',
          message: expect.stringContaining('error trying to reach service: dial tcp 10.0.0.2:10250: connect: connection refused'),
        });
      });
    });

    describe('evict', () => {
      it('deletes a pod without a budget, and reports one that does not exist', async () => {
        const pod = await runningPod(cluster, 'evict-1', {});
        expect(await cluster.evict({ ...pod, uid: '00000000-0000-0000-0000-000000000000' })).toMatchObject({
          kind: 'refused',
          httpStatus: 409,
        });
        expect(await cluster.evict(pod, { gracePeriodSeconds: 0 })).toEqual({ kind: 'evicted' });
        expect(await cluster.evict(pod)).toEqual({ kind: 'gone' });
      });

      it('returns the refusal of a budget, and that of several budgets', async () => {
        const pod = await runningPod(cluster, 'evict-2', { app: 'evict-2' });
        const budget = (name: string): KubeObject => ({
          apiVersion: 'policy/v1',
          kind: 'PodDisruptionBudget',
          metadata: { name, namespace: 'default' },
          spec: { minAvailable: 1, selector: { matchLabels: { app: 'evict-2' } } },
        });
        await cluster.create(budget('evict-2a'));
        expect(await cluster.evict(pod)).toMatchObject({
          kind: 'refused',
          httpStatus: 429,
          why: expect.stringContaining('disruption budget evict-2a'),
        });
        await cluster.create(budget('evict-2b'));
        expect(await cluster.evict(pod)).toMatchObject({ kind: 'refused', httpStatus: 500, why: expect.stringContaining('more than one') });
      });
    });
  });
}

/** A pod that a kubelet has started. */
async function runningPod(cluster: Cluster, name: string, labels: Readonly<Record<string, string>>) {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels },
    // An existing Node is not needed.
    spec: { nodeName: 'nowhere', containers: [{ name: 'main', image: 'example.org/main:1' }], automountServiceAccountToken: false },
  };
  // Without kube-controller-manager, the namespace has no ServiceAccount.
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', namespace: 'default', name: 'default' };
  if ((await cluster.get(account)) === null)
    await cluster.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'default' } });
  const { metadata } = await cluster.create(pod);
  const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name };
  const conditions = [{ type: 'Ready', status: 'True' }];
  await cluster.patch(ref, 'merge', { status: { phase: 'Running', conditions } }, { subresource: 'status' });
  return { namespace: 'default', name, uid: metadata.uid ?? '' };
}

/** The first events of a watch. */
export async function take(count: number, open: (signal: AbortSignal) => AsyncIterable<WatchEvent>): Promise<readonly WatchEvent[]> {
  const stop = AbortSignal.timeout(20_000);
  const events: WatchEvent[] = [];
  for await (const event of open(stop)) {
    if (event.type !== 'BOOKMARK') events.push(event);
    if (events.length === count) break;
  }
  return events;
}

/** All events of a watch until it ends. */
export async function collect(watch: AsyncIterable<WatchEvent>): Promise<readonly WatchEvent[]> {
  const events: WatchEvent[] = [];
  for await (const event of watch) events.push(event);
  return events;
}

/** A new role takes effect with a delay on a real server. */
async function eventually<T>(query: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 10_000;
  for (;;) {
    try {
      return await query();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}
