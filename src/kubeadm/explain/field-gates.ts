/**
 * Feature gates by the field they belong to: with the gate off the field must be unset or has no effect.
 * Nested fields share the gates of their parent.
 * @see Kubernetes 1.20 to 1.37 pkg/apis/kubelet validation, and the comments of the v1beta1 types
 */
const FIELD_GATES: Readonly<Record<string, readonly string[]>> = {
  cpuCFSQuotaPeriod: ['CustomCPUCFSQuotaPeriod'],
  cpuManagerPolicy: ['CPUManager'],
  cpuManagerPolicyOptions: ['CPUManagerPolicyOptions', 'CPUManagerPolicyBetaOptions', 'CPUManagerPolicyAlphaOptions'],
  crashLoopBackOff: ['KubeletCrashLoopBackOffMax'],
  defaultPodSysctls: ['DefaultPodSysctls'],
  enableSystemLogQuery: ['NodeLogQuery'],
  imageMaximumGCAge: ['ImageMaximumGCAge'],
  imagePullCredentialsVerificationPolicy: ['KubeletEnsureSecretPulledImages'],
  localStorageCapacityIsolation: ['LocalStorageCapacityIsolation'],
  'logging.format': ['LoggingBetaOptions'],
  'logging.options': ['LoggingAlphaOptions'],
  memoryManagerPolicy: ['MemoryManager'],
  memoryReservationPolicy: ['MemoryQoS'],
  memorySwap: ['NodeSwap'],
  memoryThrottlingFactor: ['MemoryQoS'],
  podPidsLimit: ['SupportPodPidsLimit'],
  preloadedImagesVerificationAllowlist: ['KubeletEnsureSecretPulledImages'],
  qosReserved: ['QOSReserved'],
  reservedMemory: ['MemoryManager'],
  rotateCertificates: ['RotateKubeletClientCertificate'],
  seccompDefault: ['SeccompDefault'],
  serverTLSBootstrap: ['RotateKubeletServerCertificate'],
  shutdownGracePeriod: ['GracefulNodeShutdown'],
  shutdownGracePeriodByPodPriority: ['GracefulNodeShutdown', 'GracefulNodeShutdownBasedOnPodPriority'],
  shutdownGracePeriodCriticalPods: ['GracefulNodeShutdown'],
  topologyManagerPolicy: ['TopologyManager'],
  topologyManagerPolicyOptions: ['TopologyManagerPolicyOptions', 'TopologyManagerPolicyBetaOptions', 'TopologyManagerPolicyAlphaOptions'],
  topologyManagerScope: ['TopologyManager'],
  tracing: ['KubeletTracing'],
  userNamespaces: ['UserNamespacesSupport'],
};

/** The gates of a field, by its path in the catalogue; empty when it has none. */
export function gatesOfField(path: string): readonly string[] {
  for (let at = path; at !== ''; at = at.slice(0, Math.max(at.lastIndexOf('.'), 0)).replace(/\[\]$/, '')) {
    const gates = FIELD_GATES[at];
    if (gates !== undefined) return gates;
  }
  return [];
}

/** The topmost fields that a gate belongs to. */
export function fieldsOfGate(name: string): readonly string[] {
  return Object.entries(FIELD_GATES).flatMap(([path, gates]) => (gates.includes(name) ? [path] : []));
}
