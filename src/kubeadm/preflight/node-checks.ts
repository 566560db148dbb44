import type { JsonObject } from '../../base/json.ts';
import {
  type Cidr,
  cidrContains,
  type IpAddress,
  isLoopback,
  isSameAddress,
  isUnspecified,
  parseCidr,
  parseIp,
} from '../../base/text/ip.ts';
import { printable } from '../../base/text/printable.ts';
import { NODE_USER_PREFIX } from '../../kube/well-known.ts';
import { cgroupDriverIssue } from '../../kubelet/facts/cgroup-driver.ts';
import { CRI_TIMEOUT_SECONDS } from '../../kubelet/facts/cri-socket.ts';
import type { HostFacts } from '../../kubelet/facts/host-facts.ts';
import { type Check, error, type Finding, runChecks, warning } from './check.ts';

export interface NodeCheckInput {
  readonly facts: HostFacts;
  readonly nodeName: string;
  /** The addresses of `--node-ip`, wherever it is set. */
  readonly nodeIPs: readonly string[];
  /** `--node-labels` sets kubernetes.io/hostname, which is otherwise the node name. */
  readonly hasHostnameLabel: boolean;
  readonly criSocket: string;
  readonly config: JsonObject;
  /** Minor version of the kubelet on the host; null when none is installed. */
  readonly kubeletMinor: number | null;
  /** Minor version of the control plane; null when not known. */
  readonly controlPlaneMinor: number | null;
  /** The IP families of the Service network. */
  readonly ipv6: boolean;
  readonly ipv4: boolean;
  /** Why systemd cannot start the kubelet, according to its unit files. */
  readonly unitRefusal: string | null;
}

/**
 * The node preflight checks of kubeadm 1.36, with kubeadm's ids, and the additional checks `CgroupDriver`, `NodeIP` and
 * `NodeName`. An unavailable fact (a staged directory, another operating system) gives no finding.
 * @see kubeadm 1.36 preflight/checks.go
 */
export function runNodeChecks(input: NodeCheckInput): readonly Finding[] {
  return runChecks(CHECKS, input);
}

const privileged: Check<NodeCheckInput> = ({ facts }) => [
  facts.os.uid === null || facts.os.uid === 0
    ? null
    : error('IsPrivilegedUser', 'the user on the host is not root', 'Run as root, or allow the user to use sudo'),
];

/** kubeadm 1.36 validates the CRI v1 API as well (preflight ContainerRuntimeCheck, util/runtime `Connect`). */
const runtime: Check<NodeCheckInput> = ({ facts, criSocket }) => {
  if (facts.init === null) return [];
  const state = facts.criStates.get(criSocket) ?? null;
  const start = 'Start the container runtime, or pass its socket with --cri-socket';
  if (!facts.sockets.includes(criSocket) || state?.kind === 'not-listening')
    return [error('CRI', `no container runtime listens on ${criSocket}`, start)];
  switch (state?.kind) {
    case 'no-cri':
      return [
        error(
          'CRI',
          `the container runtime at ${criSocket} does not serve the CRI v1 API: its CRI plugin is disabled, or it is too old`,
          'Remove cri from disabled_plugins in /etc/containerd/config.toml and restart containerd, or upgrade the runtime',
        ),
      ];
    case 'mute':
      return [
        error(
          'CRI',
          `the container runtime at ${criSocket} does not answer within ${CRI_TIMEOUT_SECONDS} s`,
          'Restart the container runtime, and read its journal',
        ),
      ];
    case 'failing':
      return [
        error(
          'CRI',
          `the container runtime at ${criSocket} fails: ${printable(state.message)}`,
          'Read the journal of the container runtime',
        ),
      ];
    default:
      return [];
  }
};

/** The first kubelet without the fallback to `cgroupDriver` of its configuration (release notes of 1.37, #139122). */
const NEEDS_RUNTIME_CONFIG = 38;

const runtimeVersion: Check<NodeCheckInput> = ({ facts, criSocket, kubeletMinor }) => {
  const state = facts.criStates.get(criSocket) ?? null;
  if (facts.runtimeConfig.get(criSocket) !== false || (state !== null && state.kind !== 'served')) return [];
  const message = `the container runtime at ${criSocket} has no CRI method RuntimeConfig, which kubelet 1.${NEEDS_RUNTIME_CONFIG} and later need`;
  const isNeeded = kubeletMinor !== null && kubeletMinor >= NEEDS_RUNTIME_CONFIG;
  return [
    isNeeded
      ? error('ContainerRuntimeVersion', message, 'Upgrade the container runtime to containerd 2.0, CRI-O 1.28 or later')
      : warning(
          'ContainerRuntimeVersion',
          `${message}. Before you upgrade the kubelet, upgrade containerd to 2.0 or later, or CRI-O to 1.28 or later`,
        ),
  ];
};

