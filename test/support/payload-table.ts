/** The node that a payload of the table is meant for. */
export interface PayloadTarget {
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly ephemeralBytes: number;
}

/**
 * A payload and its effect on a node with three pods (100m CPU, 64 MiB and 16 MiB of ephemeral storage each)
 * and a static pod.
 *
 * - `bad`: the agent must refuse it or roll it back
 * - `harmless`: the agent accepts it; all pods run and new pods start
 */
export interface TablePayload {
  readonly effect: 'bad' | 'harmless';
  /** Fields of an overlay, as YAML. */
  readonly text: string;
  /** The cause in the condition of the Node; absent for harmless payloads. */
  readonly cause?: RegExp;
  /** Why a payload that looks bad is accepted. */
  readonly reason?: string;
  /** Only a real kubelet shows the effect; the doubles cannot know it. */
  readonly real?: true;
}

const bad = (text: string, cause: RegExp): TablePayload => ({ effect: 'bad', text, cause });
const realOnly = (text: string, cause: RegExp): TablePayload => ({ ...bad(text, cause), real: true });
const harmless = (text: string, reason?: string): TablePayload => ({
  effect: 'harmless',
  text,
  ...(reason === undefined ? {} : { reason }),
});

/** Payloads for a kubelet 1.36 on cgroup v1, with containerd and the driver cgroupfs. */
export function payloadTable({ cpus, memoryBytes, ephemeralBytes }: PayloadTarget): readonly TablePayload[] {
  const almostCpu = `${cpus * 1000 - 50}m`;
  const almostMemory = `${Math.floor(memoryBytes / 1024) - 150 * 1024}Ki`;
  const almostDisk = `${Math.floor(ephemeralBytes / 1024) - 20 * 1024}Ki`;
  return [
    // Pods that ran before do not fit any more.
    bad('maxPods: 1', /maxPods|OutOfpods/),
    bad('maxPods: 3', /maxPods|OutOfpods/),
    bad('podsPerCore: 1', /podsPerCore|OutOfpods/),
    bad(`systemReserved: {cpu: ${almostCpu}}`, /cpu/i),
    bad(`kubeReserved: {cpu: ${almostCpu}}`, /cpu/i),
    bad(`systemReserved: {memory: ${almostMemory}}`, /memory/i),
    bad(`kubeReserved: {memory: ${almostMemory}}`, /memory/i),
    bad(`systemReserved: {ephemeral-storage: ${almostDisk}}`, /ephemeral/i),
    bad(`systemReserved: {cpu: "${cpus + 1}"}`, /cpu/i),
    bad(`kubeReserved: {memory: ${Math.floor(memoryBytes / 1024) * 2}Ki}`, /memory/i),
    bad('reservedSystemCPUs: 600-601', /600-601|cpu/i),
    // Evictions.
    bad('evictionHard: {memory.available: 99%}', /memory/i),
    bad('evictionHard: {memory.available: 1000Gi}', /memory/i),
    bad('evictionHard: {nodefs.available: 99%}', /nodefs|disk/i),
    bad('evictionHard: {imagefs.available: 99.9%}', /imagefs|disk/i),
    bad('evictionHard: {pid.available: 99.99%}', /pid/i),
    bad('evictionSoft: {memory.available: 99%}\nevictionSoftGracePeriod: {memory.available: 5s}', /memory/i),
    bad('evictionSoft: {nodefs.available: 99%}\nevictionSoftGracePeriod: {nodefs.available: 5s}', /nodefs|disk/i),
    // New pods do not start.
    bad('resolvConf: /no/such', /resolvConf|\/no\/such/),
    bad('resolvConf: /etc', /resolvConf|\/etc/),
    bad('podPidsLimit: 1', /podPidsLimit|pid/i),
    bad('podPidsLimit: 2', /podPidsLimit|pid/i),
    bad('clusterDNS: [not-an-ip]', /clusterDNS/),
    bad('clusterDNS: [10.96.0.99]', /clusterDNS/),
    bad('clusterDNS: []', /clusterDNS/),
    bad('runtimeRequestTimeout: 1ms', /runtime|deadline|not Ready|start/i),
    bad('cgroupDriver: systemd', /cgroupDriver/),
    bad('cgroupRoot: /no-such', /cgroup/i),
    bad('podLogsDir: /proc/pods', /podLogsDir|\/proc\/pods/),
    // Static pods end.
    bad('staticPodPath: /no/such', /static/i),
    bad('staticPodPath: null', /static/i),
    bad('staticPodPath: ""', /static/i),
    bad('staticPodPath: /etc/kubernetes', /static/i),
    // The kubelet does not start, or does not reach the API server or its runtime.
    bad('tlsCertFile: /no/cert\ntlsPrivateKeyFile: /no/key', /\/no\/(cert|key)/),
    bad('authentication: {x509: {clientCAFile: /no/ca.crt}}', /\/no\/ca\.crt/),
    bad('authentication: {x509: {clientCAFile: /etc/kubernetes/pki/other.crt}}', /401|other\.crt/),
    bad('port: 22', /port/i),
    bad('healthzPort: 22', /healthz|port/i),
    bad('readOnlyPort: 22', /port/i),
    bad('address: 203.0.113.1', /203\.0\.113\.1|address/i),
    bad('healthzBindAddress: 203.0.113.1', /healthz|203\.0\.113\.1/),
    bad('containerRuntimeEndpoint: unix:///run/none.sock', /none\.sock/),
    bad('imageServiceEndpoint: unix:///run/none.sock', /none\.sock/),
    bad('failCgroupV1: true', /cgroup/i),
    bad('protectKernelDefaults: true', /kernel|sysctl/i),
    bad('enableServer: false', /API|configz|enableServer/),
    bad('maxOpenFiles: 3', /file|start|healthz/i),
    bad(
      'enforceNodeAllocatable: [pods, system-reserved]\nsystemReservedCgroup: /no-such\nsystemReserved: {cpu: 10m}',
      /cgroup|system-reserved/i,
    ),
    bad('enforceNodeAllocatable: [pods, kube-reserved]\nkubeReservedCgroup: /no-such\nkubeReserved: {cpu: 10m}', /cgroup|kube-reserved/i),
    harmless('cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}'),
    bad('memoryManagerPolicy: Static', /reservedMemory|memory/i),
    // Rejected by validation.
    bad('featureGates: {NoSuchGate: true}', /NoSuchGate/),
    bad('oomScoreAdj: -1001', /oomScoreAdj/i),
    bad('hairpinMode: sideways', /hairpinMode/i),
    bad('eventRecordQPS: -1', /eventRecordQPS/i),
    bad('imageGCHighThresholdPercent: 101', /imageGC/i),
    bad('imageGCHighThresholdPercent: 10\nimageGCLowThresholdPercent: 20', /imageGC/i),
    bad('logging: {format: xml}', /logging/i),
    bad('shutdownGracePeriod: 1s\nshutdownGracePeriodCriticalPods: 5s', /shutdown/i),
    realOnly('podLogsDir: relative/logs', /podLogsDir/i),
    bad('containerLogMaxSize: much', /containerLogMaxSize/i),
    bad('containerLogMaxFiles: 1', /containerLogMaxFiles/i),
    bad('registryPullQPS: -1', /registryPullQPS/i),
    bad('maxParallelImagePulls: 0', /maxParallelImagePulls/i),
    bad('authorization: {mode: Sometimes}', /authorization/i),
    bad('tlsMinVersion: VersionTLS99', /tlsMinVersion|TLS/i),
    bad('tlsCipherSuites: [NO_SUCH_CIPHER]', /NO_SUCH_CIPHER|cipher/i),
    bad('allowedUnsafeSysctls: ["bad name!"]', /sysctl/i),
    bad('topologyManagerPolicy: everywhere', /topologyManager/i),
    bad('cpuManagerPolicy: static', /cpu/i),
    bad('maxPods: -1', /maxPods/i),
    bad('evictionHard: {memory.available: 110%}', /evict|memory/i),
    bad('evictionSoft: {memory.available: 1%}', /grace/i),
    bad('cgroupsPerQOS: false', /cgroupsPerQOS/i),
    bad('kubeAPIQPS: -1', /kubeAPIQPS/i),
    bad('readOnlyPort: 70000', /readOnlyPort/i),
    bad('healthzPort: 70000', /healthzPort/i),
    bad('registerWithTaints: [{key: "", effect: NoSchedule}]', /taint/i),
    bad('imageMinimumGCAge: soon', /imageMinimumGCAge/i),
    // Accepted: nothing breaks.
    harmless('nodeStatusUpdateFrequency: 20m', 'the Lease keeps the Node Ready; a warning is reported'),
    harmless('nodeLeaseDurationSeconds: 0', 'the kubelet uses its default, 40'),
    harmless('podPidsLimit: -5', 'a negative limit is no limit'),
    harmless('maxPods: 50'),
    harmless('podPidsLimit: 1000'),
    harmless('systemReserved: {cpu: 200m, memory: 200Mi}'),
    harmless('evictionHard: {memory.available: 50Mi, nodefs.available: 1%}'),
    harmless('resolvConf: ""', 'the kubelet gives new pods the resolv.conf of the runtime'),
    harmless('clusterDomain: other.local', 'new pods resolve other names; a warning is reported'),
    harmless('seccompDefault: true'),
    harmless('serializeImagePulls: false'),
    harmless('streamingConnectionIdleTimeout: 1h'),
    harmless('volumePluginDir: /no/such', 'the kubelet creates the directory'),
    harmless('rotateCertificates: false'),
    harmless('makeIPTablesUtilChains: false'),
    harmless('topologyManagerPolicy: best-effort'),
    harmless('containerLogMaxSize: 5Mi'),
    harmless('imageGCHighThresholdPercent: 90'),
    harmless('shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s'),
  ];
}
