import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import type { KubeObject } from '../../../../src/kube/object.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../../../src/kubelet/defaults/effective-configuration.ts';
import { describeRisk, findPodRisks } from '../../../../src/kubelet/workload/pod-risks.ts';
import { readPodInput } from '../../../../src/kubelet/workload/read-pod-input.ts';
import { readRiskFacts } from '../../../../src/kubelet/workload/risk-facts.ts';
import { fakeCluster } from '../../../support/fake-cluster.ts';
import { fakeHost } from '../../../support/fake-host.ts';
import { fakePod, RUNNING } from '../../../support/pods-on-node.ts';

const catalogue = await loadCatalogue();

const pod = (
  name: string,
  cpus: readonly string[],
  over: { readonly qosClass?: string; readonly spec?: JsonObject; readonly phase?: string } = {},
) => {
  const { qosClass = 'Guaranteed', spec = {}, phase = 'Running' } = over;
  const found = fakePod({ name, status: { ...RUNNING, phase, qosClass } });
  const [first = '', ...rest] = cpus.map((cpu, index) => ({ name: `c${index}`, image: 'x:1', resources: { requests: { cpu } } }));
  return { ...found, spec: { ...(found.spec as JsonObject), containers: [first], initContainers: rest, ...spec } } as KubeObject;
};
const PODS = [
  pod('one', ['1']),
  pod('two', ['2']),
  pod('init-three', ['2', '3000m']),
  pod('half', ['500m']),
  pod('burst', ['3'], { qosClass: 'Burstable' }),
  pod('sized', ['1'], { spec: { resources: { requests: { cpu: '1' } } } }),
  pod('done', ['1'], { phase: 'Succeeded' }),
];
/** The lists of siblings of four CPUs. */
const THREADS = '0,2\n1,3\n0,2\n1,3\n';
const SINGLE = '0\n1\n2\n3\n';
const STATIC = { cpuManagerPolicy: 'static', reservedSystemCPUs: '0' };
const FULL = { ...STATIC, cpuManagerPolicyOptions: { 'full-pcpus-only': 'true' } };

const stateOf = (defaultCpuSet: string): string => JSON.stringify({ policyName: 'static', defaultCpuSet, entries: {}, checksum: 1 });

interface World {
  readonly state?: string;
  readonly siblings?: string;
  readonly nodes?: readonly string[];
  readonly pods?: readonly KubeObject[];
}

async function risksOf(before: JsonObject, after: JsonObject, { siblings = THREADS, nodes = ['node0'], pods = PODS, state }: World = {}) {
  const config = (own: JsonObject): JsonObject => effectiveConfiguration({ cgroupDriver: 'systemd', ...own }, { catalogue, minor: 36 });
  const change = { before: config(before), after: config(after) };
  const host = fakeHost({
    files: {
      ...Object.fromEntries(nodes.map((name) => [`/sys/devices/system/node/${name}/cpulist`, ''])),
      ...(state === undefined ? {} : { '/var/lib/kubelet/cpu_manager_state': state }),
    },
    commands: { sh: () => ({ exitCode: siblings === '' ? 1 : 0, stdout: siblings }) },
  });
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'w1' }, status: {} };
  const [input, facts] = await Promise.all([
    readPodInput(fakeCluster({ objects: [node, ...pods] }), 'w1', change),
    readRiskFacts(host, { ...change, rootDir: '/var/lib/kubelet', given: {}, hidden: [] }),
  ]);
  return findPodRisks({ ...change, ...input, nodeName: 'w1', minor: 36, catalogue, host: facts }).filter(({ path }) => /Policy/.test(path));
}
const shown = async (...args: Parameters<typeof risksOf>): Promise<readonly string[]> =>
  (await risksOf(...args)).map((risk) => `${risk.severity} ${risk.path}: ${describeRisk(risk)}`);

