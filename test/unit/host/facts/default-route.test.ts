import { describe, expect, it } from 'vitest';
import { defaultDevice4, defaultDevice6, defaultRoute } from '../../../../src/host/facts/default-route.ts';
import { parseEach } from '../../../../src/host/facts/parse-text.ts';
import type { FactQueries, FactQueryResults } from '../../../../src/host/facts/query.ts';

const ROUTES = `Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth1	0000FEA9	00000000	0001	0	0	0	0000FFFF	0	0	0
eth0	00000000	010200C0	0003	0	0	0	00000000	0	0	0
eth0	000200C0	00000000	0001	0	0	0	00FFFFFF	0	0	0
`;
const ROUTES6 = `fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
`;
const INET6 = `00000000000000000000000000000001 01 80 10 80       lo
fd000000000000000000000000000002 02 40 00 80     eth0
fe8000000000000000fc00fffe000001 02 40 20 80     eth0
fd010000000000000000000000000002 03 40 00 80     eth1
`;
const IP = `3: eth1    inet 10.9.9.9/24 brd 10.9.9.255 scope global eth1\\       valid_lft forever preferred_lft forever
4: eth0    inet 192.0.2.2/24 brd 192.0.2.255 scope global eth0\\       valid_lft forever preferred_lft forever
4: eth0    inet 192.0.2.3/24 scope global secondary eth0\\       valid_lft forever preferred_lft forever
`;

const file = (content: string | null) => (content === null ? null : { type: 'file', mode: 0o444, owner: 'root:root', content });
const routeOf = (answers: { readonly route4?: string | null; readonly ip?: string | null }) =>
  defaultRoute.parse(
    {
      route4: file(answers.route4 === undefined ? ROUTES : answers.route4),
      route6: file(ROUTES6),
      inet6: file(INET6),
      addresses: answers.ip === null ? { exitCode: 127, stdout: '', stderr: '' } : { exitCode: 0, stdout: answers.ip ?? IP, stderr: '' },
      source: { exitCode: 0, stdout: '192.0.2.2 fd00::2 \n', stderr: '' },
    } as unknown as FactQueryResults<FactQueries>,
    parseEach,
  );

describe('the default route', () => {
  it('has the first address of its interface, for each family', () => {
    expect(routeOf({})).toEqual({ ipv4: '192.0.2.2', ipv6: 'fd00::2' });
  });

  it('is also detected without ip(8)', () => {
    expect(routeOf({ ip: null })).toEqual({ ipv4: '192.0.2.2', ipv6: 'fd00::2' });
  });

  it('is null without a route to other networks, or without facts', () => {
    expect(routeOf({ route4: ROUTES.replace(/^eth0\t00000000.*\n/m, '') })).toEqual({ ipv6: 'fd00::2' });
    expect(routeOf({ route4: null })).toEqual({ ipv6: 'fd00::2' });
  });

  it('ignores the loopback route that marks a missing default route', () => {
    expect(defaultDevice4(ROUTES)).toBe('eth0');
    expect(defaultDevice6(ROUTES6)).toBe('eth0');
    expect(defaultDevice6(ROUTES6.split('\n').slice(2).join('\n'))).toBeNull();
  });
});