const swap: Check<NodeCheckInput> = ({ facts, config }) => {
  const areas = facts.checks.swaps ?? [];
  if (areas.length === 0) return [];
  if (config.failSwapOn === false) return [];
  return [
    error(
      'Swap',
      `swap is on (${areas.join(', ')}): with failSwapOn: true (the default), the kubelet fails at startup`,
      'Run swapoff -a and remove swap from /etc/fstab, or set failSwapOn: false',
    ),
  ];
};

const commands: Check<NodeCheckInput> = ({ facts, kubeletMinor }) =>
  (facts.checks.missingCommands ?? [])
    .filter((name) => name !== 'conntrack' || (kubeletMinor !== null && kubeletMinor < 32))
    .map((name) => error(`FileExisting-${name}`, `${name} is not on the host's PATH`, `Install the package that provides ${name}`));

const LTS_KERNEL = /^(?:5\.4|5\.10|5\.15|(?:[6-9]|[1-9][0-9]+)\.[0-9]+\.[0-9]+)/;

const system: Check<NodeCheckInput> = ({ facts, config, kubeletMinor }) => {
  const { cgroupVersion, kernelRelease } = facts.checks;
  const strict = kubeletMinor !== null && kubeletMinor >= 35 && config.failCgroupV1 !== false;
  const v1 = 'the host uses cgroup v1';
  return [
    cgroupVersion !== 1
      ? null
      : strict
        ? error(
            'SystemVerification',
            `${v1}, which kubelet 1.35 and later reject`,
            'Boot the host with cgroup v2, or set failCgroupV1: false',
          )
        : warning('SystemVerification', `${v1}, which Kubernetes no longer maintains`),
    kernelRelease === null || LTS_KERNEL.test(kernelRelease)
      ? null
      : error(
          'SystemVerification',
          `kernel ${kernelRelease} is not supported by Kubernetes (supported: 5.4, 5.10, 5.15, 6.0 and later)`,
          'Upgrade the kernel',
        ),
  ];
};

