import { accepts, BOTH, finds, NEW, OLD, refuses, type ValidateCase } from './validate-case.ts';

const WORD = 'KUBELET_UNKNOWN_WORD';
const KUBE_CGROUP = 'kubeReservedCgroup: /kube\n';
const SYSTEM_CGROUP = 'systemReservedCgroup: /system\n';

const ALLOCATABLE: readonly ValidateCase[] = [
  ...accepts('kinds', BOTH, [
    'enforceNodeAllocatable: [pods]',
    'enforceNodeAllocatable: [none]',
    'enforceNodeAllocatable: []',
    `${SYSTEM_CGROUP}enforceNodeAllocatable: [pods, system-reserved]`,
    `${KUBE_CGROUP}enforceNodeAllocatable: [kube-reserved]`,
  ]),
  ...refuses('kinds', BOTH, `enforceNodeAllocatable[0] ${WORD}`, [
    'enforceNodeAllocatable: [all]',
    'enforceNodeAllocatable: [Pods]',
    'enforceNodeAllocatable: [""]',
  ]),
  ...refuses('kinds', BOTH, `enforceNodeAllocatable[1] ${WORD}`, ['enforceNodeAllocatable: [pods, x]']),
  ...refuses('compressible kinds', [OLD, 31], `enforceNodeAllocatable[0] ${WORD}`, [
    `${KUBE_CGROUP}enforceNodeAllocatable: [kube-reserved-compressible]`,
  ]),
  ...accepts(
    'compressible kinds',
    [32, NEW],
    [
      `${KUBE_CGROUP}enforceNodeAllocatable: [kube-reserved-compressible]`,
      `${SYSTEM_CGROUP}enforceNodeAllocatable: [pods, system-reserved-compressible]`,
    ],
  ),
  ...refuses('none must be alone', BOTH, 'enforceNodeAllocatable[0] KUBELET_ENFORCE_NONE', ['enforceNodeAllocatable: [none, pods]']),
  ...refuses('none must be alone', BOTH, 'enforceNodeAllocatable[1] KUBELET_ENFORCE_NONE', ['enforceNodeAllocatable: [pods, none]']),
  ...accepts('an entry twice', [OLD, 30], ['enforceNodeAllocatable: [pods, pods]']),
  ...refuses('an entry twice', [31, NEW], 'enforceNodeAllocatable[1] KUBELET_ENFORCE_TWICE', ['enforceNodeAllocatable: [pods, pods]']),
  ...refuses('an entry and its compressible kind', [32, NEW], 'enforceNodeAllocatable[1] KUBELET_ENFORCE_EITHER', [
    `${KUBE_CGROUP}enforceNodeAllocatable: [kube-reserved, kube-reserved-compressible]`,
    `${SYSTEM_CGROUP}enforceNodeAllocatable: [system-reserved, system-reserved-compressible]`,
  ]),
  ...refuses('cgroups of reservations', BOTH, 'systemReservedCgroup KUBELET_RESERVED_CGROUP', [
    'enforceNodeAllocatable: [system-reserved]',
    `${KUBE_CGROUP}enforceNodeAllocatable: [pods, system-reserved]`,
  ]),
  ...refuses('cgroups of reservations', BOTH, 'kubeReservedCgroup KUBELET_RESERVED_CGROUP', [
    'enforceNodeAllocatable: [pods, kube-reserved]',
    'kubeReservedCgroup: ""\nenforceNodeAllocatable: [kube-reserved]',
  ]),
  ...refuses('cgroups of reservations', [32, NEW], 'systemReservedCgroup KUBELET_RESERVED_CGROUP', [
    'enforceNodeAllocatable: [system-reserved-compressible]',
  ]),
  ...finds('cgroups of reservations', BOTH, [
    [
      'enforceNodeAllocatable: [kube-reserved, system-reserved]',
      'kubeReservedCgroup KUBELET_RESERVED_CGROUP',
      'systemReservedCgroup KUBELET_RESERVED_CGROUP',
    ],
  ]),
  ...accepts('cgroups without enforcement', BOTH, [KUBE_CGROUP, SYSTEM_CGROUP]),
  ...refuses('no cgroup for each class of pods', BOTH, 'cgroupsPerQOS KUBELET_CGROUPS_PER_QOS', ['cgroupsPerQOS: false']),
  ...refuses('no cgroup for each class of pods', BOTH, 'enforceNodeAllocatable KUBELET_CGROUPS_PER_QOS', [
    'cgroupsPerQOS: false\nenforceNodeAllocatable: [pods]',
  ]),
  ...accepts('no cgroup for each class of pods', BOTH, ['cgroupsPerQOS: false\nenforceNodeAllocatable: []', 'cgroupsPerQOS: true']),
  ...refuses('no cgroup for each class of pods', [OLD, 30], 'enforceNodeAllocatable KUBELET_CGROUPS_PER_QOS', [
    'cgroupsPerQOS: false\nenforceNodeAllocatable: [none]',
  ]),
  ...accepts('no cgroup for each class of pods', [31, NEW], ['cgroupsPerQOS: false\nenforceNodeAllocatable: [none]']),
  ...refuses('root of the system cgroups', BOTH, 'systemCgroups KUBELET_CGROUP_ROOT', ['systemCgroups: /system.slice']),
  ...accepts('root of the system cgroups', BOTH, ['systemCgroups: /system.slice\ncgroupRoot: /', 'cgroupRoot: /']),
];

