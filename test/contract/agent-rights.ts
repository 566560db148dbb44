import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject } from '../../src/base/json.ts';
import { patchesFor } from '../../src/dynamic/agent/report-status.ts';
import { newAgentState } from '../../src/dynamic/agent/state.ts';
import { applyClusterChange } from '../../src/host/apply.ts';
import { AGENT_NAMESPACE } from '../../src/kube/agent-namespace.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { agentRightsPhase } from '../../src/kubeadm/phases/agent-rights.ts';
import { DEFAULT_TIMING } from '../../src/kubelet/health/assess.ts';
import { CONFIG_STATUS_ANNOTATION } from '../../src/kubelet/layers/config-source.ts';
import { fakeClock } from '../support/fake-clock.ts';
import { fakeHost } from '../support/fake-host.ts';
import { recordingReporter } from '../support/recording-reporter.ts';

interface World {
  readonly admin: Cluster;
  /** A client with the certificate of a node's kubelet, `system:node:NAME`. */
  asKubelet(node: string): Promise<Cluster>;
  /** Deletes the dependents of deleted objects. */
  readonly collectsGarbage: boolean;
  close(): Promise<void>;
}

const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
const RBAC = 'rbac.authorization.k8s.io/v1';

/** A permission: `VERB GROUP/RESOURCE[/SUBRESOURCE] NAMESPACE NAME`, `*` for the cluster or any name. */
export type Right = string;
interface Asked {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
/** Verbs of some resources only, which discovery does not list. */
const OTHER_VERBS: Readonly<Record<string, readonly string[]>> = {
  nodes: ['proxy'],
  users: ['impersonate'],
  groups: ['impersonate'],
  serviceaccounts: ['impersonate'],
  roles: ['bind', 'escalate'],
  clusterroles: ['bind', 'escalate'],
  certificatesigningrequests: ['approve'],
  signers: ['approve', 'sign', 'attest'],
};
/** Subresources that kubelets check, in addition to discovery. */
const NOT_DISCOVERED = [
  ...['configz', 'checkpoint', 'healthz', 'log', 'metrics', 'pods', 'proxy', 'spec', 'stats'].map((name) => `nodes/${name}`),
  'users',
  'groups',
];
const NAMESPACES = [AGENT_NAMESPACE, 'kube-system', 'default'];
const PATHS = ['/', '/metrics', '/logs', '/configz', '/debug/pprof', '/api', '/apis'];

/** Every permission that a review can check, by the API server's discovery. */
export async function everything(admin: Cluster): Promise<readonly Asked[]> {
  const { groups = [] } = (await admin.getRaw('/apis')) as { readonly groups?: readonly { readonly versions: readonly JsonObject[] }[] };
  const versions = ['v1', ...groups.flatMap((group) => group.versions.map(({ groupVersion }) => String(groupVersion)))];
  const lists = await Promise.all(versions.map((version) => admin.getRaw(version === 'v1' ? '/api/v1' : `/apis/${version}`)));
  const found = new Map<string, { readonly group: string; readonly path: string; readonly isNamespaced: boolean }>();
  for (const [i, { resources }] of lists.entries()) {
    const version = versions[i] as string;
    const group = version.includes('/') ? (version.split('/')[0] as string) : '';
    for (const one of Array.isArray(resources) ? resources.filter(isJsonObject) : [])
      found.set(`${group}/${String(one.name)}`, { group, path: String(one.name), isNamespaced: one.namespaced === true });
  }
  for (const path of NOT_DISCOVERED) found.set(`/${path}`, { group: '', path, isNamespaced: false });
  found.set('certificates.k8s.io/signers', { group: 'certificates.k8s.io', path: 'signers', isNamespaced: false });
  return [...found.values()].flatMap(({ group, path, isNamespaced }) => {
    const [resource = '', subresource = ''] = path.split('/');
    const names = resource === 'nodes' ? ['', 'n1', 'n2'] : ['', 'x'];
    const verbs = [...VERBS, ...(subresource === '' ? (OTHER_VERBS[resource] ?? []) : [])];
    return verbs.flatMap((verb) =>
      (isNamespaced ? ['', ...NAMESPACES] : ['']).flatMap((namespace) =>
        names.map((name) => ({ verb, group, resource, subresource, namespace, name })),
      ),
    );
  });
}

function describeAsked({ verb, group, resource, subresource, namespace, name }: Asked): Right {
  const what = `${group === '' ? '' : `${group}/`}${resource}${subresource === '' ? '' : `/${subresource}`}`;
  return `${verb} ${what} ${namespace || '*'} ${name || '*'}`;
}

/** All permissions of a client. */
export async function rightsOf(client: Cluster, asked: readonly Asked[]): Promise<ReadonlySet<Right>> {
  const granted = new Set<Right>();
  const review = async (spec: JsonObject, right: Right): Promise<void> => {
    const answer = await client.create({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      metadata: {} as KubeObject['metadata'],
      spec,
    });
    if ((answer.status as { readonly allowed?: boolean }).allowed === true) granted.add(right);
  };
  const queue = [
    ...asked.map((one) => () => review({ resourceAttributes: { ...one } }, describeAsked(one))),
    ...PATHS.map((path) => () => review({ nonResourceAttributes: { path, verb: 'get' } }, `get ${path}`)),
  ];
  const worker = async (): Promise<void> => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) await next();
  };
  await Promise.all(Array.from({ length: 20 }, worker));
  return granted;
}

