import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../../../src/kubelet/defaults/effective-configuration.ts';
import { describeRisk, findPodRisks } from '../../../../src/kubelet/workload/pod-risks.ts';
import { readPodInput } from '../../../../src/kubelet/workload/read-pod-input.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakePod } from '../../../support/pods-on-node.ts';

const catalogue = await loadCatalogue();

/** The Node of a kubelet 1.36 without gates, as its API server shows it. */
const NODE: KubeObject = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'w1' },
  status: {
    capacity: { cpu: '4', memory: '8Gi', pods: '110' },
    allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
    declaredFeatures: ['ExtendWebSocketsToKubelet', 'InPlacePodLevelResourcesVerticalScaling', 'RestartAllContainersOnContainerExits'],
  },
};

const podWith = (name: string, spec: JsonObject): KubeObject => {
  const pod = fakePod({ name });
  return { ...pod, spec: { ...(pod.spec as JsonObject), ...spec } };
};
const RULE = { action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [88] } };
const RESTARTS = podWith('worker', { containers: [{ name: 'main', image: 'x:1', restartPolicyRules: [RULE] }] });
const INIT_RESTARTS = podWith('setup', { initContainers: [{ name: 'init', image: 'x:1', restartPolicyRules: [RULE] }] });
const RESTARTS_ONE = podWith('single', {
  containers: [{ name: 'main', image: 'x:1', restartPolicyRules: [{ ...RULE, action: 'Restart' }] }],
});
const ISOLATED = podWith('isolated', { hostUsers: false });
const ISOLATED_HOST = podWith('isolated-host', { hostUsers: false, hostNetwork: true });
const SIZED = podWith('sized', { resources: { requests: { cpu: '1' } } });
const PLAIN = podWith('plain', { hostUsers: true, resources: {} });
const ALL = [RESTARTS, INIT_RESTARTS, RESTARTS_ONE, ISOLATED, ISOLATED_HOST, SIZED, PLAIN];

async function risksOf(before: JsonObject | null, after: JsonObject, { minor = 36, pods = ALL, node = NODE } = {}) {
  const config = (own: JsonObject): JsonObject => effectiveConfiguration(own, { catalogue, minor });
  const change = { before: before === null ? null : config(before), after: config(after) };
  const input = await readPodInput(fakeCluster({ objects: [node, ...pods] }), 'w1', change);
  return findPodRisks({ ...change, ...input, nodeName: 'w1', minor, catalogue, host: null });
}
const shown = async (...args: Parameters<typeof risksOf>): Promise<readonly string[]> =>
  (await risksOf(...args))
    .filter(({ severity, path }) => severity === 'loss' && path !== 'clusterDNS')
    .map(({ path, pods }) => `${path}: ${pods.map((name) => name.split('/')[1]).join(' ')}`.trimEnd());

const gates = (own: Readonly<Record<string, boolean>>): JsonObject => ({ featureGates: own });

describe('a feature that the next kubelet no longer declares', () => {
  it.each<[string, JsonObject, JsonObject, readonly string[]]>([
    [
      'restart rules for all containers',
      {},
      gates({ RestartAllContainersOnContainerExits: false }),
      ['featureGates.RestartAllContainersOnContainerExits: setup worker'],
    ],
    [
      'the same by all beta gates',
      {},
      gates({ AllBeta: false, NodeDeclaredFeatures: true, PodLevelResources: true }),
      ['featureGates.RestartAllContainersOnContainerExits: setup worker'],
    ],
    [
      'without the check of declared features, none',
      {},
      gates({ RestartAllContainersOnContainerExits: false, NodeDeclaredFeatures: false }),
      [],
    ],
    [
      'resources of pods',
      {},
      gates({ PodLevelResources: false, InPlacePodLevelResourcesVerticalScaling: false }),
      ['featureGates.PodLevelResources: sized'],
    ],
    [
      'user namespaces with the network of the host',
      gates({ UserNamespacesHostNetworkSupport: true }),
      {},
      ['featureGates.UserNamespacesHostNetworkSupport: isolated-host'],
    ],
    ['an unchanged gate', gates({ PodLevelResources: false }), { ...gates({ PodLevelResources: false }), maxPods: 50 }, []],
  ])('terminates the pods that need it: %s', async (_, before, after, expected) => {
    const pods =
      'UserNamespacesHostNetworkSupport' in ((before.featureGates ?? {}) as JsonObject) ? ALL : ALL.filter((pod) => pod !== ISOLATED_HOST);
    expect(await shown(before, after, { pods })).toEqual(expected);
  });

  it('is named with the reason of the kubelet', async () => {
    const [risk] = await risksOf({}, gates({ RestartAllContainersOnContainerExits: false }), { pods: [RESTARTS] });
    expect(risk === undefined ? '' : describeRisk(risk)).toBe(
      'the gate RestartAllContainersOnContainerExits is off: the kubelet rejects pods with a restart rule RestartAllContainers (PodFeatureUnsupported): default/worker would be terminated',
    );
  });

  it('is a warning if this program does not know which pods need it', async () => {
    const found = await risksOf({}, gates({ InPlacePodLevelResourcesVerticalScaling: false }), { pods: [PLAIN] });
    expect(found.map(({ path, severity }) => [path, severity])).toEqual([
      ['featureGates.InPlacePodLevelResourcesVerticalScaling', 'warning'],
    ]);
  });

  it('of finished pods is no finding', async () => {
    const pods = [{ ...RESTARTS, status: { phase: 'Succeeded' } }];
    expect(await shown({}, gates({ RestartAllContainersOnContainerExits: false }), { pods })).toEqual([]);
  });

  it('is no gate that the kubelet no longer has', async () => {
    const off = gates({ RestartAllContainersOnContainerExits: false });
    expect(await shown(null, off, { minor: 34, pods: [RESTARTS] })).toEqual([]);
  });
});

