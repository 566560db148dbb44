import { describe, expect, it } from 'vitest';
import { type JsonObject, parseJson } from '../../src/base/json.ts';
import { revealText } from '../../src/base/text/secret.ts';
import type { Cluster } from '../../src/kube/cluster.ts';
import { parseKubeconfig } from '../../src/kube/kubeconfig.ts';
import { configMapData } from '../../src/kube/object.ts';
import type { ClusterConnections } from '../../src/kubeadm/ports.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../src/kubelet/defaults/effective-configuration.ts';
import { CONFIG_SOURCE_ANNOTATION, formatSourceAnnotation } from '../../src/kubelet/layers/config-source.ts';
import { hookAnswers } from '../../src/rollouts/cluster-api/hooks.ts';
import { clusterApiManifests } from '../support/cluster-api-manifests.ts';
import {
  definitions,
  HOOKS_API_VERSION,
  kubeadmConfig,
  kubeadmConfigSpec,
  machine,
  patchFile,
  UPDATE_IN_PROGRESS,
  updateMachine,
} from '../support/cluster-api-objects.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { recordingReporter } from '../support/recording-reporter.ts';
import { rolloutWorld } from '../support/rollout-world.ts';
import { virtualClock } from '../support/virtual-clock.ts';

const PATH = `/${HOOKS_API_VERSION}/updatemachine/update-machine`;
const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1' };
const MACHINE = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Machine', namespace: 'fleet', name: 'edge-1' };
const CONFIG = { apiVersion: 'bootstrap.cluster.x-k8s.io/v1beta2', kind: 'KubeadmConfig', namespace: 'fleet', name: 'edge-1' };
const SECRET = { apiVersion: 'v1', kind: 'Secret', namespace: 'fleet', name: 'edge-kubeconfig' };
const ACCOUNT = 'system:serviceaccount:kubeletadm-cluster-api:kubeletadm-cluster-api';
const SERVER = 'https://edge.example.com:6443';
const TOKEN = 'workload-token-1234567890';
const PEM = `-----BEGIN CERTIFICATE-----\n${Buffer.from('ca').toString('base64')}\n-----END CERTIFICATE-----\n`;

function kubeconfig(user: JsonObject = { token: TOKEN }): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'edge',
    clusters: [{ name: 'edge', cluster: { server: SERVER, 'certificate-authority-data': Buffer.from(PEM).toString('base64') } }],
    users: [{ name: 'admin', user }],
    contexts: [{ name: 'edge', context: { cluster: 'edge', user: 'admin' } }],
  });
}

interface Response {
  readonly status: 'Success' | 'Failure';
  readonly message: string;
  readonly retryAfterSeconds: number;
}

/** A management cluster whose Machine is being updated in place, and the workload cluster of its Node with an agent. */
async function world(
  content: string,
  { names = ['n1'], running = {} }: { readonly names?: readonly string[]; readonly running?: JsonObject } = {},
) {
  const { fleet, cluster: workload } = await rolloutWorld(names, { trialSeconds: 60 });
  const kubeletconfig = effectiveConfiguration({ maxPods: 110, ...running }, { catalogue: await loadCatalogue(), minor: 36 });
  for (const name of names)
    fleet.cluster.proxyNode(name, (path) => (path === '/configz' ? { status: 200, body: { kubeletconfig } } : null));
  const spec = kubeadmConfigSpec([patchFile(content)]);
  const stored = machine();
  const annotations = { [UPDATE_IN_PROGRESS]: '' };
  const management = fakeCluster({
    objects: [
      ...definitions(),
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fleet' } },
      { ...stored, metadata: { ...stored.metadata, annotations }, status: { nodeRef: { name: 'n1' } } },
      kubeadmConfig(spec),
      { ...SECRET, metadata: { namespace: 'fleet', name: SECRET.name }, data: { value: Buffer.from(kubeconfig()).toString('base64') } },
    ],
  });
  // The rights of deploy/cluster-api.
  const rights = clusterApiManifests().filter(({ kind }) =>
    ['Namespace', 'ServiceAccount', 'ClusterRole', 'ClusterRoleBinding'].includes(kind),
  );
  for (const object of rights) await management.create(object);
  const account = fakeCluster({ sharedWith: management, user: { name: ACCOUNT, groups: ['system:authenticated'] } });
  const connected: string[] = [];
  const workloadClient: { cluster: Cluster } = { cluster: workload };
  const connectCluster: ClusterConnections['connectCluster'] = async ({ kubeconfig: given }) => {
    connected.push(parseKubeconfig(revealText(given.text), given.file).clusters[0]?.server ?? '');
    return { ...workloadClient.cluster, close: async () => undefined };
  };
  const reporter = recordingReporter();
  const clock = { ...virtualClock(), now: fleet.clock.now };
  /** As a new process. */
  const extension = () => {
    const answers = hookAnswers(
      { management: account, connectCluster, clock, reporter },
      { allow: 'new-pods-only', namespace: 'kubeletadm-system' },
    );
    return async (request: unknown = updateMachine(spec)): Promise<Response> => {
      const answer = await answers(PATH, request);
      if (answer === null || !('response' in answer)) throw new Error(JSON.stringify(answer));
      const { apiVersion, kind, ...response } = answer.response;
      expect([apiVersion, kind]).toEqual([HOOKS_API_VERSION, 'UpdateMachineResponse']);
      return response as unknown as Response;
    };
  };
  return { fleet, workload, management, extension, reporter, connected, workloadClient, spec, update: extension() };
}
type World = Awaited<ReturnType<typeof world>>;

