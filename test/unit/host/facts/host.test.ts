import { describe, expect, it } from 'vitest';
import { formatIp } from '../../../../src/base/text/ip.ts';
import { combineFacts, defineFact } from '../../../../src/host/facts/fact.ts';
import { fileFacts } from '../../../../src/host/facts/file-facts.ts';
import { initSystem } from '../../../../src/host/facts/init-system.ts';
import { listeningPorts, parseProcNetTcp } from '../../../../src/host/facts/listening-ports.ts';
import { operatingSystem, parseOsRelease } from '../../../../src/host/facts/operating-system.ts';
import { queryKey } from '../../../../src/host/facts/query.ts';
import { criSockets, KNOWN_CRI_SOCKETS } from '../../../../src/kubelet/facts/cri-socket.ts';
import { hostFacts, nodeChecks, parseSwaps } from '../../../../src/kubelet/facts/host-facts.ts';
import { kubeletBinary, parseKubeletVersion } from '../../../../src/kubelet/facts/kubelet-version.ts';
import { commandFailure, commandOutput, parseFact, textFile } from '../../../support/answers.ts';
import { fixture } from '../../../support/fixture.ts';

const proc = (name: string): string => fixture(import.meta.url, `fixtures/proc/${name}`);
const release = (name: string): string => fixture(import.meta.url, `fixtures/os-release/${name}`);

describe('operatingSystem', () => {
  it.each([
    ['debian-12', 'deb', 'Debian GNU/Linux 12 (bookworm)'],
    ['ubuntu-24.04', 'deb', 'Ubuntu 24.04.1 LTS'],
    ['linuxmint-22', 'deb', 'Linux Mint 22'],
    ['rocky-9', 'rpm', 'Rocky Linux 9.4 (Blue Onyx)'],
    ['amazon-2023', 'rpm', 'Amazon Linux 2023.5.20240708'],
    ['opensuse-leap-15.6', 'rpm', 'openSUSE Leap 15.6'],
    ['oracle-9', 'rpm', 'Oracle Linux Server 9.4'],
    ['photon-5', 'rpm', 'VMware Photon OS/Linux'],
    ['azurelinux-3', 'rpm', 'Microsoft Azure Linux 3.0'],
    ['openeuler-24.03', 'rpm', 'openEuler 24.03 (LTS)'],
    ['alpine-3.20', null, 'Alpine Linux v3.20'],
    ['flatcar-3975', null, 'Flatcar Container Linux by Kinvolk 3975.2.0 (Oklo)'],
    ['arch', null, 'Arch Linux'],
    ['odd', null, 'say "hi" for $5'],
  ] as const)('%s', (name, packageFamily, prettyName) => {
    expect(parseFact(operatingSystem, { release: textFile(release(name)) })).toMatchObject({ packageFamily, prettyName });
  });

  it('parses all facts of a host', () => {
    const given = {
      id: commandOutput('1000\n'),
      machine: commandOutput('x86_64\n'),
      nodename: commandOutput('Worker-2 \n'),
      release: textFile(release('debian-12')),
    };
    expect(parseFact(operatingSystem, given)).toEqual({
      uid: 1000,
      machine: 'x86_64',
      prettyName: 'Debian GNU/Linux 12 (bookworm)',
      packageFamily: 'deb',
      hostname: 'worker-2',
    });
  });

  it.each([
    ['from the file when the system is not running', { hostnameFile: textFile('# set by the installer\nEDGE-7\n') }, 'edge-7'],
    ['from the running system before the file', { nodename: commandOutput('a\n'), hostnameFile: textFile('b\n') }, 'a'],
    ['null without either', {}, null],
    ['null when the file is empty', { hostnameFile: textFile('\n') }, null],
  ])('reads the host name: %s', (_, given, hostname) => {
    expect(parseFact(operatingSystem, given)).toMatchObject({ hostname, uid: null, machine: null });
  });
});

describe('parseOsRelease', () => {
  it.each([
    ['A=b\n', 'b'],
    ['A="b c"\n', 'b c'],
    ["A='b $c'\n", 'b $c'],
    ['A="b\\"c\\\\d"\n', 'b"c\\d'],
    ['A=\n', ''],
    ['A="open\n', '"open'],
    ['#A=b\n', undefined],
    ['A=first\nA=second\n', 'second'],
    ['A=b\r\n', 'b'],
  ])('%j', (text, expected) => {
    expect(parseOsRelease(text).get('A')).toBe(expected);
  });
});

const listening6 = (address: string): string =>
  proc('net-tcp6-6.18.txt').replace('00000000000000000000000000000000:0016', `${address}:0016`);