describe('user namespaces of pods', () => {
  it('keep pods running without the gate, but not their containers', async () => {
    const off = gates({ UserNamespacesSupport: false, UserNamespacesHostNetworkSupport: false });
    const losses = (await risksOf({}, off, { minor: 35, pods: [ISOLATED] })).filter(({ severity }) => severity === 'loss');
    expect(losses).toMatchObject([{ path: 'featureGates.UserNamespacesSupport', pods: [] }]);
    expect(losses[0]?.why).toContain('no container of pods with hostUsers: false could be started again (default/isolated)');
  });

  it('of another length stop the kubelet', async () => {
    const changed = await risksOf({}, { userNamespaces: { idsPerPod: 131_072 } }, { pods: [ISOLATED, PLAIN] });
    expect(changed).toMatchObject([{ path: 'userNamespaces.idsPerPod', stopsKubelet: true }]);
    expect(await risksOf({}, { userNamespaces: { idsPerPod: 131_072 } }, { pods: [PLAIN] })).toEqual([]);
    expect(await risksOf({}, { userNamespaces: { idsPerPod: 65_536 } }, { pods: [ISOLATED] })).toEqual([]);
  });
});

describe('user namespaces that the runtime lacks', () => {
  const { capacity, allocatable } = NODE.status as { readonly capacity: JsonObject; readonly allocatable: JsonObject };
  const silent: KubeObject = { ...NODE, status: { capacity, allocatable } };
  const node = (userNamespaces: boolean): KubeObject => ({
    ...NODE,
    status: { capacity, allocatable, runtimeHandlers: [{ name: '', features: { userNamespaces } }, { name: 'runc' }] },
  });
  const OFF = gates({ UserNamespacesSupport: false });
  const ON = gates({ UserNamespacesSupport: true });
  const found = (before: JsonObject, after: JsonObject, over: object = {}) =>
    risksOf(before, after, { minor: 35, pods: [ISOLATED, PLAIN], node: node(false), ...over });

  it('are named when the kubelet begins to require them', async () => {
    const [risk, ...more] = await found(OFF, ON);
    expect([risk?.severity, risk?.path, more]).toEqual(['loss', 'featureGates.UserNamespacesSupport', []]);
    expect(risk?.why).toBe(
      'the container runtime does not support user namespaces: no container of pods with hostUsers: false could be started again (default/isolated)',
    );
  });

  it.each<[string, JsonObject, JsonObject, object]>([
    ['the runtime has them', OFF, ON, { node: node(true) }],
    ['the Node does not report them', OFF, ON, { node: silent }],
    ['the gate was on before', ON, { ...ON, maxPods: 50 }, {}],
    ['no pod needs them', OFF, ON, { pods: [PLAIN] }],
  ])('are no finding if %s', async (_, before, after, over) => {
    expect(await found(before, after, over)).toEqual([]);
  });

  it('are unknown for another runtime', async () => {
    const endpoint = { containerRuntimeEndpoint: 'unix:///run/crio/crio.sock' };
    expect(await found({}, endpoint)).toMatchObject([{ severity: 'warning', path: 'containerRuntimeEndpoint' }]);
    expect(await found(endpoint, endpoint)).toEqual([]);
  });
});
