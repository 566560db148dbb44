import { accepts, BOTH, finds, NEW, OLD, refuses, type ValidateCase } from './validate-case.ts';

const NEEDS = 'KUBELET_NEEDS_GATE';

export const GATE_CASES: readonly ValidateCase[] = [
  ...accepts('known gates', BOTH, ['featureGates: {}', 'featureGates: {AllAlpha: false}', 'featureGates: {AllBeta: true}']),
  ...refuses('unknown gates', BOTH, 'featureGates[NoSuchGate] KUBELET_UNKNOWN_GATE', [
    'featureGates: {NoSuchGate: true}',
    'featureGates: {NoSuchGate: false}',
  ]),
  ...refuses('letter case of gates counts', BOTH, 'featureGates[gracefulNodeShutdown] KUBELET_UNKNOWN_GATE', [
    'featureGates: {gracefulNodeShutdown: true}',
  ]),
  ...refuses('gates of later minors', OLD, 'featureGates[NodeSwap] KUBELET_UNKNOWN_GATE', ['featureGates: {NodeSwap: true}']),
  ...refuses('gates that were removed', NEW, 'featureGates[DynamicKubeletConfig] KUBELET_UNKNOWN_GATE', [
    'featureGates: {DynamicKubeletConfig: false}',
  ]),
  ...accepts('gates that existed once', OLD, ['featureGates: {DynamicKubeletConfig: false}']),
  ...finds('several at once', NEW, [
    ['featureGates: {Abc: true, Def: false}', 'featureGates[Abc] KUBELET_UNKNOWN_GATE', 'featureGates[Def] KUBELET_UNKNOWN_GATE'],
    ['featureGates: {Abc: true}\nport: -1', 'featureGates[Abc] KUBELET_UNKNOWN_GATE', 'port KUBELET_OUT_OF_RANGE'],
  ]),
  ...refuses('locked gates', NEW, 'featureGates[NodeSwap] KUBELET_LOCKED_GATE', ['featureGates: {NodeSwap: false}']),
  ...refuses('locked gates', OLD, 'featureGates[EndpointSlice] KUBELET_LOCKED_GATE', ['featureGates: {EndpointSlice: false}']),
  ...accepts('locked gates set to their value', OLD, ['featureGates: {EndpointSlice: true}']),
  ...finds(
    'gates that need others',
    [35, NEW],
    [
      [
        'featureGates: {GracefulNodeShutdown: false}',
        'featureGates[GracefulNodeShutdown] KUBELET_GATE_DEPENDENCY',
        'featureGates[GracefulNodeShutdown] KUBELET_GATE_DEPENDENCY',
      ],
    ],
  ),
  ...accepts('gates that need others', [34], ['featureGates: {GracefulNodeShutdown: false}']),
  ...accepts('gates that need others', NEW, [
    'featureGates: {GracefulNodeShutdown: false, GracefulNodeShutdownBasedOnPodPriority: false, WindowsGracefulNodeShutdown: false}',
  ]),
  ...refuses('period of the CPU quota', [OLD, 35], `cpuCFSQuotaPeriod ${NEEDS}`, ['cpuCFSQuotaPeriod: 50ms', 'cpuCFSQuotaPeriod: 0s']),
  ...accepts('period of the CPU quota', [OLD, 35], ['cpuCFSQuotaPeriod: 100ms', 'cpuCFSQuotaPeriod: 0.1s']),
  ...refuses('period of the CPU quota', NEW, `cpuCFSQuotaPeriod ${NEEDS}`, [
    'cpuCFSQuotaPeriod: 50ms\nfeatureGates: {CustomCPUCFSQuotaPeriod: false}',
  ]),
  ...refuses('longest age of images', 29, `imageMaximumGCAge ${NEEDS}`, ['imageMaximumGCAge: 24h']),
  ...accepts('longest age of images', 29, ['imageMaximumGCAge: 0s', 'imageMaximumGCAge: 24h\nfeatureGates: {ImageMaximumGCAge: true}']),
  ...refuses('certificates for serving', BOTH, `serverTLSBootstrap ${NEEDS}`, [
    'serverTLSBootstrap: true\nfeatureGates: {RotateKubeletServerCertificate: false}',
  ]),
  ...accepts('certificates for serving', BOTH, [
    'serverTLSBootstrap: true',
    'serverTLSBootstrap: false\nfeatureGates: {RotateKubeletServerCertificate: false}',
  ]),
  ...refuses('topology manager', [OLD, 26], `topologyManagerPolicy ${NEEDS}`, [
    'topologyManagerPolicy: restricted\nfeatureGates: {TopologyManager: false}',
  ]),
  ...refuses('topology manager', [OLD, 26], `topologyManagerScope ${NEEDS}`, [
    'topologyManagerScope: pod\nfeatureGates: {TopologyManager: false}',
  ]),
  ...accepts('topology manager', [OLD, 26], ['topologyManagerPolicy: none\nfeatureGates: {TopologyManager: false}']),
  ...finds('shutdown', OLD, [
    ['shutdownGracePeriod: 30s\nfeatureGates: {GracefulNodeShutdown: false}', `shutdownGracePeriod ${NEEDS}`],
    [
      'shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\nfeatureGates: {GracefulNodeShutdown: false}',
      `shutdownGracePeriod ${NEEDS}`,
      `shutdownGracePeriodCriticalPods ${NEEDS}`,
    ],
  ]),
  ...accepts('shutdown', OLD, ['shutdownGracePeriod: -5s\nfeatureGates: {GracefulNodeShutdown: false}']),
  ...refuses('shutdown by priority', 23, `shutdownGracePeriodByPodPriority ${NEEDS}`, [
    'shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 10}]',
  ]),
  ...refuses('shutdown by priority', NEW, `shutdownGracePeriodByPodPriority ${NEEDS}`, [
    'shutdownGracePeriodByPodPriority: [{priority: 0}]\nfeatureGates: {GracefulNodeShutdownBasedOnPodPriority: false}',
  ]),
  ...accepts('shutdown by priority', NEW, ['shutdownGracePeriodByPodPriority: [{priority: 0, shutdownGracePeriodSeconds: 10}]']),
  ...refuses('swap', [22, 27], `memorySwap.swapBehavior ${NEEDS}`, ['memorySwap: {swapBehavior: LimitedSwap}']),
  ...accepts('swap', [22, 27], ['memorySwap: {}', 'memorySwap: {swapBehavior: ""}']),
  ...refuses('longest back-off', 32, `crashLoopBackOff.maxContainerRestartPeriod ${NEEDS}`, [
    'crashLoopBackOff: {maxContainerRestartPeriod: 10s}',
    'crashLoopBackOff: {maxContainerRestartPeriod: 0s}',
  ]),
  ...accepts('longest back-off', 32, ['crashLoopBackOff: {}']),
  ...refuses('longest back-off', NEW, `crashLoopBackOff.maxContainerRestartPeriod ${NEEDS}`, [
    'crashLoopBackOff: {maxContainerRestartPeriod: 10s}\nfeatureGates: {KubeletCrashLoopBackOffMax: false}',
  ]),
  ...refuses('trust in pulled images', 33, `imagePullCredentialsVerificationPolicy ${NEEDS}`, [
    'imagePullCredentialsVerificationPolicy: AlwaysVerify',
  ]),
  ...refuses('trust in pulled images', 33, `preloadedImagesVerificationAllowlist ${NEEDS}`, [
    'preloadedImagesVerificationAllowlist: [r.io/a]',
  ]),
  ...accepts('trust in pulled images', 33, ['preloadedImagesVerificationAllowlist: []']),
  ...refuses('logs as JSON', [25, NEW], `logging.format ${NEEDS}`, ['logging: {format: json}\nfeatureGates: {LoggingBetaOptions: false}']),
  ...refuses('logs in two streams', [25, NEW], `logging.options.json.splitStream ${NEEDS}`, [
    'logging: {options: {json: {splitStream: true}}}',
  ]),
  ...refuses('logs in two streams', [25, NEW], `logging.options.json.infoBufferSize ${NEEDS}`, [
    'logging: {options: {json: {infoBufferSize: 64Ki}}}',
    'logging: {options: {json: {infoBufferSize: -1}}}',
  ]),
  ...refuses('logs in two streams', [30, NEW], `logging.options.text.splitStream ${NEEDS}`, [
    'logging: {options: {text: {splitStream: true}}}',
  ]),
  ...refuses('logs in two streams', [30, NEW], `logging.options.text.infoBufferSize ${NEEDS}`, [
    'logging: {options: {text: {infoBufferSize: 1m}}}',
  ]),
  ...accepts(
    'logs in two streams',
    [25, NEW],
    [
      'logging: {options: {json: {splitStream: false, infoBufferSize: 0}}}',
      'logging: {options: {json: {splitStream: true}}}\nfeatureGates: {LoggingAlphaOptions: true}',
    ],
  ),
  ...refuses('tracing', [25, 26], `tracing ${NEEDS}`, ['tracing: {}', 'tracing: {samplingRatePerMillion: 1}']),
  ...refuses('tracing', 33, `tracing ${NEEDS}`, ['tracing: {}\nfeatureGates: {KubeletTracing: false}']),
  ...accepts('tracing', [27, NEW], ['tracing: {}', 'tracing: {endpoint: localhost:4317}']),
  ...refuses('memory reservation', NEW, `memoryReservationPolicy ${NEEDS}`, [
    'memoryReservationPolicy: TieredReservation',
    'memoryReservationPolicy: TieredReservation\nfeatureGates: {MemoryQoS: false}',
  ]),
  ...refuses('queries of logs', [27, 29], `enableSystemLogQuery ${NEEDS}`, ['enableSystemLogQuery: true']),
  ...accepts(
    'queries of logs',
    [27, NEW],
    ['enableSystemLogQuery: false', 'enableSystemLogQuery: true\nfeatureGates: {NodeLogQuery: true}'],
  ),
];