describe('listeningPorts', () => {
  it.each([
    ['IPv4', proc('net-tcp-6.18.txt'), ['0.0.0.0 22']],
    ['IPv6', proc('net-tcp6-6.18.txt'), [':: 22']],
    ['broken lines', proc('net-tcp-broken.txt'), ['127.0.0.1 10184']],
    ['an IPv6 address', listening6('B80D01200000000000000000010000AB'), ['2001:db8::ab00:1 22']],
    ['an IPv4 address on an IPv6 socket', listening6('0000000000000000FFFF00000100007F'), ['127.0.0.1 22']],
    ['nothing', '', []],
  ])('parses %s', (_, text, expected) => {
    expect(parseProcNetTcp(text).map(({ port, address }) => `${formatIp(address)} ${port}`)).toEqual(expected);
  });

  it('ignores established connections', () => {
    expect(proc('net-tcp-6.18.txt')).toMatch(/ 01 /);
    expect(parseProcNetTcp(proc('net-tcp-6.18.txt'))).toHaveLength(1);
  });

  it('combines both families', () => {
    const v6 = textFile(proc('net-tcp6-6.18.txt').replace(':0016 ', ':280A '));
    expect(parseFact(listeningPorts, { v4: textFile(proc('net-tcp-6.18.txt')), v6 })).toEqual(
      new Map([
        [22, [{ family: 4, value: 0n }]],
        [10250, [{ family: 6, value: 0n }]],
      ]),
    );
  });

  it('is null without /proc', () => {
    expect(parseFact(listeningPorts, {})).toBeNull();
  });
});

describe('parseKubeletVersion', () => {
  it.each([
    ['Kubernetes v1.36.2\n', 'v1.36.2'],
    ['Kubernetes v1.37.0-alpha.1.25+abcdef\n', 'v1.37.0-alpha.1.25+abcdef'],
    ['Flag --x has been deprecated\nKubernetes v1.21.14\n', 'v1.21.14'],
    ['  Kubernetes v1.7.6  \n', 'v1.7.6'],
    ['Kubernetes v1.8\n', null],
    ['Kubernetes v01.8.0\n', null],
    ['kubelet 1.36.2\n', null],
    ['Kubernetes 1.36.2\n', null],
    ['Kubernetes v1.36.2 \u0007\n', null],
    ['', null],
  ])('%j', (output, expected) => {
    expect(parseKubeletVersion(output)).toBe(expected);
  });
});

describe('kubeletBinary', () => {
  const path = commandOutput('/usr/bin/kubelet\n');

  it.each([
    ['a kubelet', { version: commandOutput('Kubernetes v1.36.2\n'), path }, { version: 'v1.36.2', path: '/usr/bin/kubelet' }],
    [
      'a kubelet whose path is unknown',
      { version: commandOutput('Kubernetes v1.36.2\n') },
      { version: 'v1.36.2', path: '/usr/bin/kubelet' },
    ],
    ['none', {}, null],
    [
      'a kubelet whose path a unit cannot hold',
      { version: commandOutput('Kubernetes v1.36.2\n'), path: commandOutput('/opt/my kubelet/kubelet\n') },
      { error: '"/opt/my kubelet/kubelet": the unit of the kubelet cannot start a program at this path' },
    ],
    [
      'a kubelet for another architecture',
      { version: { ...commandOutput('/usr/bin/kubelet: Exec format error\n'), exitCode: 126 }, path },
      { error: '/usr/bin/kubelet --version printed: /usr/bin/kubelet: Exec format error' },
    ],
    ['a kubelet that prints nothing', { version: commandFailure(1, ''), path }, { error: '/usr/bin/kubelet --version exited with code 1' }],
    [
      'another program of that name',
      { version: commandOutput('hello\nworld\n'), path },
      { error: '/usr/bin/kubelet --version printed: hello; world' },
    ],
  ])('%s', (_, given, expected) => {
    expect(parseFact(kubeletBinary, given)).toEqual(expected);
  });
});

describe('initSystem', () => {
  it.each([
    ['systemd', { systemd: [], systemctl: commandOutput('/usr/bin/systemctl\n') }, 'systemd'],
    ['systemd installed, not running', { systemctl: commandOutput('/usr/bin/systemctl\n') }, null],
    ['OpenRC', { openrc: commandOutput('/sbin/rc-service\n/sbin/rc-update\n') }, 'openrc'],
    ['nothing', {}, null],
  ])('%s', (_, given, expected) => {
    expect(parseFact(initSystem, given)).toBe(expected);
  });
});

