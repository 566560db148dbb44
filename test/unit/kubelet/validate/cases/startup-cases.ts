import { accepts, BOTH, finds, NEW, OLD, refuses, type ValidateCase } from './validate-case.ts';

const SIGNAL = 'KUBELET_START_EVICTION_SIGNAL';
const VALUE = 'KUBELET_START_EVICTION_VALUE';
const PARTIAL = 'KUBELET_EVICTION_PARTIAL';
const WORD = 'KUBELET_START_UNKNOWN_WORD';
const RESERVED = 'KUBELET_START_RESERVATION';
const STATIC = 'kubeReserved: {cpu: 500m}\ncpuManagerPolicy: static\n';

const EVICTION: readonly ValidateCase[] = [
  ...accepts('thresholds', BOTH, [
    'evictionHard: {memory.available: 100Mi, nodefs.available: 10%, nodefs.inodesFree: 5%, imagefs.available: 0%, imagefs.inodesFree: 7.5%, pid.available: 100%}',
    'evictionHard: {memory.available: .5%, nodefs.available: 1_0%, nodefs.inodesFree: 5%, imagefs.available: 1e1%, imagefs.inodesFree: 5%}',
    'evictionHard: {}',
    'evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 1m30s}',
    'evictionSoft: {memory.available: 0%}',
    'evictionMinimumReclaim: {nodefs.available: 500Mi, memory.available: "0", imagefs.available: 5%}',
  ]),
  ...refuses('signals', BOTH, `evictionHard[memory.free] ${SIGNAL}`, ['evictionHard: {memory.free: 100Mi}']),
  ...refuses('signals', BOTH, `evictionSoftGracePeriod[memory] ${SIGNAL}`, ['evictionSoftGracePeriod: {memory: 1m}']),
  ...refuses('signals', BOTH, `evictionMinimumReclaim[Nodefs.available] ${SIGNAL}`, ['evictionMinimumReclaim: {Nodefs.available: 1Gi}']),
  ...refuses('the file system of containers', [OLD, 28], `evictionHard[containerfs.available] ${SIGNAL}`, [
    'evictionHard: {containerfs.available: 10%}',
  ]),
  ...refuses('the file system of containers', [29, NEW], `evictionHard ${PARTIAL}`, ['evictionHard: {containerfs.available: 10%}']),
  ...refuses('some of the default signals', BOTH, `evictionHard ${PARTIAL}`, ['evictionHard: {memory.available: 1Gi}']),
  ...accepts(
    'all default signals by another field',
    [33, NEW],
    ['evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true'],
  ),
  ...refuses('values of hard thresholds', BOTH, `evictionHard[memory.available] ${VALUE}`, [
    'evictionHard: {memory.available: <100Mi}',
    'evictionHard: {memory.available: 100MB}',
    'evictionHard: {memory.available: "0"}',
    'evictionHard: {memory.available: -1Gi}',
    'evictionHard: {memory.available: 101%}',
    'evictionHard: {memory.available: -5%}',
    'evictionHard: {memory.available: five%}',
    'evictionHard: {memory.available: ""}',
    'evictionHard: {memory.available: null}',
  ]),
  ...refuses('values of soft thresholds', BOTH, `evictionSoft[nodefs.available] ${VALUE}`, [
    'evictionSoft: {nodefs.available: 10 %}\nevictionSoftGracePeriod: {nodefs.available: 1m}',
  ]),
  ...refuses('grace periods', BOTH, `evictionSoftGracePeriod[nodefs.available] ${VALUE}`, [
    'evictionSoftGracePeriod: {nodefs.available: 1 minute}',
    'evictionSoftGracePeriod: {nodefs.available: "90"}',
    'evictionSoftGracePeriod: {nodefs.available: -1m}',
  ]),
  ...refuses('least reclaim', BOTH, `evictionMinimumReclaim[nodefs.available] ${VALUE}`, [
    'evictionMinimumReclaim: {nodefs.available: 0%}',
    'evictionMinimumReclaim: {nodefs.available: "-1"}',
    'evictionMinimumReclaim: {nodefs.available: a lot}',
    'evictionMinimumReclaim: {nodefs.available: 1e400%}',
  ]),
  ...refuses('soft thresholds need a grace period', BOTH, 'evictionSoft[memory.available] KUBELET_START_EVICTION_GRACE', [
    'evictionSoft: {memory.available: 1Gi}',
    'evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {nodefs.available: 1m}',
  ]),
];

