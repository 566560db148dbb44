import { accepts, finds, refuses, type ValidateCase } from './validate-case.ts';

const BEFORE_20 = [11, 12, 13, 14, 15, 16, 17, 18, 19];
const FROM_17 = [17, 18, 19];

/** Rules of the kubelets 1.11 to 1.19 that differ from those of 1.20. */
export const MINOR_CASES: readonly ValidateCase[] = [
  // 1.20 and later refuse any other quota period while the gate is off.
  ...accepts('a quota period with the gate off, to 1.19', BEFORE_20.slice(1), ['cpuCFSQuotaPeriod: 5ms', 'cpuCFSQuotaPeriod: 2s']),
  ...refuses('a quota period with the gate off, from 1.20', 20, 'cpuCFSQuotaPeriod KUBELET_NEEDS_GATE', ['cpuCFSQuotaPeriod: 5ms']),
  ...refuses('a quota period out of range with the gate on', BEFORE_20.slice(1), 'cpuCFSQuotaPeriod KUBELET_OUT_OF_RANGE', [
    'cpuCFSQuotaPeriod: 2s\nfeatureGates: {CustomCPUCFSQuotaPeriod: true}',
  ]),
  ...accepts('thresholds in the wrong order, in 1.11', 11, ['imageGCLowThresholdPercent: 90', 'imageGCHighThresholdPercent: 10']),
  ...refuses('thresholds in the wrong order, from 1.12', [12, 17, 19], 'imageGCLowThresholdPercent KUBELET_IMAGE_GC_ORDER', [
    'imageGCLowThresholdPercent: 90',
  ]),
  ...refuses('certificate rotation with the gate off, to 1.18', [11, 17, 18], 'rotateCertificates KUBELET_NEEDS_GATE', [
    'rotateCertificates: true\nfeatureGates: {RotateKubeletClientCertificate: false}',
  ]),
  ...refuses('a serving certificate with the gate off by default, in 1.11', 11, 'serverTLSBootstrap KUBELET_NEEDS_GATE', [
    'serverTLSBootstrap: true',
  ]),
  ...accepts('a serving certificate, from 1.12', [12, 17, 19], ['serverTLSBootstrap: true']),
  ...refuses('a topology policy with the gate off', [16, 17], 'topologyManagerPolicy KUBELET_NEEDS_GATE', [
    'topologyManagerPolicy: best-effort',
  ]),
  ...accepts('an unknown topology policy, to 1.19', [18, 19], ['topologyManagerPolicy: best']),
  ...refuses('an unknown topology policy, from 1.20', 20, 'topologyManagerPolicy KUBELET_UNKNOWN_WORD', ['topologyManagerPolicy: best']),
  ...accepts(
    'an enforced reservation without a cgroup, to 1.14',
    [11, 14],
    ['enforceNodeAllocatable: [pods, system-reserved]', 'enforceNodeAllocatable: [kube-reserved]'],
  ),
  ...finds(
    'an enforced reservation without a cgroup, from 1.15',
    [15, 17, 19],
    [
      ['enforceNodeAllocatable: [pods, system-reserved]', 'systemReservedCgroup KUBELET_RESERVED_CGROUP'],
      ['enforceNodeAllocatable: [kube-reserved]', 'kubeReservedCgroup KUBELET_RESERVED_CGROUP'],
    ],
  ),
  ...refuses('the gate AllBeta, to 1.16', [11, 16], 'featureGates[AllBeta] KUBELET_UNKNOWN_GATE', ['featureGates: {AllBeta: true}']),
  ...accepts('the gate AllBeta, from 1.17', FROM_17, ['featureGates: {AllBeta: false}']),
  ...refuses('hidden metrics of another minor', 18, 'showHiddenMetricsForVersion KUBELET_HIDDEN_METRICS', [
    'showHiddenMetricsForVersion: "1.16"',
  ]),
  ...accepts('hidden metrics of the minor before', 18, ['showHiddenMetricsForVersion: "1.17"']),
  ...refuses('a malformed list of CPUs', FROM_17, 'reservedSystemCPUs KUBELET_CPU_LIST', ['reservedSystemCPUs: a-b']),
  ...refuses('a field of a later minor', [11, 17, 19], 'shutdownGracePeriod CONFIG_UNKNOWN_FIELD', ['shutdownGracePeriod: 30s']),
  ...refuses('a gate of a later minor', FROM_17, 'featureGates[GracefulNodeShutdown] KUBELET_UNKNOWN_GATE', [
    'featureGates: {GracefulNodeShutdown: true}',
  ]),
  ...refuses('a port out of range', BEFORE_20, 'port KUBELET_OUT_OF_RANGE', ['port: 70000']),
];
