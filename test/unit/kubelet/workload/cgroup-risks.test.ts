import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../../../src/kubelet/defaults/effective-configuration.ts';
import { cgroupPath } from '../../../../src/kubelet/workload/cgroup-risks.ts';
import { describeRisk, findPodRisks, hintOfRisks } from '../../../../src/kubelet/workload/pod-risks.ts';
import { readRiskFacts } from '../../../../src/kubelet/workload/risk-facts.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const catalogue = await loadCatalogue();
const ALL = 'cpuset cpu io memory hugetlb pids\n';
const V2 = {
  '/sys/fs/cgroup/cgroup.controllers': ALL,
  '/sys/fs/cgroup/system.slice/cgroup.controllers': 'cpu memory pids\n',
  '/sys/fs/cgroup/kube.slice/cgroup.controllers': ALL,
  '/sys/fs/cgroup/kube.slice/kube-reserved.slice/cgroup.controllers': 'cpu memory pids\n',
  '/sys/fs/cgroup/full.slice/full-one.slice/cgroup.controllers': ALL,
  '/sys/fs/cgroup/kubelet/cgroup.controllers': ALL,
};
const V1_CONTROLLERS = ['cpu', 'cpuacct', 'cpuset', 'memory', 'systemd', 'pids'];
const V1 = Object.fromEntries(
  V1_CONTROLLERS.flatMap((one) => [one, ...(one === 'cpuset' ? [] : [`${one}/system.slice`])]).map((path) => [
    `/sys/fs/cgroup/${path}/tasks`,
    '',
  ]),
);
/** containerd's own answer; empty: unknown. */
const runtime = (driver: string): string =>
  driver === '' ? '' : `[plugins.x.containerd.runtimes.runc.options]\n  SystemdCgroup = ${driver === 'systemd'}\n`;

const RESERVED = { systemReserved: { cpu: '100m' }, kubeReserved: { cpu: '100m' } };
const system = (name: string, kind = 'system-reserved'): JsonObject => ({
  enforceNodeAllocatable: ['pods', kind],
  systemReservedCgroup: name,
});

interface Case {
  readonly files?: Readonly<Record<string, string>>;
  readonly driver?: string;
  readonly before?: JsonObject;
}

async function found(own: JsonObject, { files = V2, driver = '', before = {} }: Case = {}) {
  const config = (one: JsonObject): JsonObject =>
    effectiveConfiguration({ ...RESERVED, cgroupDriver: 'systemd', ...one }, { catalogue, minor: 36 });
  const change = { before: config(before), after: config(own) };
  const host = fakeHost({ files, commands: { sh: () => ({ exitCode: 1 }), containerd: () => ({ stdout: runtime(driver) }) } });
  const facts = await readRiskFacts(host, { ...change, rootDir: '/var/lib/kubelet', given: {}, hidden: [] });
  const input = { nodeName: 'n1', minor: 36, catalogue, pods: null, node: null, dnsServices: null, host: facts };
  return findPodRisks({ ...change, ...input }).filter(({ path }) => /[cC]group/.test(path));
}