const RESERVATIONS: readonly ValidateCase[] = [
  ...accepts('reservations', BOTH, [
    'kubeReserved: {cpu: 200m, memory: 1Gi, ephemeral-storage: 1Gi, pid: "1000"}',
    'systemReserved: {}',
    'qosReserved: {memory: 50%}',
    'qosReserved: {memory: 0%}',
  ]),
  ...refuses('reservations', BOTH, `kubeReserved[gpu] ${RESERVED}`, ['kubeReserved: {gpu: "1"}']),
  ...refuses('reservations', BOTH, `kubeReserved[memory] ${RESERVED}`, [
    'kubeReserved: {memory: 1GB}',
    'kubeReserved: {memory: -1Gi}',
    'kubeReserved: {memory: 10%}',
  ]),
  ...refuses('reservations', BOTH, `systemReserved[cpu] ${RESERVED}`, ['systemReserved: {cpu: half}', 'systemReserved: {cpu: ""}']),
  ...accepts('enforced reservations', BOTH, [
    'enforceNodeAllocatable: [system-reserved]\nsystemReservedCgroup: x\nsystemReserved: {memory: 1Gi}',
    'enforceNodeAllocatable: [kube-reserved]\nkubeReservedCgroup: x\nkubeReserved: {cpu: "1"}',
  ]),
  ...refuses('enforced reservations', BOTH, `systemReserved ${RESERVED}`, [
    'enforceNodeAllocatable: [pods, system-reserved]\nsystemReservedCgroup: x\nsystemReserved: {}\nkubeReserved: {cpu: "1"}',
  ]),
  ...refuses('enforced reservations', [32, NEW], `kubeReserved ${RESERVED}`, [
    'enforceNodeAllocatable: [kube-reserved-compressible]\nkubeReservedCgroup: x',
  ]),
  ...refuses('reservations by class of pods', BOTH, 'qosReserved[memory] KUBELET_START_QOS_RESERVED', [
    'qosReserved: {memory: "50"}',
    'qosReserved: {memory: 101%}',
    'qosReserved: {memory: 12.5%}',
    'qosReserved: {memory: -1%}',
  ]),
  ...refuses('reservations by class of pods', BOTH, 'qosReserved[cpu] KUBELET_START_QOS_RESERVED', ['qosReserved: {cpu: 50%}']),
  ...accepts('memory manager', BOTH, [
    'memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]\nkubeReserved: {memory: 1Gi}',
    'memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 500Mi}}, {numaNode: 1, limits: {memory: 624Mi}}]\nsystemReserved: {memory: 1Gi}',
    'memoryManagerPolicy: Static\nreservedMemory: [{limits: {memory: 1Gi}}]\nkubeReserved: {memory: 1Gi}\nevictionHard: {memory.available: 0%, nodefs.available: 5%, nodefs.inodesFree: 5%, imagefs.available: 5%, imagefs.inodesFree: 5%}',
    'memoryManagerPolicy: Static\nreservedMemory: [{limits: {memory: 1Gi}}]\nkubeReserved: {memory: 1Gi}\nevictionHard: {memory.available: 5%, nodefs.available: 5%, nodefs.inodesFree: 5%, imagefs.available: 5%, imagefs.inodesFree: 5%}',
  ]),
  ...refuses('memory manager', BOTH, 'memoryManagerPolicy KUBELET_START_MEMORY_MANAGER', [
    'memoryManagerPolicy: static',
    'memoryManagerPolicy: Static',
    'memoryManagerPolicy: Static\nreservedMemory: []',
  ]),
  ...refuses('memory manager', BOTH, 'reservedMemory KUBELET_START_MEMORY_MANAGER', [
    'memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\nkubeReserved: {memory: 1Gi}',
  ]),
];

