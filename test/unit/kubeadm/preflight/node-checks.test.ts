import { describe, expect, it } from 'vitest';
import type { UnitState } from '../../../../src/host/facts/unit.ts';
import { type NodeCheckInput, runNodeChecks } from '../../../../src/kubeadm/preflight/node-checks.ts';
import type { HostFacts } from '../../../../src/kubelet/facts/host-facts.ts';
import { hostFacts } from '../../../../src/kubelet/facts/host-facts.ts';
import { parseFact } from '../../../support/answers.ts';
import { listening } from '../../../support/listening.ts';

const CONTAINERD = 'unix:///var/run/containerd/containerd.sock';
const NOTHING = parseFact(hostFacts(null), {});
const UNIT: UnitState = {
  loadState: 'loaded',
  activeState: 'inactive',
  subState: 'dead',
  unitFileState: 'enabled',
  fragmentPath: '/usr/lib/systemd/system/kubelet.service',
  dropInPaths: [],
  restartPolicy: 'always',
  result: 'success',
  execMainCode: 0,
  execMainStatus: 0,
  restarts: 0,
  startedAt: null,
  needsReload: false,
  mainPid: null,
};
/** A host without findings in kubeadm. */
const READY: HostFacts = {
  ...NOTHING,
  os: { uid: 0, machine: 'x86_64', prettyName: 'Debian GNU/Linux 12 (bookworm)', packageFamily: 'deb', hostname: 'worker-2' },
  init: 'systemd',
  kubelet: { version: 'v1.36.2', path: '/usr/bin/kubelet' },
  unit: UNIT,
  resolvedActive: false,
  sockets: [CONTAINERD],
  addresses: ['10.0.0.7', 'fd00::7'],
  ports: listening(22),
  checks: { swaps: [], cgroupVersion: 2, kernelRelease: '6.1.0-18-amd64', ipv4Forward: true, ipv6Forward: true, missingCommands: [] },
  criStates: new Map([[CONTAINERD, { kind: 'served' }]]),
  cgroupDrivers: new Map([[CONTAINERD, { driver: 'systemd', source: 'crictl runtime-config', change: 'the line' }]]),
  runtimeConfig: new Map([[CONTAINERD, true]]),
};
const INPUT: NodeCheckInput = {
  facts: READY,
  nodeName: 'worker-2',
  nodeIPs: [],
  hasHostnameLabel: false,
  criSocket: CONTAINERD,
  config: { cgroupDriver: 'systemd' },
  kubeletMinor: 36,
  controlPlaneMinor: 36,
  ipv4: true,
  ipv6: true,
  unitRefusal: null,
};

function certificateFor(name: string): HostFacts['identity'] {
  return { state: 'usable', source: '/x.pem', commonName: `system:node:${name}`, notAfter: null, server: null };
}

function facts(change: Partial<HostFacts>): Partial<NodeCheckInput> {
  return { facts: { ...READY, ...change } };
}

function checks(change: Partial<HostFacts['checks']>): Partial<NodeCheckInput> {
  return facts({ checks: { ...READY.checks, ...change } });
}

function found(change: Partial<NodeCheckInput>): readonly string[] {
  return runNodeChecks({ ...INPUT, ...change }).map(({ id, severity, message }) => `${severity} ${id}: ${message}`);
}

