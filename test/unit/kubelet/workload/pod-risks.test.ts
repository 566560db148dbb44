import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/base/json.ts';
import { loadCatalogue } from '../../../../src/kubelet/catalogue/load-catalogue.ts';
import { effectiveConfiguration } from '../../../../src/kubelet/defaults/effective-configuration.ts';
import { describeRisk, findPodRisks, hintOfRisks } from '../../../../src/kubelet/workload/pod-risks.ts';
import type { HostRiskFacts, NodeOffer, RiskInput, RiskPod } from '../../../../src/kubelet/workload/risk-input.ts';
import { listening } from '../../../support/listening.ts';
import { NO_RISK_FACTS } from '../../../support/no-risk-facts.ts';

const catalogue = await loadCatalogue();
const GI = 2 ** 30;
const MI = 2 ** 20;

const config = (own: JsonObject, minor = 36): JsonObject => effectiveConfiguration(own, { catalogue, minor });
const LOCAL = { clusterDNS: ['10.96.0.10'], clusterDomain: 'cluster.local', staticPodPath: '/etc/kubernetes/manifests' };

interface PodOptions extends Partial<Omit<RiskPod, 'requests'>> {
  readonly cpu?: number;
  readonly memory?: number;
  readonly disk?: number;
}

const pod = (name: string, { cpu = 0, memory = 0, disk = 0, ...over }: PodOptions = {}): RiskPod => ({
  uid: `uid-${name}`,
  name: `default/${name}`,
  isStatic: false,
  phase: 'Running',
  reason: '',
  message: '',
  isReady: true,
  isTerminating: false,
  createdAt: `2030-01-01T00:00:0${name.length}Z`,
  requests: { cpuMillis: cpu, memoryBytes: memory, ephemeralBytes: disk },
  waiting: [],
  ...over,
});
/** Created in this order. */
const PODS = [
  pod('a', { cpu: 500, memory: GI }),
  pod('bb', { cpu: 1000, memory: GI, disk: GI }),
  pod('ccc'),
  pod('etcd-n1', { name: 'kube-system/etcd-n1', isStatic: true, cpu: 100 }),
  pod('done', { phase: 'Succeeded', cpu: 4000 }),
];
const NODE: NodeOffer = {
  capacity: { cpuMillis: 4000, memoryBytes: 8 * GI, ephemeralBytes: 100 * GI },
  allocatable: { cpuMillis: 4000, memoryBytes: 8 * GI - 100 * MI, ephemeralBytes: 90 * GI },
  pods: 110,
};
const FS = { availableBytes: 40 * GI, capacityBytes: 100 * GI, freeInodes: 900, inodes: 1000 };
const HOST: HostRiskFacts = {
  ...NO_RISK_FACTS,
  files: {
    '/etc/resolv.conf': { type: 'file' },
    '/etc': { type: 'directory' },
    '/no/such': null,
    '/pki/tls.crt': { type: 'file' },
    '/run/containerd/containerd.sock': { type: 'socket' },
  },
  manifests: {
    '/etc/kubernetes/manifests': [{ namespace: 'kube-system', name: 'etcd' }],
    '/copied': [{ namespace: 'kube-system', name: 'etcd' }],
    '/empty': [],
    '/no/such': null,
  },
  memory: { capacityBytes: 8 * GI, availableBytes: 4 * GI },
  nodeFs: FS,
  imageFs: { ...FS, availableBytes: 20 * GI },
  pids: { max: 32768, running: 1000 },
  onlineCpus: '0-3',
  podTasks: { 'uid-a': 40, 'uid-bb': 200 },
  podsMemoryBytes: 3 * GI,
  ports: listening(22, 10248, 10250, 9100),
  addresses: ['10.0.0.5'],
  usesSwap: true,
  cgroupVersion: 2,
  managerPolicies: { cpuManagerPolicy: 'none', memoryManagerPolicy: 'None' },
  sysctls: { 'vm.overcommit_memory': '0' },
};

const find = (before: JsonObject, after: JsonObject, over: Partial<RiskInput> = {}) =>
  findPodRisks({
    nodeName: 'n1',
    minor: 36,
    catalogue,
    before: config({ ...LOCAL, ...before }),
    after: config({ ...LOCAL, ...after }),
    pods: PODS,
    node: NODE,
    host: HOST,
    dnsServices: ['10.96.0.10'],
    ...over,
  });
