import { describe, expect, it } from 'vitest';
import { apiServerServiceIp, dnsIp } from '../../../../src/kubeadm/config/dns-ip.ts';

describe('dnsIp', () => {
  it.each([
    ['192.168.10.0/24', '192.168.10.10'],
    ['10.96.0.0/12', '10.96.0.10'],
    ['fd03::/112', 'fd03::a'],
    ['192.168.10.0/24,fd03::/112', '192.168.10.10'],
    ['fd03::/112,192.168.10.0/24', 'fd03::a'],
    ['10.0.0.16/28', '10.0.0.26'],
  ])('%s', (subnets, expected) => {
    expect(dnsIp(subnets)).toBe(expected);
  });

  it.each([
    [
      '192.168.10.0/24,fd03:x::/112',
      'the service subnet "192.168.10.0/24,fd03:x::/112" is neither a CIDR nor two comma-separated CIDRs. Correct networking.serviceSubnet or --service-cidr. [CONFIG_INVALID_SUBNET]',
    ],
    [
      '',
      'the service subnet "" is neither a CIDR nor two comma-separated CIDRs. Correct networking.serviceSubnet or --service-cidr. [CONFIG_INVALID_SUBNET]',
    ],
    [
      '10.0.0.0/29',
      'the service subnet 10.0.0.0/29 is too small: it has no address number 10. Correct networking.serviceSubnet or --service-cidr. [CONFIG_INVALID_SUBNET]',
    ],
  ])('refuses %j', (subnets, message) => {
    expect(() => dnsIp(subnets)).toThrow(message);
  });
});

describe('apiServerServiceIp', () => {
  it.each([
    ['10.96.0.12/24', '10.96.0.1'],
    ['10.96.0.0/12', '10.96.0.1'],
    ['10.87.116.64/26', '10.87.116.65'],
    ['10.87.116.64/26,fd03::/112', '10.87.116.65'],
    ['fd03::/112,10.87.116.64/26', 'fd03::1'],
  ])('%s', (subnets, expected) => {
    expect(apiServerServiceIp(subnets)).toBe(expected);
  });

  it.each([',10.87.116.64/26', '10.87.116.64/26,', ',fd03::/112', 'fd03::/112,', '10.0.0.0/32'])('refuses %j', (subnets) => {
    expect(() => apiServerServiceIp(subnets)).toThrow('CONFIG_INVALID_SUBNET');
  });
});