const IMAGES: readonly ValidateCase[] = [
  ...refuses('order of the thresholds', BOTH, 'imageGCLowThresholdPercent KUBELET_IMAGE_GC_ORDER', [
    'imageGCLowThresholdPercent: 85',
    'imageGCHighThresholdPercent: 80',
    'imageGCLowThresholdPercent: 50\nimageGCHighThresholdPercent: 50',
    'imageGCLowThresholdPercent: 0\nimageGCHighThresholdPercent: 0',
  ]),
  ...accepts('order of the thresholds', BOTH, [
    'imageGCLowThresholdPercent: 84',
    'imageGCLowThresholdPercent: 0\nimageGCHighThresholdPercent: 1',
  ]),
  ...accepts('negative ages', [OLD, 35], ['imageMinimumGCAge: -1s']),
  ...refuses('negative ages', NEW, 'imageMinimumGCAge KUBELET_NEGATIVE_AGE', ['imageMinimumGCAge: -1s']),
  ...refuses('negative ages', [30, NEW], 'imageMaximumGCAge KUBELET_NEGATIVE_AGE', ['imageMaximumGCAge: -1ns']),
  ...refuses('order of the ages', [30, NEW], 'imageMaximumGCAge KUBELET_IMAGE_AGE_ORDER', [
    'imageMaximumGCAge: 2m',
    'imageMaximumGCAge: 1h\nimageMinimumGCAge: 2h',
    'imageMaximumGCAge: 1h\nimageMinimumGCAge: 1h',
  ]),
  ...accepts('order of the ages', [30, NEW], ['imageMaximumGCAge: 2m1s', 'imageMaximumGCAge: 0s\nimageMinimumGCAge: 1h']),
  ...refuses('pulls in parallel', [27, NEW], 'maxParallelImagePulls KUBELET_PARALLEL_PULLS', [
    'maxParallelImagePulls: 2\nserializeImagePulls: true',
  ]),
  ...accepts(
    'pulls in parallel',
    [27, NEW],
    [
      'maxParallelImagePulls: 5\nserializeImagePulls: false',
      'maxParallelImagePulls: 1\nserializeImagePulls: true',
      'serializeImagePulls: false',
    ],
  ),
  ...refuses('images to trust', NEW, 'preloadedImagesVerificationAllowlist KUBELET_IMAGE_ALLOWLIST', [
    'preloadedImagesVerificationAllowlist: [r.io/a]',
    'preloadedImagesVerificationAllowlist: [r.io/a]\nimagePullCredentialsVerificationPolicy: AlwaysVerify',
  ]),
  ...accepts(
    'images to trust',
    [35, NEW],
    [allow('r.io/a'), allow('r.io/*'), allow('r.io/a/*'), allow('localhost:5000/a/b'), allow('docker.io/library/a')],
  ),
  ...refuses('images to trust', [35, NEW], 'preloadedImagesVerificationAllowlist[0] KUBELET_IMAGE_ALLOWLIST', [
    allow('r.io/a:1'),
    allow(`r.io/a@sha256:${'a'.repeat(64)}`),
    allow('*'),
    allow('/*'),
    allow('r.io/a*'),
    allow('r.io/*/a'),
    allow(' r.io/a'),
    allow('r.io/a '),
    allow('r.io/App'),
    allow('r.io//a'),
    allow(''),
  ]),
  ...accepts('images to trust without a registry', NEW, [allow('app'), allow('library/app')]),
  ...refuses('images to trust without a registry', 35, 'preloadedImagesVerificationAllowlist[0] KUBELET_IMAGE_ALLOWLIST', [
    allow('app'),
    allow('library/app'),
    allow('docker.io/app'),
    allow('index.docker.io/library/app'),
  ]),
];

