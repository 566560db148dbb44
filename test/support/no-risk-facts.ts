import type { HostRiskFacts } from '../../src/kubelet/workload/risk-input.ts';

/** No fact is known. */
export const NO_RISK_FACTS: HostRiskFacts = {
  files: {},
  manifests: {},
  memory: null,
  nodeFs: null,
  imageFs: null,
  pids: null,
  onlineCpus: null,
  podTasks: null,
  podsMemoryBytes: null,
  ports: null,
  addresses: null,
  usesSwap: null,
  cgroupVersion: null,
  cgroups: null,
  cpuTopology: null,
  sharedCpus: null,
  maxOpenFiles: null,
  managerPolicies: {},
  sysctls: {},
  logind: null,
};