const MANAGERS: readonly ValidateCase[] = [
  ...accepts('CPU manager', BOTH, [STATIC, 'reservedSystemCPUs: 0-1\ncpuManagerPolicy: static', 'cpuManagerPolicy: none']),
  ...refuses('CPU manager', BOTH, 'cpuManagerPolicy KUBELET_START_CPU_MANAGER', [
    'cpuManagerPolicy: Static',
    'cpuManagerPolicy: static',
    'cpuManagerPolicy: static\nkubeReserved: {cpu: "0", memory: 1Gi}',
  ]),
  ...accepts('options of the CPU manager', [23, NEW], [`${STATIC}cpuManagerPolicyOptions: {full-pcpus-only: "true"}`]),
  ...refuses('options of the CPU manager', [23, NEW], 'cpuManagerPolicyOptions KUBELET_START_CPU_OPTIONS', [
    'cpuManagerPolicyOptions: {full-pcpus-only: "true"}',
  ]),
  ...refuses('options of the CPU manager', [23, NEW], 'cpuManagerPolicyOptions[full-pcpu-only] KUBELET_START_CPU_OPTIONS', [
    `${STATIC}cpuManagerPolicyOptions: {full-pcpu-only: "true"}`,
  ]),
  ...refuses('options of the CPU manager', [23, NEW], 'cpuManagerPolicyOptions[full-pcpus-only] KUBELET_START_CPU_OPTIONS', [
    `${STATIC}cpuManagerPolicyOptions: {full-pcpus-only: "yes"}`,
  ]),
  ...refuses('options behind a gate', [31, NEW], 'cpuManagerPolicyOptions[distribute-cpus-across-cores] KUBELET_START_CPU_OPTIONS', [
    `${STATIC}cpuManagerPolicyOptions: {distribute-cpus-across-cores: "true"}`,
  ]),
  ...accepts(
    'options behind a gate',
    [31, NEW],
    [`${STATIC}cpuManagerPolicyOptions: {distribute-cpus-across-cores: "true"}\nfeatureGates: {CPUManagerPolicyAlphaOptions: true}`],
  ),
  ...refuses('options of later minors', 31, 'cpuManagerPolicyOptions[strict-cpu-reservation] KUBELET_START_CPU_OPTIONS', [
    `${STATIC}cpuManagerPolicyOptions: {strict-cpu-reservation: "true"}`,
  ]),
  ...accepts('options of the topology manager', NEW, [
    'topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true", max-allowable-numa-nodes: "16"}',
    'topologyManagerPolicyOptions: {nonsense: "true"}',
  ]),
  ...refuses(
    'options of the topology manager',
    NEW,
    'topologyManagerPolicyOptions[max-allowable-numa-nodes] KUBELET_START_TOPOLOGY_OPTIONS',
    [
      'topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {max-allowable-numa-nodes: "4"}',
      'topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {max-allowable-numa-nodes: many}',
    ],
  ),
  ...refuses('options of the topology manager', NEW, 'topologyManagerPolicyOptions[prefer-closest] KUBELET_START_TOPOLOGY_OPTIONS', [
    'topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {prefer-closest: "true"}',
  ]),
];

const SERVING: readonly ValidateCase[] = [
  ...accepts('values validated at startup', BOTH, [
    'tlsMinVersion: VersionTLS13',
    'authorization: {mode: Webhook}',
    'cgroupDriver: cgroupfs',
  ]),
  ...refuses('values validated at startup', BOTH, `tlsMinVersion ${WORD}`, ['tlsMinVersion: "1.2"', 'tlsMinVersion: TLS12']),
  ...refuses('values validated at startup', BOTH, `authorization.mode ${WORD}`, [
    'authorization: {mode: RBAC}',
    'authorization: {mode: webhook}',
  ]),
  ...refuses('values validated at startup', BOTH, `configMapAndSecretChangeDetectionStrategy ${WORD}`, [
    'configMapAndSecretChangeDetectionStrategy: watch',
  ]),
  ...refuses('values validated at startup', BOTH, `cgroupDriver ${WORD}`, ['cgroupDriver: Systemd']),
  ...accepts('cipher suites', BOTH, [
    'tlsCipherSuites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_RSA_WITH_AES_128_CBC_SHA]',
    'tlsCipherSuites: []',
  ]),
  ...refuses('cipher suites', BOTH, 'tlsCipherSuites[1] KUBELET_START_CIPHER_SUITE', [
    'tlsCipherSuites: [TLS_AES_128_GCM_SHA256, ECDHE-RSA-AES128-GCM-SHA256]',
    'tlsCipherSuites: [TLS_AES_128_GCM_SHA256, ""]',
  ]),
  ...refuses('certificate and key', BOTH, 'tlsCertFile KUBELET_START_CERTIFICATE_PAIR', ['tlsCertFile: /a.crt']),
  ...refuses('certificate and key', BOTH, 'tlsPrivateKeyFile KUBELET_START_CERTIFICATE_PAIR', ['tlsPrivateKeyFile: /a.key']),
  ...accepts('certificate and key', BOTH, ['tlsCertFile: /a.crt\ntlsPrivateKeyFile: /a.key']),
  ...refuses('frequency of syncs', BOTH, 'syncFrequency KUBELET_START_SYNC_FREQUENCY', ['syncFrequency: -1s']),
  ...accepts('size of logs', BOTH, ['containerLogMaxSize: 10Mi', 'containerLogMaxSize: "-1"', 'containerLogMaxSize: ""']),
  ...refuses('size of logs', BOTH, 'containerLogMaxSize KUBELET_START_LOG_ROTATION', [
    'containerLogMaxSize: 10MB',
    'containerLogMaxSize: 10 Mi',
  ]),
  ...refuses('number of logs', [OLD, 32], 'containerLogMaxFiles KUBELET_START_LOG_ROTATION', ['containerLogMaxFiles: 1']),
  ...accepts('sysctls', BOTH, ['allowedUnsafeSysctls: [kernel.msg*, net.core.somaxconn, net/ipv4/tcp_syncookies, fs.mqueue.*]']),
  ...refuses('sysctls', BOTH, 'allowedUnsafeSysctls[0] KUBELET_START_SYSCTL', [
    'allowedUnsafeSysctls: ["*"]',
    'allowedUnsafeSysctls: [vm.swappiness]',
    'allowedUnsafeSysctls: [Net.core.somaxconn]',
    'allowedUnsafeSysctls: ["net.*.x"]',
  ]),
  ...accepts(
    'endpoints',
    [27, NEW],
    ['containerRuntimeEndpoint: /run/x.sock', 'containerRuntimeEndpoint: unix:///run/x.sock', 'imageServiceEndpoint: ""'],
  ),
  ...refuses('endpoints', [27, NEW], 'containerRuntimeEndpoint KUBELET_START_ENDPOINT', [
    'containerRuntimeEndpoint: http://x',
    'containerRuntimeEndpoint: npipe:////./pipe/x',
  ]),
  ...refuses('endpoints', [27, NEW], 'imageServiceEndpoint KUBELET_START_ENDPOINT', ['imageServiceEndpoint: https://x']),
  ...refuses('bits of the marks', [OLD, 27], 'iptablesMasqueradeBit KUBELET_START_IPTABLES_BITS', ['iptablesMasqueradeBit: 15']),
  ...accepts('bits of the marks', [OLD, 27], ['iptablesMasqueradeBit: 15\nmakeIPTablesUtilChains: false', 'iptablesMasqueradeBit: 1']),
];