function allow(image: string): string {
  return `imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\npreloadedImagesVerificationAllowlist: [${JSON.stringify(image)}]`;
}

const SHUTDOWN: readonly ValidateCase[] = [
  ...accepts('periods', BOTH, [
    'shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s',
    'shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 30s',
    'shutdownGracePeriod: 1s',
    'shutdownGracePeriod: 0s',
  ]),
  ...refuses('periods', BOTH, 'shutdownGracePeriod KUBELET_SHUTDOWN_PERIOD', ['shutdownGracePeriod: 999ms', 'shutdownGracePeriod: 1ns']),
  ...finds('periods', BOTH, [
    ['shutdownGracePeriod: -1s', 'shutdownGracePeriod KUBELET_SHUTDOWN_PERIOD', 'shutdownGracePeriodCriticalPods KUBELET_SHUTDOWN_PERIOD'],
    [
      'shutdownGracePeriodCriticalPods: 500ms',
      'shutdownGracePeriodCriticalPods KUBELET_SHUTDOWN_PERIOD',
      'shutdownGracePeriodCriticalPods KUBELET_SHUTDOWN_PERIOD',
    ],
  ]),
  ...refuses('periods', BOTH, 'shutdownGracePeriodCriticalPods KUBELET_SHUTDOWN_PERIOD', [
    'shutdownGracePeriodCriticalPods: 10s',
    'shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 31s',
    'shutdownGracePeriodCriticalPods: -1s',
    'shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 999ms',
  ]),
  ...refuses('by priority', NEW, 'shutdownGracePeriodByPodPriority KUBELET_SHUTDOWN_BY_PRIORITY', [
    'shutdownGracePeriodByPodPriority: [{priority: 1}]\nshutdownGracePeriod: 10s',
    'shutdownGracePeriodByPodPriority: [{priority: 1}]\nshutdownGracePeriod: 10s\nshutdownGracePeriodCriticalPods: 5s',
  ]),
  ...accepts('by priority', NEW, [
    'shutdownGracePeriodByPodPriority: []\nshutdownGracePeriod: 10s',
    'shutdownGracePeriodByPodPriority: [{priority: -1, shutdownGracePeriodSeconds: -5}, {priority: -1}]',
  ]),
  ...accepts('longest back-off', NEW, [
    'crashLoopBackOff: {maxContainerRestartPeriod: 1s}',
    'crashLoopBackOff: {maxContainerRestartPeriod: 5m}',
    'crashLoopBackOff: {maxContainerRestartPeriod: 300.0009s}',
    'crashLoopBackOff: {}',
  ]),
  ...refuses('longest back-off', NEW, 'crashLoopBackOff.maxContainerRestartPeriod KUBELET_BACKOFF_PERIOD', [
    'crashLoopBackOff: {maxContainerRestartPeriod: 999ms}',
    'crashLoopBackOff: {maxContainerRestartPeriod: 301s}',
    'crashLoopBackOff: {maxContainerRestartPeriod: 0s}',
    'crashLoopBackOff: {maxContainerRestartPeriod: -1m}',
  ]),
];

