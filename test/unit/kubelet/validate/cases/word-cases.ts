import { accepts, BOTH, NEW, OLD, refuses, type ValidateCase } from './validate-case.ts';

const WORD = 'KUBELET_UNKNOWN_WORD';
const SECRET_PULLS = 'featureGates: {KubeletEnsureSecretPulledImages: true}\n';

export const WORD_CASES: readonly ValidateCase[] = [
  ...accepts('hairpin', BOTH, ['hairpinMode: promiscuous-bridge', 'hairpinMode: hairpin-veth', 'hairpinMode: none', 'hairpinMode: ""']),
  ...refuses('hairpin', BOTH, `hairpinMode ${WORD}`, ['hairpinMode: None', 'hairpinMode: veth']),
  ...accepts('topology policy', BOTH, [
    'topologyManagerPolicy: none',
    'topologyManagerPolicy: best-effort',
    'topologyManagerPolicy: restricted',
    'topologyManagerPolicy: single-numa-node',
  ]),
  ...refuses('topology policy', BOTH, `topologyManagerPolicy ${WORD}`, ['topologyManagerPolicy: None', 'topologyManagerPolicy: strict']),
  ...accepts('topology scope', BOTH, ['topologyManagerScope: container', 'topologyManagerScope: pod', 'topologyManagerScope: ""']),
  ...refuses('topology scope', BOTH, `topologyManagerScope ${WORD}`, ['topologyManagerScope: Pod', 'topologyManagerScope: node']),
  ...accepts('format of logs', BOTH, ['logging: {format: text}', 'logging: {format: json}', 'logging: {format: ""}', 'logging: {}']),
  ...refuses('format of logs', BOTH, 'logging.format KUBELET_LOGGING_FORMAT', ['logging: {format: JSON}', 'logging: {format: klog}']),
  ...accepts('memory reservation', NEW, ['memoryReservationPolicy: None', 'memoryReservationPolicy: ""']),
  ...accepts('memory reservation', NEW, ['memoryReservationPolicy: TieredReservation\nfeatureGates: {MemoryQoS: true}']),
  ...refuses('memory reservation', NEW, `memoryReservationPolicy ${WORD}`, [
    'memoryReservationPolicy: none',
    'memoryReservationPolicy: Tiered',
  ]),
  ...accepts('swap', 29, [
    'featureGates: {NodeSwap: true}\nmemorySwap: {swapBehavior: UnlimitedSwap}',
    'featureGates: {NodeSwap: true}\nmemorySwap: {swapBehavior: LimitedSwap}',
  ]),
  ...refuses('swap', 29, `memorySwap.swapBehavior ${WORD}`, ['featureGates: {NodeSwap: true}\nmemorySwap: {swapBehavior: NoSwap}']),
  ...accepts(
    'swap',
    [30, NEW],
    ['memorySwap: {swapBehavior: NoSwap}', 'memorySwap: {swapBehavior: LimitedSwap}', 'memorySwap: {swapBehavior: ""}', 'memorySwap: {}'],
  ),
  ...refuses('swap', [30, NEW], `memorySwap.swapBehavior ${WORD}`, [
    'memorySwap: {swapBehavior: UnlimitedSwap}',
    'memorySwap: {swapBehavior: noswap}',
  ]),
  ...accepts('trust in pulled images', 33, [`${SECRET_PULLS}imagePullCredentialsVerificationPolicy: AlwaysVerify`]),
  ...accepts('trust in pulled images', NEW, [
    'imagePullCredentialsVerificationPolicy: NeverVerify',
    'imagePullCredentialsVerificationPolicy: NeverVerifyPreloadedImages',
    'imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages',
    'imagePullCredentialsVerificationPolicy: AlwaysVerify',
    'imagePullCredentialsVerificationPolicy: ""',
  ]),
  ...refuses('trust in pulled images', NEW, `imagePullCredentialsVerificationPolicy ${WORD}`, [
    'imagePullCredentialsVerificationPolicy: Never',
    'imagePullCredentialsVerificationPolicy: alwaysVerify',
  ]),
  ...refuses('trust in pulled images', 33, `imagePullCredentialsVerificationPolicy ${WORD}`, [
    `${SECRET_PULLS}imagePullCredentialsVerificationPolicy: Never`,
  ]),
  ...accepts('hidden metrics', OLD, ['showHiddenMetricsForVersion: "1.20"', 'showHiddenMetricsForVersion: ""']),
  ...refuses('hidden metrics', OLD, 'showHiddenMetricsForVersion KUBELET_HIDDEN_METRICS', [
    'showHiddenMetricsForVersion: "1.21"',
    'showHiddenMetricsForVersion: "1.19"',
    'showHiddenMetricsForVersion: v1.20',
  ]),
  ...accepts('hidden metrics', NEW, ['showHiddenMetricsForVersion: "1.35"']),
  ...refuses('hidden metrics', NEW, 'showHiddenMetricsForVersion KUBELET_HIDDEN_METRICS', [
    'showHiddenMetricsForVersion: "1.36"',
    'showHiddenMetricsForVersion: "1.35.0"',
    'showHiddenMetricsForVersion: "1.20"',
  ]),
  ...accepts('run once', [OLD, 31], ['runOnce: false']),
  ...accepts('run once', OLD, ['runOnce: true']),
  ...refuses('run once', [32, NEW], 'runOnce KUBELET_RUN_ONCE', ['runOnce: true']),
];
