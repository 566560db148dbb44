import { describe, expect, it } from 'vitest';
import type { Services } from '../../../../src/cli/output/services.ts';
import type { HostTarget } from '../../../../src/fleet/host-target.ts';
import { connectionsTo } from '../../../../src/fleet/ports.ts';
import type { Host } from '../../../../src/host/access/host.ts';
import type { Dial } from '../../../../src/kube/dial.ts';
import type { HttpsRequest } from '../../../../src/kube/https-client.ts';
import { findHostWithApiServerAccess, hostOpeningConnections } from '../../../../src/kubeadm/use-cases/api-server-access.ts';
import { type FakeHost, fakeHost } from '../../../support/fake-host.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';
import { untilTrue } from '../../../support/until-true.ts';

const QUERY = { server: 'https://10.0.0.1:6443', trust: { kind: 'unverified' } } as const;
const TOO_MANY = Array.from({ length: 9 }, (_, i) => `node${i + 1}`);

/** A host reaches the API server, does not reach it, cannot open connections, is down, or connects late. */
type Route = 'near' | 'far' | 'closed' | 'dead' | 'slow';

interface Network {
  readonly isReachableLocally?: boolean;
  /** Another server answers at the address in the network of the local host. */
  readonly hasOtherServer?: boolean;
  readonly routes: Readonly<Record<string, Route>>;
}

function networkOf({ isReachableLocally = false, hasOtherServer = false, routes }: Network) {
  const near = new Set<Dial>();
  const connected = new Map<string, FakeHost>();
  let letSlowThrough = (): void => undefined;
  const slow = new Promise<void>((resolve) => {
    letSlowThrough = resolve;
  });
  const services = {
    signal: new AbortController().signal,
    web: {
      get: async ({ dial }: HttpsRequest) => {
        const reached = dial === undefined ? isReachableLocally : near.has(dial);
        if (dial === undefined && hasOtherServer) return { kind: 'answer', status: 404, text: '<html>not found</html>' };
        return reached
          ? { kind: 'answer', status: 200, text: '{"gitVersion": "v1.36.2"}' }
          : { kind: 'failed', issue: { kind: 'refused' } };
      },
    },
    connectHost: async ({ address = '' }: HostTarget): Promise<Host> => {
      const route = routes[address];
      if (route === 'dead') throw new Error('no route');
      if (route === 'slow') await slow;
      const dial: Dial = () => Promise.reject(new Error('nothing is sent here'));
      if (route === 'near' || route === 'slow') near.add(dial);
      const host = fakeHost({ name: address });
      connected.set(address, host);
      return route === 'closed' ? host : Object.assign(host, { dial });
    },
  } as unknown as Services;
  const reporter = recordingReporter();
  const hosts = connectionsTo(services, [{}, ...Object.keys(routes).map((address) => ({ address }))]);
  return {
    query: () => findHostWithApiServerAccess(services, { probe: QUERY, hosts, reporter, verbosity: 1 }),
    reporter,
    connected,
    letSlowThrough: () => letSlowThrough(),
  };
}

describe('findHostWithApiServerAccess', () => {
  it.each<[Route, string | undefined]>([
    ['near', 'node1'],
    ['far', undefined],
  ])('uses a host (%s) if another server answers to the local host, and the host reaches the API server', async (route, name) => {
    const found = await networkOf({ hasOtherServer: true, routes: { node1: route } }).query();
    expect(found?.name).toBe(name);
  });

  it('connects to no host when the local host reaches the API server', async () => {
    const { query, connected } = networkOf({ isReachableLocally: true, routes: { node1: 'near' } });
    expect(await query()).toBeNull();
    expect(connected.size).toBe(0);
  });

  it('uses the first host that reaches the API server, reports its name, and closes the other connections', async () => {
    const { query, connected, reporter } = networkOf({ routes: { node1: 'dead', node2: 'far', node3: 'closed', node4: 'near' } });
    expect((await query())?.name).toBe('node4');
    expect([...connected].map(([name, { isClosed }]) => [name, isClosed])).toEqual([
      ['node2', true],
      ['node3', true],
      ['node4', false],
    ]);
    const message = 'https://10.0.0.1:6443 is unreachable from the local host: connecting through node4';
    expect(reporter.events).toEqual([{ level: 'info', code: 'API_SERVER_THROUGH_HOST', message, verbosity: 1 }]);
  });

  it('does not wait for other hosts, and closes late connections', async () => {
    const { query, connected, letSlowThrough } = networkOf({ routes: { node1: 'slow', node2: 'near' } });
    expect((await query())?.name).toBe('node2');
    expect(connected.has('node1')).toBe(false);
    letSlowThrough();
    await untilTrue(() => connected.get('node1')?.isClosed === true);
  });

  it.each<readonly [string, Network['routes']]>([
    ['no host reaches it', { node1: 'far', node2: 'dead' }],
    ['only the local host is configured', {}],
    ['the first eight hosts do not reach it', Object.fromEntries(TOO_MANY.map((name, i) => [name, i < 8 ? 'far' : ('near' as Route)]))],
  ])('reports nothing when %s', async (_, routes) => {
    const { query, connected, reporter } = networkOf({ routes });
    expect(await query()).toBeNull();
    expect([...connected.values()].every(({ isClosed }) => isClosed)).toBe(true);
    expect(reporter.events).toEqual([]);
  });
});

describe('hostOpeningConnections', () => {
  const FIB = '     |-- 10.0.0.1\n        /32 host LOCAL\n';
  const dial: Dial = () => Promise.reject(new Error('nothing is sent here'));
  const cases: readonly [string, { server: string; fails?: string; local?: boolean }, { from: 'host' | 'local host'; asked: string[] }][] =
    [
      ['its own address', { server: '10.0.0.1', local: true }, { from: 'host', asked: ['host'] }],
      [
        'its own address, but the server is down',
        { server: '10.0.0.1', fails: 'ECONNREFUSED', local: true },
        { from: 'host', asked: ['host'] },
      ],
      [
        'its own address, and the host forbids forwarding',
        { server: '10.0.0.1', fails: 'HOST_FORWARD_REFUSED', local: true },
        { from: 'local host', asked: ['host', 'local host'] },
      ],
      ['another address', { server: '10.0.0.2', local: true }, { from: 'local host', asked: ['local host'] }],
      ['another address that only the host reaches', { server: '10.0.0.2' }, { from: 'host', asked: ['local host'] }],
    ];
  it.each(cases)('%s', async (_, { server, fails, local = false }, { from, asked }) => {
    const probes: string[] = [];
    const services = {
      signal: new AbortController().signal,
      web: {
        get: async (request: HttpsRequest) => {
          probes.push(request.dial === dial ? 'host' : 'local host');
          const isAnswered = request.dial === dial ? fails === undefined : local;
          return isAnswered ? { kind: 'answer' } : { kind: 'failed', issue: { kind: 'other', code: fails ?? 'ETIMEDOUT' } };
        },
      },
    } as unknown as Services;
    const host = Object.assign(fakeHost({ files: { '/proc/net/fib_trie': FIB } }), { dial });
    const opener = await hostOpeningConnections(services, host, { server: `https://${server}:6443`, caPem: '' });
    expect([opener === host ? 'host' : 'local host', probes]).toEqual([from, asked]);
  });
});
