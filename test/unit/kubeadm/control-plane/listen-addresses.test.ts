import { describe, expect, it } from 'vitest';
import { formatIp, type IpAddress, parseIp } from '../../../../src/base/text/ip.ts';
import { isTaken, listenAddresses } from '../../../../src/kubeadm/control-plane/listen-addresses.ts';
import { staticPodNames, staticPodOf } from '../../../../src/kubeadm/control-plane/manifests.ts';
import { controlPlaneNode } from '../../../support/control-plane-node.ts';

const INIT =
  'apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\nlocalAPIEndpoint: {advertiseAddress: ADDRESS, bindPort: 7443}\n---\n';
const CLUSTER = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.0\n';

/** The addresses of each port, as text. */
function addressesWith(settings: string, address = '192.0.2.10'): Readonly<Record<number, string>> {
  const node = controlPlaneNode(`${INIT.replace('ADDRESS', JSON.stringify(address))}${CLUSTER}${settings}`);
  const found = listenAddresses(new Map(staticPodNames(node).map((name) => [name, staticPodOf(node, name)])), 7443);
  return Object.fromEntries([...found].map(([port, addresses]) => [port, addresses.map(formatIp).join(' ')]));
}

const extra = (component: string, value: string): string =>
  `${component}: {extraArgs: [{name: bind-address, value: ${JSON.stringify(value)}}]}\n`;
const OWN = { 10257: '127.0.0.1', 10259: '127.0.0.1', 2379: '127.0.0.1 192.0.2.10', 2380: '192.0.2.10' };

describe('listenAddresses', () => {
  it('are those of the static Pods; the API server listens on all addresses', () => {
    expect(addressesWith('')).toEqual(OWN);
    expect(addressesWith('', 'fd00::10')).toEqual({ ...OWN, 2379: '::1 fd00::10', 2380: 'fd00::10' });
  });

  it.each([
    ['an address of the API server', extra('apiServer', '192.0.2.10'), { ...OWN, 7443: '192.0.2.10' }],
    ['another address of the scheduler', extra('scheduler', '192.0.2.11'), { ...OWN, 10259: '192.0.2.11' }],
    ['all addresses', extra('scheduler', '0.0.0.0'), { ...OWN, 10259: undefined }],
    ['a name', extra('controllerManager', 'localhost'), { ...OWN, 10257: undefined }],
    [
      'URLs of etcd',
      'etcd: {local: {extraArgs: [{name: listen-peer-urls, value: "https://[fd00::1]:2380,https://192.0.2.12:2380"}]}}\n',
      { ...OWN, 2380: 'fd00::1 192.0.2.12' },
    ],
    ['external etcd', 'etcd: {external: {endpoints: ["https://192.0.2.20:2379"]}}\n', { 10257: '127.0.0.1', 10259: '127.0.0.1' }],
  ])('follow the configuration: %s', (_, settings, expected) => {
    expect(addressesWith(settings)).toEqual(Object.fromEntries(Object.entries(expected).filter(([, value]) => value !== undefined)));
  });
});

describe('isTaken', () => {
  const parse = (text: string): readonly IpAddress[] => text.split(' ').flatMap((each) => parseIp(each) ?? []);

  it.each<[string, string, string | null, boolean]>([
    ['no socket', '', null, false],
    ['any socket, if all addresses are needed', '192.0.2.9', null, true],
    ['the same address', '192.0.2.9 127.0.0.1', '127.0.0.1', true],
    ['another address', '192.0.2.9', '127.0.0.1', false],
    ['all IPv4 addresses', '0.0.0.0', '127.0.0.1', true],
    ['all IPv4 addresses, for IPv6', '0.0.0.0', '::1', false],
    ['all addresses', '::', '127.0.0.1', true],
    ['one of several', '192.0.2.9', '127.0.0.1 192.0.2.9', true],
  ])('%s', (_, sockets, wanted, expected) => {
    expect(isTaken(parse(sockets), wanted === null ? undefined : parse(wanted))).toBe(expected);
  });
});
