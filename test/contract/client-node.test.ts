import {
  ApiException,
  CoreV1Api,
  KubeConfig,
  PatchStrategy,
  RbacAuthorizationV1Api,
  setHeaderOptions,
  Watch,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startApiServer } from '../../lab/api-server/server.ts';
import { findRealBinaries, startRealApiServer } from '../support/real-apiserver.ts';
import { requirement } from '../support/requirement.ts';

interface Server {
  readonly kubeconfig: string;
  close(): Promise<void>;
}

/** The view of an independent client on an API server. @param start with Namespaces `default` and `kube-system` */
function describeForeignClient(start: () => Promise<Server>): void {
  let server: Server;
  let config: KubeConfig;
  let core: CoreV1Api;
  let rbac: RbacAuthorizationV1Api;
  const namespace = 'default';

  beforeAll(async () => {
    server = await start();
    config = new KubeConfig();
    config.loadFromString(server.kubeconfig);
    core = config.makeApiClient(CoreV1Api);
    rbac = config.makeApiClient(RbacAuthorizationV1Api);
  }, 120_000);
  afterAll(() => server?.close());

  /** The Status of a refused request. */
  async function refusalOf(request: Promise<unknown>): Promise<{ readonly code: number; readonly reason: string; readonly kind: string }> {
    const error = await request.then(
      () => null,
      (thrown: unknown) => thrown,
    );
    if (!(error instanceof ApiException)) throw new Error(`not refused by the server: ${String(error)}`);
    const { kind, reason } = JSON.parse(error.body as string) as { readonly kind: string; readonly reason: string };
    return { code: error.code, kind, reason };
  }

  it('creates, gets, lists, replaces and deletes ConfigMaps', async () => {
    const created = await core.createNamespacedConfigMap({
      namespace,
      body: { metadata: { name: 'crud', labels: { app: 'crud' } }, data: { a: '1' } },
    });
    expect(created).toMatchObject({ metadata: { name: 'crud', namespace }, data: { a: '1' } });
    expect(created.metadata?.uid).toMatch(/^[0-9a-f-]{36}$/);
    const read = await core.readNamespacedConfigMap({ namespace, name: 'crud' });
    expect(read).toEqual(created);
    const list = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=crud' });
    expect(list.items.map(({ metadata }) => metadata?.name)).toEqual(['crud']);
    const replaced = await core.replaceNamespacedConfigMap({ namespace, name: 'crud', body: { ...read, data: { b: '2' } } });
    expect(replaced.data).toEqual({ b: '2' });
    expect(replaced.metadata?.resourceVersion).not.toBe(read.metadata?.resourceVersion);
    // The version that was read is no longer the newest.
    expect(await refusalOf(core.replaceNamespacedConfigMap({ namespace, name: 'crud', body: read }))).toEqual({
      code: 409,
      kind: 'Status',
      reason: 'Conflict',
    });
    await core.deleteNamespacedConfigMap({ namespace, name: 'crud' });
    expect(await refusalOf(core.readNamespacedConfigMap({ namespace, name: 'crud' }))).toEqual({
      code: 404,
      kind: 'Status',
      reason: 'NotFound',
    });
  });

  it('refuses to create what exists', async () => {
    const body = { metadata: { name: 'twice' } };
    await core.createNamespacedConfigMap({ namespace, body });
    expect(await refusalOf(core.createNamespacedConfigMap({ namespace, body }))).toEqual({
      code: 409,
      kind: 'Status',
      reason: 'AlreadyExists',
    });
  });

  it('patches Nodes: merge, strategic merge and JSON', async () => {
    await core.createNode({ body: { metadata: { name: 'node-a' }, spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } } });
    const merged = await core.patchNode(
      { name: 'node-a', body: { metadata: { annotations: { note: 'x' } } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    expect(merged.metadata?.annotations?.note).toBe('x');
    const keyed = await core.patchNode(
      { name: 'node-a', body: { spec: { taints: [{ key: 'b', effect: 'NoExecute' }] } } },
      setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
    );
    expect(keyed.spec?.taints?.map(({ key }) => key)).toEqual(['b']);
    const tested = await core.patchNode(
      { name: 'node-a', body: [{ op: 'remove', path: '/metadata/annotations/note' }] },
      setHeaderOptions('Content-Type', PatchStrategy.JsonPatch),
    );
    expect(tested.metadata?.annotations?.note).toBeUndefined();
    const withStatus = await core.patchNodeStatus(
      { name: 'node-a', body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
      setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
    );
    expect(withStatus.status?.conditions).toMatchObject([{ type: 'Ready', status: 'True' }]);
  });

  it('creates and lists RoleBindings', async () => {
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' };
    const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }];
    await rbac.createNamespacedRole({
      namespace,
      body: { metadata: { name: 'reader' }, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }] },
    });
    await rbac.createNamespacedRoleBinding({ namespace, body: { metadata: { name: 'readers' }, roleRef, subjects } });
    const { items } = await rbac.listNamespacedRoleBinding({ namespace });
    expect(items.find(({ metadata }) => metadata?.name === 'readers')).toMatchObject({ roleRef, subjects });
    await rbac.deleteNamespacedRoleBinding({ namespace, name: 'readers' });
    expect((await rbac.listNamespacedRoleBinding({ namespace })).items.map(({ metadata }) => metadata?.name)).not.toContain('readers');
  });

  it('watches from the version of a list', async () => {
    const { metadata } = await core.listNamespacedConfigMap({ namespace });
    const events: string[] = [];
    const { promise: isDeleted, resolve: onDeleted, reject: onEnd } = withResolvers<void>();
    const controller = await new Watch(config).watch(
      `/api/v1/namespaces/${namespace}/configmaps`,
      { resourceVersion: metadata?.resourceVersion, fieldSelector: 'metadata.name=watched' },
      (type: string, { data }: { readonly data?: Readonly<Record<string, string>> }) => {
        events.push(`${type} ${data?.step}`);
        if (type === 'DELETED') onDeleted();
      },
      (error: unknown) => onEnd(error ?? new Error('the server ended the watch')),
    );
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'unrelated' } } });
    await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'watched' }, data: { step: '1' } } });
    await core.patchNamespacedConfigMap(
      { namespace, name: 'watched', body: { data: { step: '2' } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    await core.deleteNamespacedConfigMap({ namespace, name: 'watched' });
    await isDeleted;
    controller.abort();
    expect(events).toEqual(['ADDED 1', 'MODIFIED 2', 'DELETED 2']);
  });
}

/** As `Promise.withResolvers`, which Node.js 20 does not have. */
function withResolvers<T>() {
  let [resolve, reject]: [(value: T) => void, (reason: unknown) => void] = [() => undefined, () => undefined];
  const promise = new Promise<T>((...settle) => {
    [resolve, reject] = settle;
  });
  return { promise, resolve, reject };
}

describe('@kubernetes/client-node and the API server double', () => {
  describeForeignClient(async () => {
    const api = await startApiServer();
    return { kubeconfig: api.adminKubeconfig(), close: () => api.close() };
  });
});

const binaries = findRealBinaries();

describe.skipIf(requirement('@kubernetes/client-node and a real kube-apiserver', typeof binaries === 'string' ? binaries : null))(
  '@kubernetes/client-node and a real kube-apiserver',
  () => {
    describeForeignClient(async () => {
      if (typeof binaries === 'string') throw new Error(binaries);
      const real = await startRealApiServer(binaries);
      return { kubeconfig: real.adminKubeconfig(), close: () => real.close() };
    });
  },
);