const ADVICE: readonly ValidateCase[] = [
  ...[
    ['syncFrequency', '1ms', '500ms'],
    ['fileCheckFrequency', '1µs', '999ms'],
    ['httpCheckFrequency', '1ns'],
    ['volumeStatsAggPeriod', '1ms', '9s'],
    ['nodeStatusUpdateFrequency', '1ms', '6m'],
    ['nodeLeaseDurationSeconds', '1', '600'],
    ['kubeAPIQPS', '1', '100000'],
    ['kubeAPIBurst', '1'],
    ['eventRecordQPS', '1000000'],
    ['evictionPressureTransitionPeriod', '1s', '24h'],
    ['oomScoreAdj', '0', '1000', '-800'],
    ['maxOpenFiles', '100'],
    ['containerLogMaxSize', '1Ki', '100m'],
  ].flatMap(([field = '', ...values]) =>
    refuses(
      'unusual value',
      BOTH,
      `${field} KUBELET_UNUSUAL_VALUE`,
      values.map((value) => `${field}: ${value}`),
    ),
  ),
  ...refuses('unusual age', [36, 36], 'imageMaximumGCAge KUBELET_UNUSUAL_VALUE', ['imageMaximumGCAge: 5m']),
  ...accepts('usual value', BOTH, [
    'fileCheckFrequency: 1s',
    'volumeStatsAggPeriod: -1s',
    'kubeAPIQPS: 5',
    'eventRecordQPS: 0',
    'nodeLeaseDurationSeconds: 40',
    'oomScoreAdj: -999',
    'containerLogMaxSize: 100Ki',
    'evictionPressureTransitionPeriod: 30s',
    'syncFrequency: 1m',
  ]),
  ...refuses('DNS addresses', BOTH, 'clusterDNS[1] KUBELET_IGNORED_VALUE', [
    'clusterDNS: [10.96.0.10, dns.local]',
    'clusterDNS: ["fd00::10", 10.96.0.300]',
  ]),
  ...refuses('fields without effect', NEW, 'iptablesDropBit KUBELET_DEPRECATED_FIELD', ['iptablesDropBit: 15']),
  ...refuses('fields without effect', NEW, 'streamingConnectionIdleTimeout KUBELET_DEPRECATED_FIELD', [
    'streamingConnectionIdleTimeout: 4h',
  ]),
  ...refuses('fields that go', 23, 'logging.sanitization KUBELET_DEPRECATED_FIELD', ['logging: {sanitization: true}']),
  ...refuses('fields that go', 31, 'runOnce KUBELET_DEPRECATED_FIELD', ['runOnce: true']),
  ...refuses('cgroup v1', NEW, 'failCgroupV1 KUBELET_DEPRECATED_CGROUP_V1', ['failCgroupV1: false']),
  ...finds('gates that go', NEW, [['featureGates: {NodeSwap: true}', 'featureGates[NodeSwap] KUBELET_DEPRECATED_GATE']]),
  ...accepts('gates that stay', NEW, ['featureGates: {MemoryQoS: false}']),
];

/** Accepted by the kubelet: all that is found are warnings. */
export const STARTUP_CASES: readonly ValidateCase[] = [...EVICTION, ...RESERVATIONS, ...MANAGERS, ...SERVING, ...ADVICE];