describe('a cgroup that the kubelet needs and does not create', () => {
  it.each<[string, JsonObject, Case, string | null]>([
    ['exists', system('/system.slice'), {}, null],
    ['exists without suffix', system('system'), {}, null],
    ['is missing', system('/nope'), {}, 'the cgroup /nope.slice (cgroup driver systemd) does not exist on the host'],
    ['is missing, compressible', system('/nope', 'system-reserved-compressible'), {}, 'the cgroup /nope.slice'],
    ['is a service', system('/system.slice/kubelet.service'), {}, 'the cgroup /kubelet.service.slice'],
    ['has no slice of a slice', system('a--b'), {}, 'is not a valid name of a systemd slice'],
    [
      'lacks controllers below another',
      { enforceNodeAllocatable: ['kube-reserved'], kubeReservedCgroup: 'kube-reserved.slice' },
      {},
      'the cgroup /kube.slice/kube-reserved.slice (cgroup driver systemd) lacks the controllers cpuset, hugetlb, but',
    ],
    ['has all controllers below another', system('full-one'), {}, null],
    ['is not enforced', { systemReservedCgroup: '/nope' }, {}, null],
    ['was needed before', system('/nope'), { before: system('/nope') }, null],
    ['belongs to the other driver', system('/kubelet'), {}, 'the cgroup /kubelet.slice'],
    ['belongs to the driver of the configuration', { ...system('/kubelet'), cgroupDriver: 'cgroupfs' }, {}, null],
    ['belongs to the driver of the runtime', system('/kubelet'), { driver: 'cgroupfs' }, null],
    ['is missing for the runtime', { ...system('/kubelet'), cgroupDriver: 'cgroupfs' }, { driver: 'systemd' }, 'the cgroup /kubelet.slice'],
    [
      'is the missing root of all pods',
      { cgroupRoot: '/pods-here' },
      {},
      'the cgroup /pods_here.slice (cgroup driver systemd) does not exist',
    ],
    [
      'is the root of all pods without controllers',
      { cgroupRoot: '/system' },
      {},
      'the cgroup /system.slice (cgroup driver systemd) lacks the',
    ],
    ['is the root of the host', { cgroupRoot: '/' }, {}, null],
    ['is no root, without cgroups of pods', { cgroupRoot: '/x', cgroupsPerQOS: false, enforceNodeAllocatable: [] }, {}, null],
    [
      'lacks a hierarchy of cgroup v1',
      system('/system.slice'),
      { files: V1 },
      'the cgroup /system.slice (cgroup driver systemd) lacks the controller cpuset, but',
    ],
    [
      'is missing with cgroup v1',
      system('/nope'),
      { files: V1 },
      'the cgroup /nope.slice (cgroup driver systemd) does not exist on the host',
    ],
    ['is unknown', system('/nope'), { files: {} }, null],
  ])('%s', async (_, own, options, text) => {
    const risks = await found(own, options);
    expect(risks.map((risk) => [risk.stopsKubelet, describeRisk(risk)])).toEqual(
      text === null ? [] : [[true, expect.stringContaining(text)]],
    );
  });

  it.each<[string, JsonObject, Case, string]>([
    ['a slice', system('/nope'), {}, 'systemctl start nope.slice, or'],
    [
      'a directory',
      { ...system('/nope/x'), cgroupDriver: 'cgroupfs' },
      {},
      `mkdir -p /sys/fs/cgroup/nope/x && echo '+cpu +cpuset +memory +hugetlb +pids' > /sys/fs/cgroup/nope/cgroup.subtree_control, or`,
    ],
    ['controllers', system('kube-reserved'), {}, `echo '+cpuset +hugetlb' > /sys/fs/cgroup/kube.slice/cgroup.subtree_control, or`],
    ['a hierarchy', system('/system.slice'), { files: V1 }, 'mkdir -p /sys/fs/cgroup/cpuset/system.slice, or'],
    [
      'all hierarchies',
      system('/nope'),
      { files: V1 },
      'systemctl start nope.slice && mkdir -p /sys/fs/cgroup/{cpu,cpuacct,cpuset,memory,systemd,pids}/nope.slice, or',
    ],
  ])('is created by its hint: %s', async (_, own, options, command) => {
    expect(hintOfRisks(await found(own, options))).toBe(`Run after each boot before the kubelet: ${command} change systemReservedCgroup`);
  });
});

it.each([
  ['kube', 'systemd', '/kube.slice'],
  ['/a/kube-x_y.slice', 'systemd', '/kube.slice/kube-x_y.slice'],
  ['-.slice', 'systemd', '/'],
  ['/', 'systemd', null],
  ['a-', 'systemd', null],
  ['/', 'cgroupfs', '/'],
  ['kube/x.slice', 'cgroupfs', '/kube/x.slice'],
] as const)('%s with the driver %s is the cgroup %s', (name, driver, path) => {
  expect(cgroupPath(name, driver)).toBe(path);
});
