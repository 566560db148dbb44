import { describe, expect, it } from 'vitest';
import { isNodeIp, nodeIpOn } from '../../../src/kubelet/flags/node-ip.ts';

const ADDRESSES = ['10.0.2.15', '192.168.56.11', '172.17.0.1', 'fd00:5::b'];

describe('the IP of a node', () => {
  it.each([
    ['192.168.56.0/24', '192.168.56.11'],
    ['fd00:5::/64,192.168.56.0/21', 'fd00:5::b,192.168.56.11'],
    ['192.168.56.11', '192.168.56.11'],
    ['10.9.9.9', '10.9.9.9'],
    ['what', 'what'],
  ])('%s is %s', (written, address) => {
    expect(nodeIpOn(written, ADDRESSES)).toBe(address);
  });

  it.each([
    [
      '10.9.0.0/16',
      ADDRESSES,
      'node IP 10.9.0.0/16: the host has no address in the subnet (its addresses: 10.0.2.15, 192.168.56.11, 172.17.0.1, fd00:5::b)',
    ],
    ['0.0.0.0/0', ADDRESSES, 'node IP 0.0.0.0/0: the host has several addresses in the subnet, 10.0.2.15, 192.168.56.11, 172.17.0.1'],
    ['10.0.0.0/8', null, 'node IP 10.0.0.0/8: the addresses of the host are unknown'],
  ])('%s on a host with %j is refused', (written, addresses, message) => {
    expect(() => nodeIpOn(written, addresses)).toThrow(`${message}. `);
  });

  it.each([
    ['10.0.0.1', true],
    ['10.0.0.0/24', true],
    ['10.0.0.0/24,fd00::/64', true],
    ['fd00::1,10.0.0.0/24', true],
    ['10.0.0.0/24,10.1.0.1', false],
    ['10.0.0.0/33', false],
    ['10.0.0.1,', false],
    ['', false],
    ['a.example', false],
  ])('may be written as %j: %s', (written, is) => {
    expect(isNodeIp(written)).toBe(is);
  });
});