const overlays = async ({ workload }: World) =>
  (await workload.list({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'kubeletadm-system' })).items.filter(({ metadata }) =>
    metadata.name.startsWith('cluster-api-'),
  );
const assignment = async ({ workload }: World) => (await workload.get(NODE))?.metadata.annotations?.[CONFIG_SOURCE_ANNOTATION];

describe('UpdateMachine', () => {
  it('assigns the kubelet patches to the Node and ends with the trial, also if the extension is restarted before each call', async () => {
    const one = await world('maxPods: 120\n');
    const answers: Response[] = [];
    for (let i = 0; i < 20 && answers.at(-1)?.retryAfterSeconds !== 0; i++) {
      answers.push(await one.extension()());
      await one.fleet.pass(10);
    }
    expect(answers.every(({ status }) => status === 'Success')).toBe(true);
    expect([...new Set(answers.map(({ message }) => message.replace(/cluster-api-\w+/, 'X')))]).toEqual([
      'Node n1 is assigned kubeletadm-system/X/kubelet',
      'Node n1 with kubeletadm-system/X/kubelet: trial',
      'Node n1 with kubeletadm-system/X/kubelet: updated',
    ]);
    expect(one.fleet.elapsedSeconds).toBeGreaterThan(60);
    expect(one.fleet.restarts.get('n1')).toBe(1);
    const [map, ...others] = await overlays(one);
    expect([map?.immutable, others, parseJson(configMapData(map ?? null).kubelet ?? '')]).toEqual([
      true,
      [],
      { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'KubeletConfigurationOverlay', maxPods: 120 },
    ]);
    expect(await one.update()).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
    const { items } = await one.workload.list({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      namespace: 'kubeletadm-system',
    });
    expect(JSON.stringify(items.map(({ subjects }) => subjects))).toContain('system:node:n1');
    expect([...new Set(one.connected)]).toEqual([SERVER]);
    expect(JSON.stringify([one.reporter.events, answers])).not.toContain(TOKEN);
  });

  it.each(['create RoleBinding', 'create ConfigMap', 'patch Node n1', 'create Event'])(
    'continues after the extension was killed at: %s',
    async (call) => {
      const one = await world('maxPods: 120\n');
      const killed = { ...one.workload, create: one.workload.create };
      one.fleet.cluster.failNext(call, new Error('killed'));
      one.workloadClient.cluster = killed;
      await one
        .extension()()
        .catch(() => undefined);
      for (let i = 0; i < 12; i++) {
        await one.extension()();
        await one.fleet.pass(10);
      }
      expect(await one.extension()()).toMatchObject({ status: 'Success', retryAfterSeconds: 0 });
      expect([(await overlays(one)).length, one.fleet.restarts.get('n1')]).toEqual([1, 1]);
    },
  );

  it('fails with the cause if the agent rolls the configuration back', async () => {
    const one = await world('maxPods: 121\n');
    one.fleet.behaviours.set('121', () => ({ healthz: { ok: false, why: 'broken' } }) as object);
    let last = await one.update();
    for (let i = 0; i < 30 && last.status === 'Success'; i++) {
      await one.fleet.pass(10);
      last = await one.update();
    }
    expect(last).toMatchObject({
      status: 'Failure',
      retryAfterSeconds: 0,
      message: expect.stringMatching(/^Node n1 with .*: rolled-back: .*\[MACHINE_NOT_UPDATED\]$/),
    });
    expect(one.fleet.runs()).toEqual({ n1: 'local' });
    // The same answer again: Cluster API repeats the request.
    expect(await one.extension()()).toEqual(last);
  });

  it('fails with the cause if the agent rejects the configuration', async () => {
    const one = await world('maxPods: 121\n');
    one.fleet.riskyWords.add('121');
    await one.update();
    await one.fleet.pass(10);
    expect(await one.update()).toMatchObject({ status: 'Failure', message: expect.stringMatching(/: rejected: /) });
  });

  it('is done without an assignment where the kubelet runs the configuration', async () => {
    const one = await world('maxPods: 110\n');
    expect(await one.update()).toEqual({ status: 'Success', message: 'Node n1 runs this configuration', retryAfterSeconds: 0 });
    expect([await assignment(one), await overlays(one)]).toEqual([undefined, []]);
  });

  it('replaces its own earlier assignment', async () => {
    const one = await world('maxPods: 120\n');
    await one.update();
    const before = await assignment(one);
    const spec = kubeadmConfigSpec([patchFile('maxPods: 130\n')]);
    await one.management.patch(CONFIG, 'merge', { spec });
    expect(await one.update(updateMachine(spec))).toMatchObject({ status: 'Success' });
    expect(await assignment(one)).not.toBe(before);
  });

  it('answers one of two updates at the same time again, without a failure', async () => {
    const one = await world('maxPods: 120\n');
    const answers = await Promise.all([one.extension()(), one.extension()()]);
    expect(answers.map(({ status }) => status)).toEqual(['Success', 'Success']);
    expect(answers.every(({ retryAfterSeconds }) => retryAfterSeconds > 0)).toBe(true);
  });

  it('answers in time while an API server does not respond, and joins the running update', async () => {
    const one = await world('maxPods: 120\n');
    let release = (): void => undefined;
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    one.workloadClient.cluster = { ...one.workload, get: (ref) => blocked.then(() => one.workload.get(ref)) };
    expect(await one.update()).toMatchObject({ status: 'Failure', message: expect.stringContaining('did not answer within 8 s') });
    const second = one.update();
    release();
    expect(await second).toMatchObject({ status: 'Success', retryAfterSeconds: 10 });
    expect(one.connected).toHaveLength(1);
  });

  /** The state of the clusters, and why no Node is changed. */
  const REFUSED: readonly [string, (one: World) => Promise<unknown>, RegExp][] = [
    ['the Machine does not exist', ({ management }) => management.delete(MACHINE), /Machine fleet\/edge-1 does not exist/],
    [
      'no update is in progress',
      ({ management }) => management.patch(MACHINE, 'merge', { metadata: { annotations: null } }),
      /no update in place of Machine fleet\/edge-1 is in progress/,
    ],
    [
      'the version differs',
      ({ management }) => management.patch(MACHINE, 'merge', { spec: { version: 'v1.37.0' } }),
      /differs .* in spec.version/,
    ],
    [
      'the cluster differs',
      ({ management }) => management.patch(MACHINE, 'merge', { spec: { clusterName: 'other' } }),
      /differs .* in spec.clusterName/,
    ],
    [
      'the Machine has another KubeadmConfig',
      ({ management }) => management.patch(MACHINE, 'merge', { spec: { bootstrap: { configRef: { name: 'other' } } } }),
      /differs .* in spec.bootstrap.configRef/,
    ],
    [
      'the Machine has another bootstrap provider',
      ({ management }) => management.patch(MACHINE, 'merge', { spec: { bootstrap: { configRef: { kind: 'K0sConfig' } } } }),
      /has no KubeadmConfig/,
    ],
    ['the Machine has no Node', ({ management }) => management.patch(MACHINE, 'merge', { status: { nodeRef: null } }), /has no Node yet/],
    ['the KubeadmConfig does not exist', ({ management }) => management.delete(CONFIG), /KubeadmConfig fleet\/edge-1 does not exist/],
    [
      'the stored patches differ',
      ({ management }) => management.patch(CONFIG, 'merge', { spec: kubeadmConfigSpec([patchFile('maxPods: 121\n')]) }),
      /differs from KubeadmConfig fleet\/edge-1 in its kubelet patches/,
    ],
    [
      'the stored patches are not readable',
      ({ management }) =>
        management.patch(CONFIG, 'merge', { spec: kubeadmConfigSpec([patchFile('maxPods: 120\n', { encoding: 'base64' })]) }),
      /because of encoding/,
    ],
    [
      'there is no kubeconfig',
      ({ management }) => management.delete(SECRET),
      /Secret fleet\/edge-kubeconfig with the key value does not exist/,
    ],
    [
      'the kubeconfig would run a program',
      ({ management }) =>
        management.patch(SECRET, 'merge', {
          data: {
            value: Buffer.from(kubeconfig({ exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh' } })).toString('base64'),
          },
        }),
      /users\[0\].user.exec.*HOST_KUBECONFIG_REFUSED/,
    ],
    ['the Node does not exist', ({ workload }) => workload.delete(NODE), /has no Node n1/],
    [
      'the Node is of another machine',
      ({ workload }) => workload.patch(NODE, 'merge', { spec: { providerID: 'dev:////other' } }),
      /providerID/,
    ],
    [
      'the kubelet has another version',
      ({ workload }) => workload.patch(NODE, 'merge', { status: { nodeInfo: { kubeletVersion: 'v1.35.1' } } }, { subresource: 'status' }),
      /the kubelet of Node n1 is v1.35.1/,
    ],
    [
      'the Node has no agent',
      ({ workload }) =>
        workload.patch(NODE, 'merge', {
          metadata: { annotations: { 'kubeletadm.dev/config-status': null, 'kubeletadm.dev/config-report': null } },
        }),
      /no agent runs on Node n1.*kubeletadm dynamic enable n1/,
    ],
    [
      'the Node has another assignment',
      ({ workload }) =>
        workload.patch(NODE, 'merge', {
          metadata: {
            annotations: {
              [CONFIG_SOURCE_ANNOTATION]: formatSourceAnnotation({
                namespace: 'kubeletadm-system',
                name: 'own',
                kubeletConfigKey: 'kubelet',
              }),
            },
          },
        }),
      /Node n1 is assigned kubeletadm-system\/own\/kubelet/,
    ],
    [
      'the running configuration is not known',
      async ({ fleet }) => fleet.cluster.proxyNode('n1', () => 'down'),
      /running configuration of the kubelet of Node n1 cannot be read/,
    ],
  ];
  it.each(REFUSED)('changes nothing if %s', async (_, change, why) => {
    const one = await world('maxPods: 120\n');
    await change(one);
    const before = await assignment(one);
    expect(await one.update()).toEqual({ status: 'Failure', retryAfterSeconds: 0, message: expect.stringMatching(why) });
    expect([await assignment(one), await overlays(one)]).toEqual([before, []]);
  });

  it('changes nothing if the change of the running configuration exceeds --allow', async () => {
    const one = await world('maxPods: 120\ntopologyManagerPolicy: best-effort\n');
    expect(await one.update()).toMatchObject({
      status: 'Failure',
      message: expect.stringMatching(/exceed --allow new-pods-only: topologyManagerPolicy \(drain\)/),
    });
    expect([await assignment(one), await overlays(one)]).toEqual([undefined, []]);
  });

  it.each<[string, (request: JsonObject) => unknown]>([
    ['no bootstrapConfig', ({ desired, ...request }) => ({ ...request, desired: { ...(desired as JsonObject), bootstrapConfig: null } })],
    ['no desired objects', ({ desired: _, ...request }) => request],
    [
      'a machine of another name',
      (request) => JSON.parse(JSON.stringify(request).replaceAll('"name":"edge-1"', '"name":"../../secrets/x"')),
    ],
  ])('refuses a request with %s', async (_, change) => {
    const one = await world('maxPods: 120\n');
    expect(await one.update(change(updateMachine(one.spec)))).toMatchObject({ status: 'Failure', retryAfterSeconds: 0 });
    expect(await assignment(one)).toBeUndefined();
  });
});