describe('nodeChecks', () => {
  it('parses the facts of a ready host', () => {
    const given = {
      swaps: textFile(proc('swaps-6.18-none.txt')),
      cgroup: commandOutput('cgroup2fs\n'),
      kernel: commandOutput('6.1.0-18-amd64\n'),
      forward4: textFile('1\n'),
      forward6: textFile('0\n'),
      commands: commandOutput(''),
    };
    expect(parseFact(nodeChecks, given)).toEqual({
      swaps: [],
      cgroupVersion: 2,
      kernelRelease: '6.1.0-18-amd64',
      ipv4Forward: true,
      ipv6Forward: false,
      missingCommands: [],
    });
  });

  it('recognizes cgroup v1 by its tmpfs and lists missing commands', () => {
    const given = { cgroup: commandOutput('tmpfs\n'), commands: commandOutput('losetup\nconntrack\n') };
    expect(parseFact(nodeChecks, given)).toMatchObject({ cgroupVersion: 1, missingCommands: ['losetup', 'conntrack'] });
  });

  it('is unknown for an image', () => {
    const nothing = { swaps: null, cgroupVersion: null, kernelRelease: null, ipv4Forward: null, ipv6Forward: null, missingCommands: null };
    expect(parseFact(nodeChecks, {})).toEqual(nothing);
  });
});

describe('parseSwaps', () => {
  it.each([
    ['none', proc('swaps-6.18-none.txt'), []],
    ['two', proc('swaps-6.1-two.txt'), ['/dev/dm-1', '/swap\\040file']],
    ['an empty file', '', []],
  ])('%s', (_, text, expected) => {
    expect(parseSwaps(text)).toEqual(expected);
  });
});

describe('criSockets', () => {
  const [CONTAINERD, CRIO, CRI_DOCKERD] = KNOWN_CRI_SOCKETS;
  const socket = { type: 'socket', mode: 0o660, owner: 'root:root' };

  it.each([
    ['none', {}, []],
    ['containerd', { [CONTAINERD]: socket }, [CONTAINERD]],
    ['two, in the order of kubeadm', { [CRI_DOCKERD]: socket, [CRIO]: socket }, [CRIO, CRI_DOCKERD]],
    ['a stale file in place of a socket', { [CONTAINERD]: textFile('') }, []],
  ])('%s', (_, given, expected) => {
    expect(parseFact(criSockets(null), given)).toEqual(expected);
  });

  it.each([
    ['unix:///run/k3s/containerd.sock', '/run/k3s/containerd.sock'],
    ['unix:/run/k3s/containerd.sock', '/run/k3s/containerd.sock'],
  ])('includes the declared %s', (declared, path) => {
    expect(criSockets(declared).queries[declared]).toMatchObject({ kind: 'file', path });
    expect(parseFact(criSockets(declared), { [declared]: socket })).toEqual([declared]);
    expect(parseFact(criSockets(declared), {})).toEqual([]);
  });
});

describe('combineFacts', () => {
  const hello = defineFact({ word: { kind: 'command', argv: ['echo', 'hi'] } }, ({ word }) => word.stdout);

  const bye = defineFact({ word: { kind: 'command', argv: ['echo', 'bye'] } }, ({ word }) => word.stdout);

  it('sends a query that several facts share once, and parses it for each fact', () => {
    const all = combineFacts({ a: hello, b: combineFacts({ inner: hello, other: bye }), c: bye });
    const [hiKey, byeKey] = ['hi', 'bye'].map((word) => queryKey({ kind: 'command', argv: ['echo', word] })) as [string, string];
    expect(Object.keys(all.queries)).toEqual([hiKey, byeKey]);
    expect(parseFact(all, { [hiKey]: commandOutput('1'), [byeKey]: commandOutput('2') })).toEqual({
      a: '1',
      b: { inner: '1', other: '2' },
      c: '2',
    });
  });
});

describe('fileFacts', () => {
  it('is a map by path that includes absent files', () => {
    const file = textFile('x');
    expect(parseFact(fileFacts(['/a', '/b']), { [queryKey({ kind: 'file', path: '/a' })]: file })).toEqual(
      new Map([
        ['/a', file],
        ['/b', null],
      ]),
    );
  });
});

describe('hostFacts', () => {
  it('queries a declared socket in addition to the sockets that kubeadm knows', () => {
    const { cgroupDrivers } = parseFact(hostFacts('unix:///run/k3s/containerd/containerd.sock'), {});
    expect([...cgroupDrivers.keys()]).toEqual(['unix:///run/k3s/containerd/containerd.sock', ...KNOWN_CRI_SOCKETS]);
  });

  it('queries a known socket once', () => {
    expect([...parseFact(hostFacts(KNOWN_CRI_SOCKETS[1]), {}).cgroupDrivers.keys()]).toHaveLength(3);
  });

  it('of an empty host are empty', () => {
    expect(parseFact(hostFacts(null), {})).toMatchObject({
      init: null,
      kubelet: null,
      unit: null,
      resolvedActive: false,
      sockets: [],
      addresses: null,
      ports: null,
    });
  });
});