describe('runNodeChecks', () => {
  it('finds nothing on a ready host', () => {
    expect(found({})).toEqual([]);
  });

  it('finds nothing when no facts are known', () => {
    expect(found({ facts: NOTHING, kubeletMinor: null, controlPlaneMinor: null, config: {} })).toEqual([]);
  });

  it.each<[string, Partial<NodeCheckInput>, readonly string[]]>([
    ['a user other than root', facts({ os: { ...READY.os, uid: 1000 } }), ['error IsPrivilegedUser: the user on the host is not root']],
    ['no runtime', facts({ sockets: [] }), [`error CRI: no container runtime listens on ${CONTAINERD}`]],
    [
      'a runtime at another socket',
      { criSocket: 'unix:///var/run/crio/crio.sock' },
      ['error CRI: no container runtime listens on unix:///var/run/crio/crio.sock'],
    ],
    [
      'a declared socket that does not exist',
      { criSocket: 'unix:///run/k3s/containerd.sock' },
      ['error CRI: no container runtime listens on unix:///run/k3s/containerd.sock'],
    ],
    ['a declared socket', { ...facts({ sockets: ['unix:///run/k3s/containerd.sock'] }), criSocket: 'unix:///run/k3s/containerd.sock' }, []],
    [
      'swap',
      checks({ swaps: ['/dev/dm-1', '/swap'] }),
      ['error Swap: swap is on (/dev/dm-1, /swap): with failSwapOn: true (the default), the kubelet fails at startup'],
    ],
    ['swap accepted by the kubelet', { ...checks({ swaps: ['/swap'] }), config: { cgroupDriver: 'systemd', failSwapOn: false } }, []],
    ['a missing command', checks({ missingCommands: ['losetup'] }), ["error FileExisting-losetup: losetup is not on the host's PATH"]],
    ['no conntrack with kubelet 1.36', checks({ missingCommands: ['conntrack'] }), []],
    [
      'no conntrack with kubelet 1.31',
      { ...checks({ missingCommands: ['conntrack'] }), kubeletMinor: 31, controlPlaneMinor: 31 },
      ["error FileExisting-conntrack: conntrack is not on the host's PATH"],
    ],
    ['a runtime that cannot be asked for its API', facts({ criStates: new Map([[CONTAINERD, null]]) }), []],
    ...(
      [
        ['no-cri', 'does not serve the CRI v1 API: its CRI plugin is disabled, or it is too old'],
        ['mute', 'does not answer within 5 s'],
      ] as const
    ).map(([kind, message]): [string, Partial<NodeCheckInput>, string[]] => [
      `a runtime that is ${kind}, without a warning about RuntimeConfig`,
      facts({ criStates: new Map([[CONTAINERD, { kind }]]), runtimeConfig: new Map([[CONTAINERD, false]]) }),
      [`error CRI: the container runtime at ${CONTAINERD} ${message}`],
    ]),
    [
      'a stopped runtime that has left its socket',
      facts({ criStates: new Map([[CONTAINERD, { kind: 'not-listening' }]]), runtimeConfig: new Map([[CONTAINERD, false]]) }),
      [`error CRI: no container runtime listens on ${CONTAINERD}`],
    ],
    [
      'a runtime that fails',
      facts({ criStates: new Map([[CONTAINERD, { kind: 'failing', message: 'server is not initialized yet' }]]) }),
      [`error CRI: the container runtime at ${CONTAINERD} fails: server is not initialized yet`],
    ],
    ['a runtime with unknown RuntimeConfig support', facts({ runtimeConfig: new Map([[CONTAINERD, null]]) }), []],
    [
      'a runtime without RuntimeConfig',
      facts({ runtimeConfig: new Map([[CONTAINERD, false]]) }),
      [
        `warning ContainerRuntimeVersion: the container runtime at ${CONTAINERD} has no CRI method RuntimeConfig, which kubelet 1.38 and later need. Before you upgrade the kubelet, upgrade containerd to 2.0 or later, or CRI-O to 1.28 or later`,
      ],
    ],
    [
      'a runtime without RuntimeConfig, with kubelet 1.38',
      { ...facts({ runtimeConfig: new Map([[CONTAINERD, false]]) }), kubeletMinor: 38, controlPlaneMinor: 38 },
      [
        `error ContainerRuntimeVersion: the container runtime at ${CONTAINERD} has no CRI method RuntimeConfig, which kubelet 1.38 and later need`,
      ],
    ],
    ['cgroup v1', checks({ cgroupVersion: 1 }), ['error SystemVerification: the host uses cgroup v1, which kubelet 1.35 and later reject']],
    [
      'cgroup v1 accepted by the configuration',
      { ...checks({ cgroupVersion: 1 }), config: { cgroupDriver: 'systemd', failCgroupV1: false } },
      ['warning SystemVerification: the host uses cgroup v1, which Kubernetes no longer maintains'],
    ],
    [
      'cgroup v1 with kubelet 1.34',
      { ...checks({ cgroupVersion: 1 }), kubeletMinor: 34 },
      ['warning SystemVerification: the host uses cgroup v1, which Kubernetes no longer maintains'],
    ],
    [
      'an old kernel',
      checks({ kernelRelease: '4.19.0-26-amd64' }),
      ['error SystemVerification: kernel 4.19.0-26-amd64 is not supported by Kubernetes (supported: 5.4, 5.10, 5.15, 6.0 and later)'],
    ],
    [
      'a kernel between the supported versions',
      checks({ kernelRelease: '5.8.0' }),
      ['error SystemVerification: kernel 5.8.0 is not supported by Kubernetes (supported: 5.4, 5.10, 5.15, 6.0 and later)'],
    ],
    ['a long-term kernel', checks({ kernelRelease: '5.15.0-1053-aws' }), []],
    ['a kernel with a two-digit major version', checks({ kernelRelease: '10.1.2' }), []],
    [
      'a name that is too long',
      { nodeName: 'a'.repeat(64) },
      [
        `error Hostname: the node name "${'a'.repeat(64)}" has 64 characters: the kubelet cannot register it, because the value of the label kubernetes.io/hostname has at most 63`,
      ],
    ],
    [
      'a name that is too long, with another label',
      { nodeName: 'a'.repeat(64), hasHostnameLabel: true },
      [
        `warning Hostname: the node name "${'a'.repeat(64)}" is longer than 63 characters or not a qualified name: static Pods cannot start on this node. Set another name with --node-name`,
      ],
    ],
    [
      'an invalid name',
      { nodeName: 'a_b-' },
      [
        'warning Hostname: the node name "a_b-" is longer than 63 characters or not a qualified name: static Pods cannot start on this node. Set another name with --node-name',
      ],
    ],
    ['a certificate for its name', facts({ identity: certificateFor('worker-2') }), []],
    [
      'a certificate for another name',
      facts({ identity: certificateFor('worker-1') }),
      ['error NodeName: the node name is worker-2, but the kubelet on the host has a client certificate for worker-1'],
    ],
    [
      'no kubelet',
      { ...facts({ kubelet: null }), kubeletMinor: null },
      ['error KubeletVersion: no kubelet: it is not on the PATH of the host, and no unit kubelet.service starts one'],
    ],
    [
      'a kubelet that fails to run',
      { ...facts({ kubelet: { error: '/usr/bin/kubelet --version printed: Exec format error' } }), kubeletMinor: null },
      ['error KubeletVersion: /usr/bin/kubelet --version printed: Exec format error'],
    ],
    [
      'a kubelet newer than the control plane',
      { controlPlaneMinor: 35 },
      ['error KubeletVersion: kubelet v1.36.2 is newer than the control plane (1.35), which Kubernetes does not support'],
    ],
    ['a kubelet three minor versions older', { kubeletMinor: 33 }, []],
    [
      'a kubelet four minor versions older',
      { kubeletMinor: 32 },
      ['error KubeletVersion: kubelet v1.36.2 is too old for a 1.36 control plane, which supports 1.33 and later'],
    ],
    ['a kubelet two minor versions older than 1.27', { kubeletMinor: 25, controlPlaneMinor: 27 }, []],
    [
      'a kubelet three minor versions older than 1.27',
      { kubeletMinor: 24, controlPlaneMinor: 27 },
      ['error KubeletVersion: kubelet v1.36.2 is too old for a 1.27 control plane, which supports 1.25 and later'],
    ],
    ['an unknown control plane version', { controlPlaneMinor: null }, []],
    ['a unit that cannot start', { unitRefusal: 'kubelet.service is masked' }, ['error Service-kubelet: kubelet.service is masked']],
    ['OpenRC', facts({ init: 'openrc' }), ['warning Service-kubelet: the host uses OpenRC, which ignores systemd drop-ins']],
    ['port 10250 in use', facts({ ports: listening(10250) }), ['error Port-10250: port 10250 is in use']],
    ['port 10250 in use by the kubelet', facts({ ports: listening(10250), unit: { ...UNIT, activeState: 'active' } }), []],
    [
      'another port in the configuration',
      { ...facts({ ports: listening(10250, 10260) }), config: { cgroupDriver: 'systemd', port: 10260 } },
      ['error Port-10260: port 10260 is in use'],
    ],
    [
      'no forwarding',
      checks({ ipv4Forward: false, ipv6Forward: false }),
      [
        'error FileContent--proc-sys-net-ipv4-ip_forward: /proc/sys/net/ipv4/ip_forward is not 1',
        'error FileContent--proc-sys-net-ipv6-conf-default-forwarding: /proc/sys/net/ipv6/conf/default/forwarding is not 1',
      ],
    ],
    ['no forwarding in an unused IP family', { ...checks({ ipv6Forward: false }), ipv6: false }, []],
    [
      'another cgroup driver',
      { config: { cgroupDriver: 'cgroupfs' } },
      ['error CgroupDriver: cgroupDriver is cgroupfs, but the container runtime uses systemd (crictl runtime-config)'],
    ],
    ['a runtime with an unknown cgroup driver', facts({ cgroupDrivers: new Map([[CONTAINERD, null]]) }), []],
    ['node IPs of the host', { nodeIPs: ['10.0.0.7', 'fd00::7'] }, []],
    [
      'an IP of another host',
      { nodeIPs: ['10.0.0.8'] },
      ['error NodeIP: node IP 10.0.0.8 is not an address of this host (its addresses: 10.0.0.7, fd00::7)'],
    ],
    ['one node IP of each family', { nodeIPs: ['fd00:0::7', '10.0.0.7'] }, []],
    [
      'two node IPs of one family',
      { ...facts({ addresses: ['10.0.0.7', '10.0.0.8'] }), nodeIPs: ['10.0.0.7', '10.0.0.8'] },
      [
        'error NodeIP: node IPs 10.0.0.7, 10.0.0.8: the kubelet would exit, because it accepts one address, or one IPv4 and one IPv6 address',
      ],
    ],
    [
      'a pair with an unspecified address',
      { nodeIPs: ['10.0.0.7', '::'] },
      ['error NodeIP: node IPs 10.0.0.7, ::: the kubelet would exit, because it accepts one address, or one IPv4 and one IPv6 address'],
    ],
    [
      'a loopback address',
      { nodeIPs: ['127.0.0.1'] },
      ['error NodeIP: node IP 127.0.0.1 is a loopback address, which the kubelet does not report as the address of a Node'],
    ],
    [
      'a link-local address',
      { nodeIPs: ['fe80::1'] },
      ['error NodeIP: node IP fe80::1 is a link-local address, which the kubelet does not report as the address of a Node'],
    ],
    ['no address', { nodeIPs: ['eth0'] }, ['error NodeIP: node IP eth0 is not an IP address: the kubelet ignores it']],
    ['an unspecified node IP', { nodeIPs: ['::'] }, []],
    [
      'a host without addresses',
      { ...facts({ addresses: [] }), nodeIPs: ['10.0.0.8'] },
      ['error NodeIP: node IP 10.0.0.8 is not an address of this host (its addresses: none)'],
    ],
  ])('%s', (_, change, expected) => {
    expect(found(change)).toEqual(expected);
  });

  it('reports all findings at once, with a hint for each error', () => {
    const findings = runNodeChecks({ ...INPUT, ...facts({ sockets: [], os: { ...READY.os, uid: 7 }, ports: listening(10250) }) });
    expect(findings.map(({ id }) => id)).toEqual(['IsPrivilegedUser', 'CRI', 'Port-10250']);
    expect(findings.every(({ hint }) => hint !== undefined && !/[.]$/.test(hint))).toBe(true);
  });
});