const RESOURCES: readonly ValidateCase[] = [
  ...accepts('list of processors', BOTH, [
    'reservedSystemCPUs: "0"',
    'reservedSystemCPUs: 0-3,8',
    'reservedSystemCPUs: 1-1',
    'reservedSystemCPUs: "+1"',
    'reservedSystemCPUs: ""',
  ]),
  ...refuses('list of processors', BOTH, 'reservedSystemCPUs KUBELET_CPU_LIST', [
    'reservedSystemCPUs: a',
    'reservedSystemCPUs: "0,"',
    'reservedSystemCPUs: ",1"',
    'reservedSystemCPUs: "0, 1"',
    'reservedSystemCPUs: "1-"',
    'reservedSystemCPUs: "-1"',
    'reservedSystemCPUs: "99999999999999999999"',
  ]),
  ...accepts('ranges once read loosely', OLD, ['reservedSystemCPUs: 3-1', 'reservedSystemCPUs: 1-2-3']),
  ...refuses('ranges once read loosely', [22, NEW], 'reservedSystemCPUs KUBELET_CPU_LIST', [
    'reservedSystemCPUs: 3-1',
    'reservedSystemCPUs: 1-2-3',
  ]),
  ...refuses('processors or cgroups', BOTH, 'reservedSystemCPUs KUBELET_RESERVED_CPUS_OR_CGROUPS', [
    `reservedSystemCPUs: 0-1\n${KUBE_CGROUP}`,
    `reservedSystemCPUs: 0-1\n${SYSTEM_CGROUP}`,
    `reservedSystemCPUs: 0-1\n${SYSTEM_CGROUP}${KUBE_CGROUP}`,
  ]),
  ...accepts('reserved memory', BOTH, [
    'reservedMemory: []',
    'reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]',
    'reservedMemory: [{numaNode: 0, limits: {hugepages-1Gi: "1"}}]',
    'reservedMemory: [{numaNode: 0, limits: {hugepages-: 1}}]',
    'reservedMemory: [{numaNode: 0, limits: {memory: -1}}]',
    'reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 1, limits: {memory: 1Gi}}]',
    'reservedMemory: [{numaNode: 0}]',
  ]),
  ...refuses('reserved memory', BOTH, 'reservedMemory[0].limits[cpu] KUBELET_RESERVED_MEMORY', [
    'reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]',
  ]),
  ...refuses('reserved memory', BOTH, 'reservedMemory[0].limits[hugepages] KUBELET_RESERVED_MEMORY', [
    'reservedMemory: [{limits: {hugepages: 1}}]',
  ]),
  ...refuses('reserved memory', BOTH, 'reservedMemory[0].limits[memory] KUBELET_RESERVED_MEMORY', [
    'reservedMemory: [{numaNode: 0, limits: {memory: 0}}]',
    'reservedMemory: [{numaNode: 0, limits: {memory: 0Gi}}]',
  ]),
  ...refuses('reserved memory', BOTH, 'reservedMemory[1].limits[memory] KUBELET_RESERVED_MEMORY', [
    'reservedMemory: [{numaNode: 1, limits: {memory: 1Gi}}, {numaNode: 1, limits: {memory: 2Gi}}]',
    'reservedMemory: [{limits: {memory: 1Gi}}, {numaNode: 0, limits: {memory: 2Gi}}]',
  ]),
];