/** Losses as `field: names of pods`. */
const losses = (...args: Parameters<typeof find>): readonly string[] =>
  find(...args)
    .filter(({ severity }) => severity === 'loss')
    .map(({ path, pods }) => `${path}: ${pods.map((name) => name.split('/')[1]).join(' ')}`.trimEnd());
const warnings = (...args: Parameters<typeof find>): readonly string[] =>
  find(...args)
    .filter(({ severity }) => severity === 'warning')
    .map(({ path }) => path);

type Row = readonly [what: string, before: JsonObject, after: JsonObject, losses: readonly string[]];

const REFUSED: readonly Row[] = [
  ['fewer pods than run: static pods and the oldest stay', {}, { maxPods: 2 }, ['maxPods: bb ccc']],
  ['one pod: only the static one stays', {}, { maxPods: 1 }, ['maxPods: a bb ccc']],
  ['too few pods for each core', { podsPerCore: 10 }, { podsPerCore: 0, maxPods: 3 }, ['maxPods: ccc']],
  ['reserved cpu', {}, { systemReserved: { cpu: '3' } }, ['systemReserved: bb']],
  ['reserved cpu of the kubelet', {}, { kubeReserved: { cpu: '3500m' } }, ['kubeReserved: a bb']],
  [
    'reserved cpu of both',
    { kubeReserved: { cpu: '1' } },
    { kubeReserved: { cpu: '1' }, systemReserved: { cpu: '2' } },
    ['systemReserved: bb'],
  ],
  ['reserved memory', {}, { systemReserved: { memory: '4Gi' } }, []],
  ['reserved memory below the requests', {}, { systemReserved: { memory: '6300Mi' } }, ['systemReserved: bb', 'systemReserved: a bb ccc']],
  ['reserved disk', {}, { systemReserved: { 'ephemeral-storage': '89500Mi' } }, []],
  ['reserved disk below the requests', {}, { kubeReserved: { 'ephemeral-storage': '89.5Gi' } }, ['kubeReserved: bb']],
  ['reserved CPUs', {}, { reservedSystemCPUs: '0-2' }, ['reservedSystemCPUs: bb']],
  ['CPUs that are not online', {}, { reservedSystemCPUs: '0,9' }, ['reservedSystemCPUs:']],
  ['more cpu than the node has', {}, { systemReserved: { cpu: '5' } }, ['systemReserved:']],
  ['more memory than the node has', {}, { systemReserved: { memory: '9Gi' } }, ['systemReserved:', 'systemReserved: a bb ccc']],
  ['more disk than the node has', {}, { kubeReserved: { 'ephemeral-storage': '95Gi' } }, ['kubeReserved:']],
  ['process IDs below the present number', {}, { systemReserved: { pid: '32600' } }, ['systemReserved: a bb ccc']],
  ['hard eviction of disk in percent', {}, { evictionHard: { 'nodefs.available': '99%' } }, ['evictionHard[nodefs.available]: a bb ccc']],
  [
    'hard eviction of disk as a quantity',
    {},
    { evictionHard: { 'nodefs.available': '41Gi' } },
    ['evictionHard[nodefs.available]: a bb ccc'],
  ],
  ['hard eviction of memory', {}, { evictionHard: { 'memory.available': '5Gi' } }, ['evictionHard[memory.available]: a bb ccc']],
  ['hard eviction of inodes', {}, { evictionHard: { 'nodefs.inodesFree': '95%' } }, ['evictionHard[nodefs.inodesFree]: a bb ccc']],
  ['hard eviction of images', {}, { evictionHard: { 'imagefs.available': '25%' } }, ['evictionHard[imagefs.available]: a bb ccc']],
  ['hard eviction of process IDs', {}, { evictionHard: { 'pid.available': '98%' } }, ['evictionHard[pid.available]: a bb ccc']],
  [
    'soft eviction with a grace period',
    {},
    { evictionSoft: { 'nodefs.available': '50%' }, evictionSoftGracePeriod: { 'nodefs.available': '1m' } },
    ['evictionSoft[nodefs.available]: a bb ccc'],
  ],
  [
    'a merged threshold',
    {},
    { mergeDefaultEvictionSettings: true, evictionHard: { 'nodefs.available': '60%' } },
    ['evictionHard[nodefs.available]: a bb ccc'],
  ],
  ['no DNS configuration', {}, { resolvConf: '/no/such' }, ['resolvConf:']],
  ['a directory as DNS configuration', {}, { resolvConf: '/etc' }, ['resolvConf:']],
  ['no directory of static pods', {}, { staticPodPath: '/no/such' }, ['staticPodPath: etcd-n1']],
  ['an empty path of static pods', {}, { staticPodPath: '' }, ['staticPodPath: etcd-n1']],
  ['a directory without the manifests', {}, { staticPodPath: '/empty' }, ['staticPodPath: etcd-n1']],
  ['no serving certificate', {}, { tlsCertFile: '/no/such', tlsPrivateKeyFile: '/pki/tls.crt' }, ['tlsCertFile:']],
  ['no serving key', {}, { tlsCertFile: '/pki/tls.crt', tlsPrivateKeyFile: '/no/such' }, ['tlsPrivateKeyFile:']],
  ['no client CA', {}, { authentication: { x509: { clientCAFile: '/no/such' } } }, ['authentication.x509.clientCAFile:']],
  ['no socket of the runtime', {}, { containerRuntimeEndpoint: 'unix:///no/such' }, ['containerRuntimeEndpoint:']],
  ['a file as socket of the runtime', {}, { containerRuntimeEndpoint: 'unix:///etc/resolv.conf' }, ['containerRuntimeEndpoint:']],
  ['a DNS address that is no IP', {}, { clusterDNS: ['not-an-ip'] }, ['clusterDNS:']],
  ['a name among the DNS addresses', {}, { clusterDNS: ['10.96.0.10', 'dns.example.com'] }, ['clusterDNS:']],
  ['no DNS address', {}, { clusterDNS: [] }, ['clusterDNS:']],
  ['a DNS address that no Service has', {}, { clusterDNS: ['10.96.0.99'] }, ['clusterDNS:']],
  ['too few tasks for any container', {}, { podPidsLimit: 1 }, ['podPidsLimit:']],
  ['a task less than needed', {}, { podPidsLimit: 15 }, ['podPidsLimit:']],
  ['fewer tasks than a pod has', {}, { podPidsLimit: 100 }, ['podPidsLimit: bb']],
  ['fewer tasks than all pods have', { podPidsLimit: 4096 }, { podPidsLimit: 30 }, ['podPidsLimit: a bb']],
  ['swap', { failSwapOn: false }, { failSwapOn: true }, ['failSwapOn:']],
  ['kernel settings', {}, { protectKernelDefaults: true }, ['protectKernelDefaults:']],
  ['a used port', {}, { port: 9100 }, ['port:']],
  ['a used port of the health endpoint', {}, { healthzPort: 9100 }, ['healthzPort:']],
  ['a used read-only port', {}, { readOnlyPort: 9100 }, ['readOnlyPort:']],
  ['a foreign address of the health endpoint', {}, { healthzBindAddress: '203.0.113.1' }, ['healthzBindAddress:']],
  ['the address of another host', {}, { address: '10.0.0.6' }, ['address:']],
  ['a static CPU manager with an old state', {}, { cpuManagerPolicy: 'static', kubeReserved: { cpu: '1' } }, ['cpuManagerPolicy:']],
  ['a Lease that is renewed too late', {}, { nodeLeaseDurationSeconds: 200 }, ['nodeLeaseDurationSeconds:']],
  ['a timeout that no request keeps', {}, { runtimeRequestTimeout: '10ms' }, ['runtimeRequestTimeout:']],
  ['hardly any open files', {}, { maxOpenFiles: 10 }, ['maxOpenFiles:']],
];

