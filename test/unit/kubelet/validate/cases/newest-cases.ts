import { accepts, refuses, type ValidateCase } from './validate-case.ts';

const GATE = 'featureGates: {DefaultPodSysctls: true}\ndefaultPodSysctls';

/** Rules of the kubelet 1.37 that differ from those of 1.36. They follow its sources: no kubelet 1.37 was run. */
export const NEWEST_CASES: readonly ValidateCase[] = [
  ...refuses('a field of 1.37', 36, 'defaultPodSysctls CONFIG_UNKNOWN_FIELD', ['defaultPodSysctls: {kernel.sem: "1"}']),
  ...refuses('sysctls of all Pods with the gate off', 37, 'defaultPodSysctls KUBELET_NEEDS_GATE', [
    'defaultPodSysctls: {kernel.sem: "1"}',
    'defaultPodSysctls: {not a name: "1"}',
  ]),
  ...accepts('sysctls of all Pods', 37, [
    `${GATE}: {kernel.shmall: "1048576", net.core.somaxconn: "1024", fs.mqueue.msg_max: "1"}`,
    `${GATE}: {kernel.domainname: example, user.max_user_namespaces: "1"}`,
    `${GATE}: {net/ipv4/conf/eth0.100/rp_filter: "1"}`,
    'defaultPodSysctls: {}',
  ]),
  ...refuses('sysctls that are not namespaced', 37, 'defaultPodSysctls[vm.swappiness] KUBELET_SYSCTL', [`${GATE}: {vm.swappiness: "1"}`]),
  ...refuses('patterns of sysctls', 37, 'defaultPodSysctls[net.*] KUBELET_SYSCTL', [`${GATE}: {"net.*": "1"}`]),
  ...refuses('a sysctl twice', 37, 'defaultPodSysctls[kernel/sem] KUBELET_SYSCTL', [`${GATE}: {kernel.sem: "1", kernel/sem: "1"}`]),
  ...accepts('no throttling factor with MemoryQoS', 37, ['featureGates: {MemoryQoS: true}', 'memoryReservationPolicy: TieredReservation']),
  ...refuses('a reservation policy with MemoryQoS off by default, in 1.36', 36, 'memoryReservationPolicy KUBELET_NEEDS_GATE', [
    'memoryReservationPolicy: TieredReservation',
  ]),
  ...refuses('a gate that 1.37 removed', 37, 'featureGates[SidecarContainers] KUBELET_UNKNOWN_GATE', [
    'featureGates: {SidecarContainers: true}',
  ]),
  ...accepts('a gate that 1.37 removed, in 1.36', 36, ['featureGates: {SidecarContainers: true}']),
  ...refuses('a gate that 1.37 locked', 37, 'featureGates[PLEGOnDemandRelist] KUBELET_LOCKED_GATE', [
    'featureGates: {PLEGOnDemandRelist: false}',
  ]),
];

/** Of the startup of the kubelet. */
export const NEWEST_STARTUP_CASES: readonly ValidateCase[] = [
  ...refuses('sysctls of user namespaces, to 1.36', 36, 'allowedUnsafeSysctls[0] KUBELET_START_SYSCTL', [
    'allowedUnsafeSysctls: [kernel.domainname]',
    'allowedUnsafeSysctls: [user.max_user_namespaces]',
  ]),
  ...accepts('sysctls of user namespaces, from 1.37', 37, ['allowedUnsafeSysctls: [kernel.domainname, user.max_user_namespaces]']),
];