const TAINTS: readonly ValidateCase[] = [
  ...accepts(
    'taints',
    [23, NEW],
    [
      'registerWithTaints: [{key: a, effect: NoSchedule}]',
      'registerWithTaints: [{key: example.com/a.b_c-d, value: V-1, effect: PreferNoSchedule}]',
      'registerWithTaints: [{key: a, effect: NoExecute, timeAdded: null}]',
      'registerWithTaints: [{key: a}]',
      `registerWithTaints: [{key: ${'a'.repeat(63)}, value: ${'b'.repeat(63)}}]`,
    ],
  ),
  ...refuses('keys of taints', [23, NEW], 'registerWithTaints[0].key KUBELET_TAINT', [
    'registerWithTaints: [{effect: NoSchedule}]',
    'registerWithTaints: [{key: "", effect: NoSchedule}]',
    'registerWithTaints: [{key: -a}]',
    'registerWithTaints: [{key: a_}]',
    'registerWithTaints: [{key: a b}]',
    'registerWithTaints: [{key: a/b/c}]',
    'registerWithTaints: [{key: /b}]',
    'registerWithTaints: [{key: Example.com/b}]',
    `registerWithTaints: [{key: ${'a'.repeat(64)}}]`,
  ]),
  ...refuses('values of taints', [23, NEW], 'registerWithTaints[0].value KUBELET_TAINT', [
    'registerWithTaints: [{key: a, value: a/b}]',
    'registerWithTaints: [{key: a, value: -b}]',
    `registerWithTaints: [{key: a, value: ${'b'.repeat(64)}}]`,
  ]),
  ...refuses('effects of taints', [23, NEW], 'registerWithTaints[1].effect KUBELET_TAINT', [
    'registerWithTaints: [{key: a}, {key: b, effect: noSchedule}]',
    'registerWithTaints: [{key: a}, {key: b, effect: Evict}]',
  ]),
  ...refuses('times of taints', [23, NEW], 'registerWithTaints[0].timeAdded KUBELET_TAINT', [
    'registerWithTaints: [{key: a, timeAdded: 2024-01-01T00:00:00Z}]',
  ]),
];