const HARMLESS: readonly (readonly [what: string, before: JsonObject, after: JsonObject])[] = [
  ['no change', {}, {}],
  ['as many pods as run', {}, { maxPods: 4 }],
  ['more pods', {}, { maxPods: 250 }],
  ['zero, which is the default', {}, { maxPods: 0 }],
  ['an unchanged limit below the number of pods', { maxPods: 2 }, { maxPods: 2, podPidsLimit: 4096 }],
  ['a raised limit that is still too low', { maxPods: 1 }, { maxPods: 2 }],
  ['cpu that is not requested', {}, { systemReserved: { cpu: '1' }, kubeReserved: { cpu: '1' } }],
  ['memory that is not used', {}, { systemReserved: { memory: '1Gi' }, kubeReserved: { memory: '1Gi' } }],
  ['disk that is not requested', {}, { systemReserved: { 'ephemeral-storage': '10Gi' } }],
  ['process IDs that are not used', {}, { systemReserved: { pid: '1000' } }],
  ['smaller reservations', { systemReserved: { cpu: '3' } }, { systemReserved: { cpu: '2' } }],
  ['online CPUs', {}, { reservedSystemCPUs: '0' }],
  ['thresholds that the node keeps', {}, { evictionHard: { 'memory.available': '5%', 'nodefs.available': '15%', 'pid.available': '10%' } }],
  [
    'a threshold that was exceeded before',
    { evictionHard: { 'nodefs.available': '50%' } },
    { evictionHard: { 'nodefs.available': '55%' } },
  ],
  ['disabled thresholds', {}, { evictionHard: { 'nodefs.available': '100%', 'memory.available': '0%' } }],
  ['a threshold of an unknown signal', {}, { evictionHard: { 'containerfs.available': '99%' } }],
  ['a soft threshold without grace period', {}, { evictionSoft: { 'nodefs.available': '50%' } }],
  ['another existing DNS configuration', { resolvConf: '/no/such' }, { resolvConf: '/etc/resolv.conf' }],
  ['an empty DNS configuration', {}, { resolvConf: '' }],
  ['a missing DNS configuration that was set before', { resolvConf: '/no/such' }, { resolvConf: '/no/such', maxPods: 100 }],
  ['a file that was not inspected', {}, { resolvConf: '/unknown' }],
  ['a copy of the manifests', {}, { staticPodPath: '/copied' }],
  ['an existing certificate', {}, { tlsCertFile: '/pki/tls.crt', tlsPrivateKeyFile: '/pki/tls.crt' }],
  [
    'the socket with its scheme',
    { containerRuntimeEndpoint: 'unix:///run/x.sock' },
    { containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock' },
  ],
  ['a DNS cache of the node', {}, { clusterDNS: ['169.254.20.10'] }],
  ['a second DNS address', {}, { clusterDNS: ['10.96.0.10', '8.8.8.8'] }],
  ['a first DNS address', { clusterDNS: [] }, { clusterDNS: ['10.1.1.1'] }],
  ['a DNS address that replaces one of no Service', { clusterDNS: ['10.1.1.1'] }, { clusterDNS: ['10.1.1.2'] }],
  ['enough tasks', {}, { podPidsLimit: 4096 }],
  ['more tasks than before', { podPidsLimit: 8 }, { podPidsLimit: 10 }],
  ['unlimited tasks', { podPidsLimit: 100 }, { podPidsLimit: -1 }],
  ['swap that is allowed', { failSwapOn: true }, { failSwapOn: false }],
  ['cgroup v2', { failCgroupV1: false }, { failCgroupV1: true }],
  ['a free port', {}, { port: 10251 }],
  ['the port of the kubelet itself', { readOnlyPort: 9100 }, { readOnlyPort: 0, healthzPort: 9100 }],
  ['an address of the host', {}, { address: '10.0.0.5' }],
  ['a loopback address', {}, { address: '127.0.0.1' }],
  ['the policy in the state of the CPU manager', { cpuManagerPolicy: 'static', kubeReserved: { cpu: '1' } }, { cpuManagerPolicy: 'none' }],
  ['a shorter Lease', {}, { nodeLeaseDurationSeconds: 30 }],
  ['usual intervals', {}, { nodeStatusUpdateFrequency: '20s', syncFrequency: '2m', runtimeRequestTimeout: '5m' }],
  ['settings without effect on pods', {}, { imageMinimumGCAge: '10m', registryPullQPS: 1, eventRecordQPS: 1, seccompDefault: true }],
  ['logs and garbage collection', {}, { containerLogMaxSize: '50Mi', imageGCHighThresholdPercent: 70, imageGCLowThresholdPercent: 60 }],
  ['a graceful shutdown', {}, { shutdownGracePeriod: '30s', shutdownGracePeriodCriticalPods: '10s' }],
];

describe('a change that would terminate pods', () => {
  it.each(REFUSED)('is a loss: %s', (_, before, after, expected) => expect(losses(before, after)).toEqual(expected));
  it.each(HARMLESS)('is none: %s', (_, before, after) => expect(losses(before, after)).toEqual([]));

  it.each<readonly [string, JsonObject, JsonObject, readonly string[]]>([
    ['another domain', {}, { clusterDomain: 'other.local' }, ['clusterDomain']],
    ['a file as plugin directory', {}, { volumePluginDir: '/etc/resolv.conf' }, ['volumePluginDir']],
    ['rare status updates', {}, { nodeStatusUpdateFrequency: '10m' }, ['nodeStatusUpdateFrequency']],
    ['a short timeout', {}, { runtimeRequestTimeout: '5s' }, ['runtimeRequestTimeout']],
    ['few open files', {}, { maxOpenFiles: 500 }, ['maxOpenFiles']],
    ['the first domain', { clusterDomain: '' }, { clusterDomain: 'cluster.local' }, []],
  ])('is a warning: %s', (_, before, after, expected) => expect([warnings(before, after), losses(before, after)]).toEqual([expected, []]));
});

it('of a missing certificate is no reason to lose pods: the kubelet would exit', () => {
  const risks = find({}, { tlsCertFile: '/no/such', tlsPrivateKeyFile: '/pki/tls.crt' });
  expect(hintOfRisks(risks)).toBe('Create the file, or change tlsCertFile');
});

describe('an unknown fact', () => {
  const nothing = { pods: null, node: null, host: null, dnsServices: null };
  const shown = (after: JsonObject, over: Partial<RiskInput>) => losses({}, after, { ...nothing, ...over });

  it.each<readonly [string, JsonObject]>([
    ['pods', { maxPods: 1 }],
    ['the Node', { systemReserved: { cpu: '100' } }],
    [
      'the host',
      { resolvConf: '/no/such', evictionHard: { 'nodefs.available': '99%' }, reservedSystemCPUs: '99', staticPodPath: '/no/such' },
    ],
    ['the Services', { clusterDNS: ['10.96.0.99'] }],
  ])('causes no finding: %s', (_, after) => expect(shown(after, {})).toEqual([]));

  it('counts pods without the Node', () => expect(shown({ maxPods: 2 }, { pods: PODS })).toEqual(['maxPods: bb ccc']));
  it('finds invalid values without any fact', () =>
    expect(shown({ clusterDNS: ['x'], podPidsLimit: 1 }, {})).toEqual(['podPidsLimit:', 'clusterDNS:']));
  it('names static pods by their manifests without the pods', () =>
    expect(shown({ staticPodPath: '' }, { host: HOST })).toEqual(['staticPodPath: etcd-n1']));
  it('compares with the allocatable amounts of the Node without the previous configuration', () => {
    const small = { ...NODE, allocatable: { ...NODE.allocatable, cpuMillis: 600 }, pods: 4 };
    const known = { before: null, pods: PODS, node: NODE, host: null };
    expect(losses({}, { maxPods: 3 }, known)).toEqual(['maxPods: ccc']);
    expect(losses({}, { systemReserved: { cpu: '3' } }, known)).toEqual(['systemReserved: bb']);
    expect(losses({}, { systemReserved: { cpu: '3' } }, { ...known, node: small })).toEqual([]);
  });
});

describe('admission at the start of a kubelet', () => {
  const critical = pod('dns', { priority: 2_000_000_000, cpu: 500, createdAt: '2031-01-01T00:00:00Z' });

  it('rejects by creation time, not by the order of the list', () => {
    const [a, b] = [pod('a', { createdAt: '2030-01-02T00:00:00Z' }), pod('b', { createdAt: '2030-01-01T00:00:00Z' })];
    expect(losses({}, { maxPods: 1 }, { pods: [a, b] })).toEqual(['maxPods: a']);
  });

  it('lets a critical pod preempt others', () =>
    expect(losses({}, { systemReserved: { cpu: '3' } }, { pods: [pod('a', { cpu: 800 }), critical] })).toEqual(['systemReserved: a']));

  it('preempts the pod of the lowest priority', () => {
    const pods = [pod('high', { cpu: 400, priority: 100 }), pod('low', { cpu: 400, priority: 0 }), critical];
    expect(losses({}, { systemReserved: { cpu: '3' } }, { pods })).toEqual(['systemReserved: low']);
  });

  it('does not name pods that are being deleted', () =>
    expect(losses({}, { maxPods: 1 }, { pods: [pod('a'), pod('bb', { isTerminating: true })] })).toEqual([]));

  it('does not reject a pod without requests for a full resource', () =>
    expect(losses({}, { systemReserved: { cpu: '4' } }, { pods: [pod('a')] })).toEqual([]));
});

describe('sysctls of pods', () => {
  const pods = [pod('a', { sysctls: ['net.core.somaxconn'] }), pod('b', { sysctls: ['net.ipv4.tcp_syncookies'] })];
  it('are rejected when they are no longer allowed', () =>
    expect(losses({ allowedUnsafeSysctls: ['net.*'] }, {}, { pods })).toEqual(['allowedUnsafeSysctls: a']));
  it('stay allowed by another pattern', () =>
    expect(losses({ allowedUnsafeSysctls: ['net.*'] }, { allowedUnsafeSysctls: ['net/core/somaxconn'] }, { pods })).toEqual([]));
});

describe('a graceful shutdown', () => {
  const before = '/etc/systemd/logind.conf.d/10-site.conf';
  const after = '/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf';
  const on = (path: string, isResponding = true): Partial<RiskInput> => ({
    host: { ...HOST, logind: { limits: [{ path, value: '30', seconds: 30 }], isResponding } },
  });
  const periods = (total: string): JsonObject => ({ shutdownGracePeriod: total, shutdownGracePeriodCriticalPods: '10s' });

  it('is a loss if a file of logind that wins over the one of the kubelet limits it', () => {
    const [risk] = find({}, periods('60s'), on(after));
    expect(risk).toMatchObject({ path: 'shutdownGracePeriod', severity: 'loss', fix: `set InhibitDelayMaxSec=60 in ${after}` });
    expect(risk?.why).toContain(`${after} limits the delay of a shutdown with InhibitDelayMaxSec=30`);
  });

  it('sums up the periods of all priorities', () => {
    const byPriority = [10, 30].map((seconds, index) => ({ priority: index * 1000, shutdownGracePeriodSeconds: seconds }));
    expect(losses({}, { shutdownGracePeriodByPodPriority: byPriority }, on(after))).toEqual(['shutdownGracePeriodByPodPriority:']);
  });

  it.each<[string, JsonObject, JsonObject, string]>([
    ['a file that the kubelet overrides', {}, periods('60s'), before],
    ['a period within the limit', {}, periods('30s'), after],
    ['an unchanged period', periods('60s'), { ...periods('60s'), maxPods: 100 }, after],
    ['a period that is turned off', periods('60s'), {}, after],
  ])('is no finding: %s', (_, then, now, path) => expect(find(then, now, on(path))).toEqual([]));

  it('is a warning without logind', () => expect(warnings({}, periods('60s'), on(before, false))).toEqual(['shutdownGracePeriod']));
});

it('keeps kubelets before 1.32 and without Leases apart', () => {
  expect(losses({}, { nodeLeaseDurationSeconds: 160 }, { minor: 31 })).toEqual(['nodeLeaseDurationSeconds:']);
  expect(losses({}, { nodeLeaseDurationSeconds: 160 }, { minor: 32 })).toEqual([]);
  const old = { minor: 16, before: config({}, 16), after: config({ nodeStatusUpdateFrequency: '1m' }, 16) };
  expect(losses({}, {}, { ...old, dnsServices: null })).toEqual(['nodeStatusUpdateFrequency:']);
});

describe('the text of a finding', () => {
  it('names the field, the numbers and the pods', () =>
    expect(find({}, { maxPods: 3 }).map(describeRisk)).toEqual([
      'maxPods 3 is less than the 4 pods of the node: default/ccc would be terminated',
    ]));
  it('names amounts', () =>
    expect(find({}, { systemReserved: { cpu: '3' } }).map(describeRisk)).toEqual([
      'systemReserved leaves 1000m of cpu for pods, less than the 1600m that the pods of the node request: default/bb would be terminated',
    ]));
  it('cuts long lists', () => {
    const pods = Array.from({ length: 9 }, (_, i) => pod(`p${i}`));
    expect(find({}, { maxPods: 1 }, { pods }).map(describeRisk)).toEqual([
      'maxPods 1 is less than the 9 pods of the node: default/p1, default/p2, default/p3, default/p4, default/p5 and 3 more would be terminated',
    ]);
  });
});