const MAX_NAME = 63;
const HOSTNAME_LABEL = 'kubernetes.io/hostname';
const QUALIFIED_NAME = /^(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

/**
 * A kubelet registers its name as the value of the label kubernetes.io/hostname, which has at most 63 characters: the API
 * server refuses the Node, and the kubelet repeats the attempt.
 * @see kubernetes/kubernetes pkg/kubelet/kubelet_node_status.go initialNode (1.36)
 */
const hostname: Check<NodeCheckInput> = ({ nodeName, hasHostnameLabel }) => {
  if (nodeName.length > MAX_NAME && !hasHostnameLabel)
    return [
      error(
        'Hostname',
        `the node name "${nodeName}" has ${nodeName.length} characters: the kubelet cannot register it, because the value of the label ${HOSTNAME_LABEL} has at most ${MAX_NAME}`,
        `Set a shorter name with --node-name, or another value of the label with --kubelet-extra-args node-labels=${HOSTNAME_LABEL}=NAME`,
      ),
    ];
  if (QUALIFIED_NAME.test(nodeName) && nodeName.length <= MAX_NAME) return [];
  const why = 'is longer than 63 characters or not a qualified name: static Pods cannot start on this node';
  return [warning('Hostname', `the node name "${nodeName}" ${why}. Set another name with --node-name`)];
};

/** The Node authorizer rejects a kubelet whose name differs from its certificate. */
const certificateName: Check<NodeCheckInput> = ({ facts: { identity }, nodeName }) => {
  const commonName = identity.state === 'usable' ? identity.commonName : null;
  if (commonName === null || !commonName.startsWith(NODE_USER_PREFIX) || commonName === `${NODE_USER_PREFIX}${nodeName}`) return [];
  const old = commonName.slice(NODE_USER_PREFIX.length);
  return [
    error(
      'NodeName',
      `the node name is ${nodeName}, but the kubelet on the host has a client certificate for ${old}`,
      `Keep the name with --node-name ${old}, or run kubeletadm reset on the host first`,
    ),
  ];
};

const kubeletVersion: Check<NodeCheckInput> = ({ facts, kubeletMinor, controlPlaneMinor }) => {
  if (facts.kubelet !== null && 'error' in facts.kubelet)
    return [error('KubeletVersion', facts.kubelet.error, 'Install a working kubelet')];
  if (facts.kubelet === null)
    return facts.init === null
      ? []
      : [
          error(
            'KubeletVersion',
            'no kubelet: it is not on the PATH of the host, and no unit kubelet.service starts one',
            'Install the kubelet package',
          ),
        ];
  if (kubeletMinor === null || controlPlaneMinor === null) return [];
  const { version } = facts.kubelet;
  const oldest = controlPlaneMinor - (controlPlaneMinor >= 28 ? 3 : 2);
  return [
    kubeletMinor > controlPlaneMinor
      ? error(
          'KubeletVersion',
          `kubelet ${version} is newer than the control plane (1.${controlPlaneMinor}), which Kubernetes does not support`,
          'Install an older kubelet, or upgrade the control plane first',
        )
      : null,
    kubeletMinor < oldest
      ? error(
          'KubeletVersion',
          `kubelet ${version} is too old for a 1.${controlPlaneMinor} control plane, which supports 1.${oldest} and later`,
          'Upgrade the kubelet',
        )
      : null,
  ];
};

const service: Check<NodeCheckInput> = ({ facts, unitRefusal }) => [
  unitRefusal === null
    ? null
    : error(
        'Service-kubelet',
        unitRefusal,
        /masked/.test(unitRefusal)
          ? 'Run systemctl unmask kubelet, or remove the symbolic link'
          : 'Fix the unit file. To show the file, run systemctl cat kubelet',
      ),
  facts.init !== 'openrc' ? null : warning('Service-kubelet', 'the host uses OpenRC, which ignores systemd drop-ins'),
];

const port: Check<NodeCheckInput> = ({ facts, config }) => {
  const number = typeof config.port === 'number' && config.port > 0 ? config.port : 10250;
  const taken = facts.ports?.has(number) === true && facts.unit?.activeState !== 'active';
  return [
    taken
      ? error(`Port-${number}`, `port ${number} is in use`, `Stop the process that listens on it (ss -ltnp 'sport = :${number}')`)
      : null,
  ];
};

const forwarding: Check<NodeCheckInput> = ({ facts, ipv4, ipv6 }) => [
  ipv4 && facts.checks.ipv4Forward === false
    ? error(
        'FileContent--proc-sys-net-ipv4-ip_forward',
        '/proc/sys/net/ipv4/ip_forward is not 1',
        'Set net.ipv4.ip_forward = 1 in a file of /etc/sysctl.d, then run sysctl --system',
      )
    : null,
  ipv6 && facts.checks.ipv6Forward === false
    ? error(
        'FileContent--proc-sys-net-ipv6-conf-default-forwarding',
        '/proc/sys/net/ipv6/conf/default/forwarding is not 1',
        'Set net.ipv6.conf.default.forwarding = 1 in a file of /etc/sysctl.d, then run sysctl --system',
      )
    : null,
];

const cgroupDriver: Check<NodeCheckInput> = ({ facts, criSocket, config }) => {
  const runtimeDriver = facts.cgroupDrivers.get(criSocket) ?? null;
  const message = cgroupDriverIssue(config.cgroupDriver, runtimeDriver);
  if (runtimeDriver === null || message === null) return [];
  return [error('CgroupDriver', message, `Set cgroupDriver: ${runtimeDriver.driver}, or change the runtime: ${runtimeDriver.change}`)];
};

/**
 * A kubelet exits with two addresses of one family, and reports no address of its Node with one that a Node may not have.
 * @see k8s.io/component-helpers node/util/ips.go parseNodeIP, pkg/kubelet/kubelet_node_status.go validateNodeIP (1.36)
 */
const nodeIp: Check<NodeCheckInput> = ({ facts, nodeIPs }) => {
  const parsed = nodeIPs.map((text) => parseIp(text));
  const families = new Set(parsed.map((ip) => ip?.family));
  const isPair = nodeIPs.length <= 1 || (nodeIPs.length === 2 && families.size === 2 && !nodeIPs.some(isUnspecifiedText));
  return [
    isPair
      ? null
      : error(
          'NodeIP',
          `node IPs ${nodeIPs.join(', ')}: the kubelet would exit, because it accepts one address, or one IPv4 and one IPv6 address`,
          'Pass one address of each family at most with --node-ip',
        ),
    ...nodeIPs.map((text, index) => nodeIpFinding(text, parsed[index] ?? null, facts.addresses)),
  ];
};

function nodeIpFinding(text: string, ip: IpAddress | null, addresses: readonly string[] | null): Finding | null {
  const hint = 'Pass one of the addresses of the host with --node-ip';
  if (ip === null) return error('NodeIP', `node IP ${text} is not an IP address: the kubelet ignores it`, hint);
  if (isUnspecified(ip)) return null;
  const kind = isLoopback(ip) ? 'a loopback' : UNUSABLE.find(({ network }) => cidrContains(network, ip))?.kind;
  if (kind !== undefined)
    return error('NodeIP', `node IP ${text} is ${kind} address, which the kubelet does not report as the address of a Node`, hint);
  if (addresses === null || addresses.some((one) => isSameAddress(one, text))) return null;
  return error('NodeIP', `node IP ${text} is not an address of this host (its addresses: ${addresses.join(', ') || 'none'})`, hint);
}

const UNUSABLE = [
  ['a link-local', '169.254.0.0/16'],
  ['a link-local', 'fe80::/10'],
  ['a multicast', '224.0.0.0/4'],
  ['a multicast', 'ff00::/8'],
].map(([kind = '', text = '']) => ({ kind, network: parseCidr(text) as Cidr }));

function isUnspecifiedText(text: string): boolean {
  const ip = parseIp(text);
  return ip !== null && isUnspecified(ip);
}

const CHECKS: readonly Check<NodeCheckInput>[] = [
  privileged,
  runtime,
  runtimeVersion,
  swap,
  commands,
  system,
  hostname,
  certificateName,
  kubeletVersion,
  service,
  port,
  forwarding,
  cgroupDriver,
  nodeIp,
];