const LOGS: readonly ValidateCase[] = [
  ...accepts('flushing', 23, ['logging: {flushFrequency: 0}', 'logging: {flushFrequency: -1}', 'logging: {flushFrequency: 5000000000}']),
  ...accepts('flushing', NEW, [
    'logging: {flushFrequency: 0}',
    'logging: {flushFrequency: 0s}',
    'logging: {flushFrequency: 1ns}',
    'logging: {flushFrequency: 5}',
  ]),
  ...refuses('flushing', [35, NEW], 'logging.flushFrequency KUBELET_FLUSH_FREQUENCY', [
    'logging: {flushFrequency: -1s}',
    'logging: {flushFrequency: -1}',
  ]),
  ...accepts('verbosity by file', [23, NEW], ['logging: {vmodule: [{filePattern: kubelet*, verbosity: 5}]}', 'logging: {vmodule: []}']),
  ...refuses('verbosity by file', [23, NEW], 'logging.vmodule[0].filePattern KUBELET_VMODULE', [
    'logging: {vmodule: [{verbosity: 5}]}',
    'logging: {vmodule: [{filePattern: "a=b", verbosity: 5}]}',
    'logging: {vmodule: [{filePattern: "a,b", verbosity: 5}]}',
  ]),
  ...refuses('verbosity by file', [23, NEW], 'logging.vmodule[0].verbosity KUBELET_VMODULE', [
    'logging: {vmodule: [{filePattern: a, verbosity: 2147483648}]}',
  ]),
  ...refuses('verbosity by file', [23, NEW], 'logging.vmodule KUBELET_VMODULE', [
    'logging: {format: json, vmodule: [{filePattern: a, verbosity: 5}]}',
  ]),
  ...accepts('endpoint of traces', NEW, [
    'tracing: {endpoint: ""}',
    'tracing: {endpoint: "localhost:4317"}',
    'tracing: {endpoint: "unix:///run/otel.sock"}',
    'tracing: {endpoint: "unix-abstract://otel"}',
    'tracing: {endpoint: "dns://8.8.8.8/otel:4317"}',
    'tracing: {endpoint: "[::1]:4317"}',
  ]),
  ...refuses('endpoint of traces', NEW, 'tracing.endpoint KUBELET_TRACING_ENDPOINT', [
    'tracing: {endpoint: "http://localhost:4317"}',
    'tracing: {endpoint: "https://otel"}',
    'tracing: {endpoint: "//otel"}',
    'tracing: {endpoint: "otel:port"}',
    'tracing: {endpoint: "a b:1"}',
    'tracing: {endpoint: "%zz"}',
    'tracing: {endpoint: "[::1"}',
  ]),
  ...refuses('queries of logs', NEW, 'enableSystemLogQuery KUBELET_SYSTEM_LOG_QUERY', [
    'featureGates: {NodeLogQuery: true}\nenableSystemLogQuery: true\nenableSystemLogHandler: false',
  ]),
  ...refuses('monitoring of logs', [30, NEW], 'containerLogMonitorInterval KUBELET_LOG_MONITOR', [
    'containerLogMonitorInterval: 2.999s',
    'containerLogMonitorInterval: 0s',
    'containerLogMonitorInterval: -10s',
  ]),
  ...accepts('monitoring of logs', [30, NEW], ['containerLogMonitorInterval: 3s']),
  ...accepts(
    'directory of logs',
    [30, NEW],
    ['podLogsDir: /var/log/pods', 'podLogsDir: logs/', 'podLogsDir: ../logs', 'podLogsDir: ""', 'podLogsDir: /a b', 'podLogsDir: /..a'],
  ),
  ...accepts(
    'directory of its own',
    [30, NEW],
    [
      'podLogsDir: /data/pod-logs',
      'podLogsDir: /var/log/pods-2',
      'podLogsDir: /mnt/disk1',
      'podLogsDir: /home/kubelet/pods',
      'volumePluginDir: /opt/volume-plugins',
      'volumePluginDir: /var/lib/kubelet/volumeplugins',
      'volumePluginDir: /usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
    ],
  ),
  ...refuses('directory of the system', [30, NEW], 'podLogsDir KUBELET_UNSAFE_DIRECTORY', [
    'podLogsDir: /',
    'podLogsDir: /etc',
    'podLogsDir: /etc/kubernetes',
    'podLogsDir: /var',
    'podLogsDir: /var/log',
    'podLogsDir: /var/lib/kubelet',
    'podLogsDir: /var/lib/kubelet/pods',
    'podLogsDir: /var/lib/etcd/member',
    'podLogsDir: /home/alice',
    'podLogsDir: /usr/share/logs',
    'podLogsDir: /tmp/logs',
    'podLogsDir: /run/logs',
  ]),
  ...refuses('directory of plugins that others can write', [20, NEW], 'volumePluginDir KUBELET_UNSAFE_DIRECTORY', [
    'volumePluginDir: /tmp/plug',
    'volumePluginDir: /var/tmp/',
    'volumePluginDir: /dev/shm/x',
    'volumePluginDir: /opt/../tmp/x',
  ]),
  ...refuses('directory of logs', [30, NEW], 'podLogsDir KUBELET_POD_LOGS_DIR', [
    'podLogsDir: /var/log/pods/',
    'podLogsDir: /var//logs',
    'podLogsDir: /var/./logs',
    'podLogsDir: /var/../logs',
    'podLogsDir: /data/logs/..',
    'podLogsDir: /var/l\u00f6g',
    'podLogsDir: l\u00f6g',
  ]),
];

export const AREA_CASES: readonly ValidateCase[] = [...ALLOCATABLE, ...IMAGES, ...SHUTDOWN, ...RESOURCES, ...TAINTS, ...LOGS];
