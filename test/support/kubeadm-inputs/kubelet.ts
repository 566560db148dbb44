import fc, { type Arbitrary } from 'fast-check';
import { duration, maybe, partial, someOf } from './arbitraries.ts';

type Members = { readonly [name: string]: Arbitrary<unknown> };
const all = (names: string, arbitrary: Arbitrary<unknown>): Members =>
  Object.fromEntries(names.split(' ').map((name) => [name, arbitrary]));

const flag = fc.constantFrom(true, false, null);
const count = fc.constantFrom(0, 1, 42, 2147483647, null);
const text = fc.constantFrom('x', '', 'a: b', '010', 'null', null);
const map = fc.constantFrom({}, { b: '2', a: '1' }, { 'memory.available': '5%' }, null);
const list = fc.constantFrom([], ['a', 'b'], [''], null);

/** logsapi.LoggingConfiguration: its durations are numbers, its quantities structs. */
export const logging = partial({
  format: maybe(fc.constantFrom('json', 'text', '')),
  flushFrequency: maybe(fc.constantFrom('5s', 5_000_000_000, '1m30s', 0)),
  verbosity: maybe(fc.constantFrom(3, 0)),
  vmodule: maybe(fc.constantFrom([{ filePattern: 'a', verbosity: 2 }], [])),
  options: maybe(
    fc.constantFrom(
      { json: { infoBufferSize: '10Ki', splitStream: true } },
      { text: { infoBufferSize: 1024, splitStream: false } },
      { json: {} },
      {},
    ),
  ),
});

/**
 * A KubeletConfiguration: members of every type; kubeadm does not check whether the kubelet accepts the
 * values.
 */
export const kubeletConfiguration = someOf(
  {
    ...all('syncFrequency fileCheckFrequency httpCheckFrequency streamingConnectionIdleTimeout nodeStatusUpdateFrequency', duration),
    ...all('nodeStatusReportFrequency imageMinimumGCAge imageMaximumGCAge volumeStatsAggPeriod cpuManagerReconcilePeriod', duration),
    ...all('runtimeRequestTimeout evictionPressureTransitionPeriod shutdownGracePeriod shutdownGracePeriodCriticalPods', duration),
    ...all('cpuCFSQuotaPeriod containerLogMonitorInterval', fc.oneof(duration, fc.constant(null))),
    ...all('enableServer serverTLSBootstrap enableDebuggingHandlers enableContentionProfiling cgroupsPerQOS singleProcessOOMKill', flag),
    ...all('cpuCFSQuota serializeImagePulls mergeDefaultEvictionSettings enableControllerAttachDetach protectKernelDefaults', flag),
    ...all('makeIPTablesUtilChains failSwapOn kernelMemcgNotification enableSystemLogHandler enableSystemLogQuery', flag),
    ...all('enableProfilingHandler enableDebugFlagsHandler seccompDefault registerNode localStorageCapacityIsolation failCgroupV1', flag),
    ...all('port registryPullQPS registryBurst eventRecordQPS eventBurst oomScoreAdj nodeLeaseDurationSeconds', count),
    ...all('imageGCHighThresholdPercent imageGCLowThresholdPercent maxPods podPidsLimit nodeStatusMaxImages maxOpenFiles', count),
    ...all('kubeAPIQPS kubeAPIBurst maxParallelImagePulls evictionMaxPodGracePeriod podsPerCore iptablesMasqueradeBit', count),
    ...all('iptablesDropBit containerLogMaxFiles containerLogMaxWorkers', count),
    ...all('podLogsDir staticPodURL address tlsCertFile tlsPrivateKeyFile tlsMinVersion kubeletCgroups systemCgroups', text),
    ...all('cgroupRoot cpuManagerPolicy memoryManagerPolicy topologyManagerPolicy topologyManagerScope hairpinMode podCIDR', text),
    ...all('contentType containerLogMaxSize configMapAndSecretChangeDetectionStrategy reservedSystemCPUs', text),
    ...all('showHiddenMetricsForVersion systemReservedCgroup kubeReservedCgroup volumePluginDir providerID', text),
    ...all('imagePullCredentialsVerificationPolicy imageServiceEndpoint', text),
    ...all('cpuManagerPolicyOptions topologyManagerPolicyOptions qosReserved evictionHard evictionSoft', map),
    ...all('evictionSoftGracePeriod evictionMinimumReclaim systemReserved kubeReserved', map),
    ...all('tlsCipherSuites enforceNodeAllocatable allowedUnsafeSysctls preloadedImagesVerificationAllowlist', list),
    staticPodPath: fc.constantFrom('/srv/manifests', '/etc/kubernetes/manifests', ''),
    readOnlyPort: fc.constantFrom(0, 10255),
    healthzPort: fc.constantFrom(10248, 1, null),
    healthzBindAddress: fc.constantFrom('127.0.0.1', '::1', '0.0.0.0', ''),
    clusterDNS: fc.constantFrom(['10.0.0.53'], ['10.96.0.10', 'fd03::a'], [], null),
    clusterDomain: fc.constantFrom('own.local', ''),
    resolvConf: fc.constantFrom('/run/systemd/resolve/resolv.conf', '/etc/resolv.conf', '', null),
    containerRuntimeEndpoint: fc.constantFrom('unix:///run/own.sock', ''),
    cgroupDriver: fc.constantFrom('cgroupfs', 'systemd', ''),
    rotateCertificates: fc.constant(true),
    featureGates: fc.constantFrom({ NodeSwap: false }, { B: true, A: false }, {}),
    authentication: fc.constantFrom(
      { anonymous: { enabled: true } },
      { webhook: { cacheTTL: '5m', enabled: false } },
      { x509: { clientCAFile: '/srv/ca.crt' } },
      { anonymous: null, webhook: {} },
      {},
    ),
    authorization: fc.constantFrom({ mode: 'AlwaysAllow' }, { webhook: { cacheAuthorizedTTL: '5m', cacheUnauthorizedTTL: '30s' } }, {}),
    registerWithTaints: fc.constantFrom([], [{ key: 'a', effect: 'NoSchedule' }], [{ key: 'a', value: 'b', effect: 'NoExecute' }]),
    logging,
    tracing: fc.constantFrom({ endpoint: 'localhost:4317', samplingRatePerMillion: 100 }, {}, null),
    memorySwap: fc.constantFrom({ swapBehavior: 'LimitedSwap' }, {}),
    crashLoopBackOff: fc.constantFrom({ maxContainerRestartPeriod: '60s' }, { maxContainerRestartPeriod: null }, {}),
    userNamespaces: fc.constantFrom({ idsPerPod: 65536 }, {}, null),
    reservedMemory: fc.constantFrom([{ numaNode: 0, limits: { memory: '1024Mi', 'hugepages-1Gi': '2' } }], []),
    shutdownGracePeriodByPodPriority: fc.constantFrom([{ priority: 0, shutdownGracePeriodSeconds: 10 }], []),
    memoryThrottlingFactor: fc.constantFrom(0.8, 0, 1, null),
    staticPodURLHeader: fc.constantFrom({ 'X-Y': ['a', 'b'] }, {}),
  },
  6,
);
