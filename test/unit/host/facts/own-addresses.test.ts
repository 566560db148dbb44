import { describe, expect, it } from 'vitest';
import { ownAddresses, parseOwnAddresses } from '../../../../src/host/facts/addresses.ts';
import { parseEach } from '../../../../src/host/facts/parse-text.ts';
import type { FactQueries, FactQueryResults } from '../../../../src/host/facts/query.ts';

const IP = `2: eth0    inet 192.0.2.2/24 brd 192.0.2.255 scope global eth0\\       valid_lft forever preferred_lft forever
2: eth0    inet6 2001:db8::2/64 scope global dynamic mngtmpaddr \\       valid_lft 86390sec preferred_lft 14390sec
3: br0    inet 198.51.100.7/24 brd 198.51.100.255 scope global noprefixroute br0\\       valid_lft forever preferred_lft forever
4: bond0.17@bond0    inet 203.0.113.9/32 scope global bond0.17\\       valid_lft forever preferred_lft forever
5: wg0    inet 10.200.0.4/32 scope global wg0\\       valid_lft forever preferred_lft forever
`;
const OTHERS = `6: docker0    inet 172.17.0.1/16 brd 172.17.255.255 scope global docker0\\       valid_lft forever preferred_lft forever
7: br-0123456789ab    inet 172.18.0.1/16 brd 172.18.255.255 scope global br-0123456789ab\\       valid_lft forever preferred_lft forever
8: cni0    inet 10.244.1.1/24 brd 10.244.1.255 scope global cni0\\       valid_lft forever preferred_lft forever
9: flannel.1    inet 10.244.1.0/32 scope global flannel.1\\       valid_lft forever preferred_lft forever
10: kube-ipvs0    inet 10.96.0.1/32 scope global kube-ipvs0\\       valid_lft forever preferred_lft forever
11: nodelocaldns    inet 169.254.20.10/32 scope global nodelocaldns\\       valid_lft forever preferred_lft forever
12: virbr0    inet 192.168.122.1/24 brd 192.168.122.255 scope global virbr0\\       valid_lft forever preferred_lft forever
13: cilium_host@cilium_net    inet 10.0.1.7/32 scope global cilium_host\\       valid_lft forever preferred_lft forever
`;
const FIB = `Main:
  +-- 172.17.0.0/16 2 0 2
     |-- 172.17.0.1
        /32 host LOCAL
     |-- 192.0.2.2
        /32 host LOCAL
`;

const file = (content: string) => ({ type: 'file', mode: 0o444, owner: 'root:root', content });
const seen = (exitCode: number, stdout: string) =>
  ownAddresses.parse(
    { fib: file(FIB), v6: null, shown: { exitCode, stdout, stderr: '' } } as unknown as FactQueryResults<FactQueries>,
    parseEach,
  );

describe('the addresses of a host', () => {
  it('are the addresses of interfaces reachable from other hosts', () => {
    expect(parseOwnAddresses(IP + OTHERS)).toEqual(['192.0.2.2', '2001:db8::2', '198.51.100.7', '203.0.113.9', '10.200.0.4']);
    expect(parseOwnAddresses(OTHERS)).toEqual([]);
  });

  it('are all addresses of the kernel when the interfaces are unknown', () => {
    expect([seen(0, IP + OTHERS)?.length, seen(127, '')]).toEqual([5, ['172.17.0.1', '192.0.2.2']]);
  });
});