describe('pods that a restarted kubelet aligns again', () => {
  it('are lost if their CPUs do not fill cores', async () => {
    const [loss, warning, ...more] = await risksOf(STATIC, FULL);
    expect(loss).toMatchObject({ severity: 'loss', pods: ['default/init-three', 'default/one'] });
    expect(loss?.why).toBe(
      'cpuManagerPolicyOptions.full-pcpus-only: each core has 2 CPUs: the kubelet rejects Guaranteed pods that do not request a multiple of 2 (SMTAlignmentError)',
    );
    expect(warning).toMatchObject({ severity: 'warning', pods: [] });
    expect(warning?.why).toMatch(/\. May affect: default\/two$/);
    expect(more).toEqual([]);
  });

  it.each<[string, JsonObject, JsonObject, World]>([
    ['the option was set before', FULL, { ...FULL, maxPods: 50 }, {}],
    ['the option is off', STATIC, { ...STATIC, cpuManagerPolicyOptions: { 'full-pcpus-only': 'false' } }, {}],
    ['no pod has CPUs of its own', STATIC, FULL, { pods: PODS.slice(3) }],
    ['the host has one NUMA node', {}, { ...STATIC, topologyManagerPolicy: 'single-numa-node' }, {}],
    ['the topology manager only prefers', {}, { ...STATIC, topologyManagerPolicy: 'best-effort' }, { nodes: ['node0', 'node1'] }],
  ])('are no finding if %s', async (_, before, after, world) => {
    expect(await shown(before, after, world)).toEqual([]);
  });

  it.each([
    ['cores have one CPU', SINGLE],
    ['the CPUs of cores are unknown', ''],
  ])('are a warning if %s', async (_, siblings) => {
    expect(await shown(STATIC, FULL, { siblings })).toEqual([
      expect.stringMatching(/^warning cpuManagerPolicyOptions: .*\. May affect: default\/init-three, default\/one, default\/two$/),
    ]);
  });

  it('are a warning on several NUMA nodes', async () => {
    const nodes = ['node0', 'node1', 'online'];
    expect(await shown({}, { topologyManagerPolicy: 'restricted' }, { nodes })).toEqual([
      'warning topologyManagerPolicy: topologyManagerPolicy restricted: the kubelet admits its pods again, and rejects those whose CPUs, memory and devices it cannot align (TopologyAffinityError). May affect: default/half, default/init-three, default/one, default/two',
    ]);
    const reserved = { reservedMemory: [{ numaNode: 0, limits: { memory: '100Mi' } }] };
    expect(await shown({}, { memoryManagerPolicy: 'Static', ...reserved }, { nodes })).toEqual([
      expect.stringMatching(/^warning memoryManagerPolicy: memoryManagerPolicy Static: .*\. May affect: default\//),
    ]);
  });

  it('are a warning on an unknown number of NUMA nodes', async () => {
    expect(await shown({}, { topologyManagerPolicy: 'single-numa-node' }, { siblings: '' })).toEqual([
      expect.stringContaining('. May affect, if the host has several NUMA nodes: default/half'),
    ]);
  });

  it.each<[string, JsonObject, JsonObject, string, readonly string[]]>([
    ['no CPU is free', STATIC, FULL, '0', ['init-three']],
    ['no CPU is free, and another field changes', FULL, { ...FULL, maxPods: 50 }, '0', ['init-three']],
    ['two CPUs are free', FULL, { ...FULL, maxPods: 50 }, '0-2', ['init-three']],
    ['enough CPUs are free', FULL, { ...FULL, maxPods: 50 }, '0-3', []],
    ['the state is removed', {}, FULL, '0', []],
    ['the reservation changes, and the state is removed', FULL, { ...FULL, reservedSystemCPUs: '0,1' }, '0', []],
    ['the state is unreadable', FULL, { ...FULL, maxPods: 50 }, 'x', []],
  ])('are lost with the CPUs of their state: %s', async (_, before, after, cpus, names) => {
    const risks = await risksOf(before, after, { siblings: SINGLE, state: cpus === 'x' ? '' : stateOf(cpus) });
    const lost = risks.filter(({ severity }) => severity === 'loss');
    expect(lost.flatMap(({ pods }) => pods)).toEqual(names.map((name) => `default/${name}`));
    if (lost.length > 0) expect(lost[0]?.why).toContain('also those that it has assigned CPUs');
  });

  it('are lost until the CPUs of rejected pods suffice', async () => {
    const pods = [pod('a-one', ['1']), pod('b-two', ['2']), pod('c-three', ['3'])];
    const risks = await risksOf(FULL, { ...FULL, maxPods: 50 }, { siblings: SINGLE, state: stateOf('0'), pods });
    expect(risks).toMatchObject([{ pods: ['default/a-one', 'default/b-two'] }]);
  });
});
