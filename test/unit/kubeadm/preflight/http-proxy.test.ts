import { describe, expect, it } from 'vitest';
import { proxyOfSubnets } from '../../../../src/kubeadm/preflight/http-proxy.ts';

const PROXY = { name: 'HTTPS_PROXY', value: 'http://user:secret@proxy.example:3128' };
const subnets = (noProxy: string) =>
  proxyOfSubnets(['10.96.0.0/12,fd00:96::/112', undefined], [PROXY, { name: 'NO_PROXY', value: noProxy }]).map(({ id, message }) => [
    id,
    /subnet (\S+)/.exec(message)?.[1],
  ]);

describe('HTTPProxyCIDR', () => {
  it('warns of each subnet that is reached through the proxy', () => {
    expect(subnets('')).toEqual([
      ['HTTPProxyCIDR', '10.96.0.0/12'],
      ['HTTPProxyCIDR', 'fd00:96::/112'],
    ]);
    expect(subnets('10.96.0.0/12')).toEqual([['HTTPProxyCIDR', 'fd00:96::/112']]);
    expect(subnets('10.0.0.0/8,fd00::/8')).toEqual([]);
    expect(proxyOfSubnets(['10.96.0.0/12'], [])).toEqual([]);
  });

  it('does not show the password of the proxy', () => {
    expect(JSON.stringify(proxyOfSubnets(['10.96.0.0/12'], [PROXY]))).not.toContain('secret');
  });
});