/** The changes of `dynamic enable` in the cluster. */
async function grant(admin: Cluster): Promise<void> {
  const context = { host: fakeHost(), cluster: admin, clock: fakeClock(), reporter: recordingReporter() };
  const { plan } = await agentRightsPhase.inspect(context, { nodeName: 'n1', namespace: AGENT_NAMESPACE });
  for (const change of plan.changes) await applyClusterChange(admin, change as Parameters<typeof applyClusterChange>[1]);
  expect((await agentRightsPhase.inspect(context, { nodeName: 'n1', namespace: AGENT_NAMESPACE })).plan.changes).toEqual([]);
}

const GRANTED: readonly Right[] = [
  ...['get', 'list', 'watch'].flatMap((verb) => ['*', 'x'].map((name) => `${verb} configmaps ${AGENT_NAMESPACE} ${name}`)),
  'get nodes/configz * n1',
];

/** The permissions of the kubelet's credential after `dynamic enable`, compared with those before. */
export function rightsContract(name: string, start: () => Promise<World>): void {
  describe(name, () => {
    it('adds what the agent reads to the credential of the kubelet, and nothing else', async () => {
      const world = await start();
      const { admin } = world;
      try {
        for (const node of ['n1', 'n2']) await admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
        const [own, other] = [await world.asKubelet('n1'), await world.asKubelet('n2')];
        const asked = await everything(admin);
        expect(asked.length).toBeGreaterThan(1000);
        const before = await rightsOf(own, asked);
        expect(before.has('get nodes * n1')).toBe(true);
        expect(before.has('get nodes * n2')).toBe(false);
        await grant(admin);
        // New rules may take effect with a delay.
        const mine = { apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE };
        await expect
          .poll(
            () =>
              own.list(mine).then(
                () => true,
                () => false,
              ),
            { timeout: 20_000 },
          )
          .toBe(true);
        const after = await rightsOf(own, asked);
        expect([...after].filter((right) => !before.has(right)).sort()).toEqual([...GRANTED].sort());
        expect([...before].filter((right) => !after.has(right))).toEqual([]);
        expect(
          [...after].filter((right) =>
            /serviceaccounts\/token|nodes\/proxy|impersonate|escalate| configmaps (\*|kube-system) /.test(right),
          ),
        ).toEqual([]);
        // Another node gains no permission.
        expect([...(await rightsOf(other, asked))].filter((right) => GRANTED.includes(right))).toEqual([]);
        await Promise.all([own.close(), other.close()]);
      } finally {
        await world.close();
      }
    }, 600_000);

    it('is enough for all that the agent does, and stops where NodeRestriction does', async () => {
      const world = await start();
      const { admin } = world;
      try {
        const data = { kubelet: 'x' };
        for (const node of ['n1', 'n2']) await admin.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
        await grant(admin);
        for (const namespace of [AGENT_NAMESPACE, 'kube-system'])
          await admin.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace }, data });
        const own = await world.asKubelet('n1');
        const map = { apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE, name: 'a' };
        await expect
          .poll(
            () =>
              own.get(map).then(
                (found) => found?.data,
                () => null,
              ),
            { timeout: 20_000 },
          )
          .toEqual(data);

        // The agent's requests: watch its Node and a ConfigMap by name, and report status.
        const stop = new AbortController();
        for (const followed of [
          { kind: { apiVersion: 'v1', kind: 'Node' }, fieldSelector: 'metadata.name=n1' },
          { kind: { apiVersion: 'v1', kind: 'ConfigMap', namespace: AGENT_NAMESPACE }, fieldSelector: 'metadata.name=a' },
        ]) {
          const { items, resourceVersion } = await own.list(followed.kind, { fieldSelector: followed.fieldSelector });
          expect(items).toHaveLength(1);
          const events = own.watch(followed.kind, { fieldSelector: followed.fieldSelector, resourceVersion, signal: stop.signal });
          const first = events[Symbol.asyncIterator]().next();
          const { name, namespace } = (items[0] as KubeObject).metadata;
          const ref = { ...followed.kind, name, ...(namespace === undefined ? {} : { namespace }) };
          await admin.patch(ref, 'merge', { metadata: { annotations: { touched: 'yes' } } });
          expect((await first).value).toMatchObject({ type: 'MODIFIED', object: { metadata: { name } } });
        }
        stop.abort();
        for (const { subresource, patch } of patchesFor((await own.get(NODE)) as KubeObject, newAgentState(0), new Date(), {
          timing: DEFAULT_TIMING,
          signersFile: null,
        }))
          await own.patch(NODE, subresource === undefined ? 'merge' : 'strategic', patch, subresource === undefined ? {} : { subresource });
        const reported = await admin.get(NODE);
        expect(reported?.metadata.annotations?.[CONFIG_STATUS_ANNOTATION]).toBe('{}');
        expect(reported?.status).toMatchObject({ conditions: [expect.objectContaining({ type: 'KubeletConfigOk', reason: 'Starting' })] });
        const involvedObject = { kind: 'Node', name: 'n1', uid: 'n1' };
        await own.create({
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { name: 'n1.1', namespace: 'default' },
          involvedObject,
          reason: 'x',
        });

        const owner = { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n2', uid: 'u' }] };
        const forbidden: Readonly<Record<string, () => Promise<unknown>>> = {
          'a label that decides on pods': () =>
            own.patch(NODE, 'merge', { metadata: { labels: { 'node-restriction.kubernetes.io/pci': 'true' } } }),
          'the label of a control plane': () =>
            own.patch(NODE, 'merge', { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } }),
          'a taint': () => own.patch(NODE, 'merge', { spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } }),
          'an owner of the Node': () => own.patch(NODE, 'merge', { metadata: owner }),
          'the annotation of another Node': () => own.patch({ ...NODE, name: 'n2' }, 'merge', { metadata: { annotations: { a: 'b' } } }),
          'the status of another Node': () =>
            own.patch({ ...NODE, name: 'n2' }, 'strategic', { status: { conditions: [] } }, { subresource: 'status' }),
          'all Nodes': () => own.list({ apiVersion: 'v1', kind: 'Node' }),
          'its own kubelet through the API server': () => own.getRaw('/api/v1/nodes/n1/proxy/pods'),
          'the configz of its own kubelet through the API server': () => own.getRaw('/api/v1/nodes/n1/proxy/configz'),
          'another kubelet through the API server': () => own.getRaw('/api/v1/nodes/n2/proxy/pods'),
          'a ConfigMap of kube-system': () => own.get({ ...map, namespace: 'kube-system' }),
          'the ConfigMaps of kube-system': () => own.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kube-system' }),
          'the ConfigMaps of all namespaces': () => own.list({ apiVersion: 'v1', kind: 'ConfigMap' }),
          'a ConfigMap that it may read, changed': () => own.patch(map, 'merge', { data: { kubelet: 'y' } }),
          'a Secret next to it': () => own.get({ ...map, kind: 'Secret' }),
          'its own rights, extended': () =>
            own.patch({ apiVersion: RBAC, kind: 'ClusterRole', name: 'kubeletadm:agent:n1' }, 'merge', { rules: [] }),
        };
        for (const [what, attempt] of Object.entries(forbidden))
          await expect(attempt(), what).rejects.toMatchObject({ code: 'CLUSTER_FORBIDDEN' });

        await admin.delete(NODE);
        if (world.collectsGarbage) {
          const left = async (): Promise<number> => {
            const lists = await Promise.all(
              ['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'].map((kind) => admin.list({ apiVersion: RBAC, kind })),
            );
            return lists.flatMap(({ items }) => items).filter(({ metadata }) => metadata.name === 'kubeletadm:agent:n1').length;
          };
          await expect.poll(left, { timeout: 120_000, interval: 1_000 }).toBe(0);
        }
        await own.close();
      } finally {
        await world.close();
      }
    }, 300_000);
  });
}
