import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { parseMeminfo, parsePodCgroups, type RiskFactsOptions, readRiskFacts } from '../../../../src/kubelet/workload/risk-facts.ts';
import { fakeHost } from '../../../support/fake-host.ts';

const MEMINFO = 'MemTotal:        8000000 kB\nMemFree:         1000000 kB\nInactive:        900000 kB\nInactive(file):  500000 kB\n';
const UID = '11111111-2222-3333-4444-555555555555';
const CGROUPS = `pod kubepods-burstable-pod${UID.replaceAll('-', '_')}.slice 12
pod pod0123456789abcdef0123456789abcdef 3
pod kubepods-besteffort.slice 7
memory 5000 1200
`;
const manifest = (name: string): string => `apiVersion: v1\nkind: Pod\nmetadata:\n  name: ${name}\n  namespace: kube-system\n`;

const newHost = () =>
  fakeHost({
    files: {
      '/proc/meminfo': MEMINFO,
      '/proc/sys/kernel/pid_max': '32768\n',
      '/proc/sys/kernel/threads-max': '20000\n',
      '/proc/loadavg': '0.1 0.2 0.3 2/450 9999\n',
      '/proc/swaps': 'Filename\tType\n/swapfile file 1 0 -2\n',
      '/proc/sys/vm/panic_on_oom': '0\n',
      '/sys/devices/system/cpu/online': '0-3\n',
      '/sys/fs/cgroup/cgroup.controllers': 'cpu\n',
      '/etc/resolv.conf': 'nameserver 10.0.0.1\n',
      '/manifests/etcd.yaml': manifest('etcd'),
      '/manifests/.hidden.yaml': manifest('hidden'),
      '/manifests/readme': 'not a pod\n',
      '/var/lib/kubelet/cpu_manager_state': '{"policyName":"static","checksum":1}',
    },
    commands: {
      sh: ([, , script = '', , ...directories]) =>
        script.startsWith('for d')
          ? { stdout: directories.map((path) => (path === '/var/lib/kubelet' ? '10 100 4096 5 50' : '-')).join('\n') }
          : { stdout: CGROUPS },
    },
  });
const read = async (before: JsonObject | null, after: JsonObject, over: Partial<RiskFactsOptions> = {}) => {
  const host = newHost();
  const facts = await readRiskFacts(host, { before, after, rootDir: '/var/lib/kubelet', given: {}, hidden: ['/home/'], ...over });
  return { facts, host };
};

describe('the facts of a change', () => {
  it('are not read if the change needs none', async () => {
    const { host, facts } = await read({ maxPods: 110 }, { maxPods: 1 });
    expect([host.queries, facts.memory, facts.onlineCpus]).toEqual([[], null, null]);
  });

  it('are read in one round trip', async () => {
    const { host, facts } = await read({}, { evictionHard: { 'memory.available': '1Gi' } });
    expect(host.roundTrips).toBe(1);
    expect(facts.memory).toEqual({ capacityBytes: 8_000_000 * 1024, availableBytes: 1_500_000 * 1024 });
    expect(facts.nodeFs).toEqual({ availableBytes: 40_960, capacityBytes: 409_600, freeInodes: 5, inodes: 50 });
    expect(facts.imageFs).toBeNull();
    expect(facts.pids).toEqual({ max: 20_000, running: 450 });
    expect([facts.podsMemoryBytes, facts.ports, facts.onlineCpus]).toEqual([3800, null, null]);
  });

  it('contain the tasks of pods by uid', async () =>
    expect((await read({}, { podPidsLimit: 5 })).facts.podTasks).toEqual({ [UID]: 12, '0123456789abcdef0123456789abcdef': 3 }));

  it('contain the types of named files, with those of the ConfigMap, without hidden ones', async () => {
    const change = {
      resolvConf: '/etc/resolv.conf',
      tlsCertFile: '/no/such',
      tlsPrivateKeyFile: '/home/key',
      volumePluginDir: '/checkpoint/x',
    };
    const { files } = (await read({}, change, { given: { '/checkpoint/x': '' } })).facts;
    expect(Object.entries(files).map(([path, file]) => [path, file?.type ?? null])).toEqual([
      ['/etc/resolv.conf', 'file'],
      ['/no/such', null],
      ['/checkpoint/x', 'file'],
    ]);
  });

  it('contain the static pods of both directories', async () => {
    const { manifests } = (await read({ staticPodPath: '/manifests' }, { staticPodPath: '/no/such' })).facts;
    expect(manifests).toEqual({ '/manifests': [{ namespace: 'kube-system', name: 'etcd' }], '/no/such': null });
  });

  it('contain the static pod of a file, also of one in the ConfigMap', async () => {
    const { manifests } = (
      await read(
        { staticPodPath: '/manifests/etcd.yaml' },
        { staticPodPath: '/checkpoint/x' },
        { given: { '/checkpoint/x': manifest('new') } },
      )
    ).facts;
    expect(Object.values(manifests)).toEqual([[{ namespace: 'kube-system', name: 'etcd' }], [{ namespace: 'kube-system', name: 'new' }]]);
  });

  it('contain swap, CPUs, cgroups, kernel settings and the state of managers', async () => {
    const { facts } = await read(
      {},
      { failSwapOn: true, failCgroupV1: true, reservedSystemCPUs: '1', protectKernelDefaults: true, cpuManagerPolicy: 'none' },
    );
    expect([facts.usesSwap, facts.cgroupVersion, facts.onlineCpus]).toEqual([true, 2, '0-3']);
    expect([facts.sysctls, facts.managerPolicies]).toEqual([{ 'vm.panic_on_oom': '0' }, { cpuManagerPolicy: 'static' }]);
  });
});

it('does not take incomplete texts for facts', () => {
  expect(parseMeminfo('MemTotal: 1 kB\n')).toBeNull();
  expect(parsePodCgroups('memory 5\npod x y\n')).toEqual({ podTasks: {}, podsMemoryBytes: null });
});
