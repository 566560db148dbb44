import { describe, expect, it } from 'vitest';
import type { FileFact } from '../../../../src/host/facts/query.ts';
import type { ControlPlaneHost } from '../../../../src/kubeadm/facts/control-plane-host.ts';
import { type ControlPlaneCheckInput, controlPlaneFindings } from '../../../../src/kubeadm/preflight/control-plane-checks.ts';
import { listening } from '../../../support/listening.ts';

const MANIFESTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'etcd'].map(
  (name) => `/etc/kubernetes/manifests/${name}.yaml`,
);
const desired = MANIFESTS.map((path) => ({ path, content: `desired ${path}\n`, mode: 0o600, owner: 'root:root' }));
const NOW = Date.UTC(2026, 10, 21);

function manifests(content: (path: string) => string | null): ReadonlyMap<string, FileFact | null> {
  return new Map(
    MANIFESTS.map((path) => {
      const text = content(path);
      return [path, text === null ? null : { type: 'file', mode: 0o600, owner: 'root:root', content: text }];
    }),
  );
}

const HOST: ControlPlaneHost = {
  route: {},
  size: { cpus: 2, memoryBytes: 1700 * 1024 * 1024 },
  clock: NOW / 1000,
  firewalldActive: false,
  caDirectories: [],
  manifests: manifests(() => null),
  etcdData: null,
  files: new Map(),
};
const INPUT: ControlPlaneCheckInput = {
  host: HOST,
  ports: listening(22),
  listenAddresses: new Map(),
  addresses: ['10.0.0.1', 'fd00::1'],
  advertiseAddress: '10.0.0.1',
  bindPort: 6443,
  etcdDataDir: '/var/lib/etcd',
  manifests: desired,
  etcdClientFiles: [],
  now: NOW,
};
const LOOPBACK = new Map([[10257, [{ family: 4 as const, value: 0x7f00_0001n }]]]);
const idsOf = (input: Partial<ControlPlaneCheckInput>): readonly string[] =>
  controlPlaneFindings({ ...INPUT, ...input }).map(({ id, severity }) => (severity === 'error' ? id : `(${id})`));
const hostWith = (host: Partial<ControlPlaneHost>): Partial<ControlPlaneCheckInput> => ({ host: { ...HOST, ...host } });

describe('controlPlaneFindings', () => {
  it('finds nothing on a suitable host', () => {
    expect(idsOf({})).toEqual([]);
  });

  it.each<[string, Partial<ControlPlaneCheckInput>, readonly string[]]>([
    ['one CPU', hostWith({ size: { ...HOST.size, cpus: 1 } }), ['NumCPU']],
    ['too little memory', hostWith({ size: { ...HOST.size, memoryBytes: 1024 ** 3 } }), ['Mem']],
    ['firewalld', hostWith({ firewalldActive: true }), ['(Firewalld)']],
    [
      'ports in use',
      { ports: listening(6443, 10257, 10259, 2379, 2380, 10250) },
      ['Port-6443', 'Port-10259', 'Port-10257', 'Port-2379', 'Port-2380'],
    ],
    ['a configured port in use', { ports: listening(7443, 6443), bindPort: 7443 }, ['Port-7443']],
    ['etcd ports in use with external etcd', { ports: listening(2379, 2380), etcdDataDir: null, manifests: desired.slice(0, 3) }, []],
    ['a port in use on one address, before 1.37', { ports: listening([10257, '10.0.0.9']) }, ['Port-10257']],
    ['a port in use on another address', { ports: listening([10257, '10.0.0.9']), listenAddresses: LOOPBACK }, []],
    [
      'a port in use on the address of the component',
      { ports: listening([10257, '127.0.0.1']), listenAddresses: LOOPBACK },
      ['Port-10257'],
    ],
    ['a port in use on all addresses', { ports: listening([10257, '0.0.0.0']), listenAddresses: LOOPBACK }, ['Port-10257']],
    [
      'a port in use whose component listens on all addresses',
      { ports: listening([6443, '10.0.0.9']), listenAddresses: LOOPBACK },
      ['Port-6443'],
    ],
    [
      'manifests of another control plane',
      hostWith({ manifests: manifests((path) => (path.includes('etcd') ? null : 'other\n')) }),
      ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map((name) => `FileAvailable--etc-kubernetes-manifests-${name}.yaml`),
    ],
    [
      'a local etcd when external etcd is configured',
      {
        ...hostWith({ manifests: manifests((path) => (path.includes('etcd') ? 'other\n' : null)) }),
        etcdDataDir: null,
        manifests: desired.slice(0, 3),
      },
      ['FileAvailable--etc-kubernetes-manifests-etcd.yaml'],
    ],
    ['data of another etcd', hostWith({ etcdData: ['member'] }), ['DirAvailable--var-lib-etcd']],
    ['an empty data directory', hostWith({ etcdData: [] }), []],
    [
      'missing credentials for external etcd',
      { ...hostWith({ files: new Map([['/etc/etcd/ca.crt', null]]) }), etcdDataDir: null, etcdClientFiles: ['/etc/etcd/ca.crt'] },
      ['ExternalEtcdClientCertificates'],
    ],
    ['an address of another host', { advertiseAddress: '10.0.0.9' }, ['(AdvertiseAddress)']],
    ['an IPv6 address in another form', { advertiseAddress: 'fd00:0::0:1' }, []],
    ['a clock ten minutes behind', hostWith({ clock: NOW / 1000 - 600 }), ['HostClock']],
    ['a clock four minutes behind', hostWith({ clock: NOW / 1000 - 240 }), []],
    ['a clock two hours ahead', hostWith({ clock: NOW / 1000 + 7200 }), ['(HostClock)']],
    ['unknown facts', { ...hostWith({ size: { cpus: null, memoryBytes: null }, clock: null }), ports: null, addresses: null }, []],
  ])('%s', (_, input, expected) => {
    expect(idsOf(input)).toEqual(expected);
  });

  it('names the addresses on which a port must be free', () => {
    const [finding] = controlPlaneFindings({ ...INPUT, ports: listening([10257, '127.0.0.1']), listenAddresses: LOOPBACK });
    expect(finding?.message).toBe('port 10257 on 127.0.0.1, which kube-controller-manager needs, is in use');
  });

  it.each([
    ['whose port is in use', { ports: listening(2379) }],
    ['on a host whose ports are not known', { ports: null }],
    [
      'with another manifest',
      hostWith({ etcdData: ['member'], manifests: manifests((path) => (path.includes('etcd') ? 'other\n' : null)) }),
    ],
  ])('does not advise to remove the data of an etcd %s', (_, input) => {
    const found = controlPlaneFindings({ ...INPUT, ...hostWith({ etcdData: ['member'] }), ...input });
    expect(found.find(({ id }) => id === 'DirAvailable--var-lib-etcd')?.hint).toMatch(/^Keep the data/);
    expect(JSON.stringify(found)).not.toContain('rm -r');
  });

  it('accepts an interrupted run: its own manifests, ports and data are no findings', () => {
    const own = hostWith({ manifests: manifests((path) => `desired ${path}\n`), etcdData: ['member'] });
    expect(idsOf({ ...own, ports: listening(6443, 10257, 10259, 2379, 2380) })).toEqual([]);
  });
});
