import { createServer } from 'node:http';
import { connect as connectTcp } from 'node:net';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../../../src/base/errors.ts';
import { Secret } from '../../../../../src/base/text/secret.ts';
import type { FileFact } from '../../../../../src/host/facts/query.ts';
import type { PhaseContext } from '../../../../../src/host/phase.ts';
import { etcdMembers } from '../../../../../src/kubeadm/adapters/etcd-members.ts';
import type { ConnectEtcd } from '../../../../../src/kubeadm/workflows/control-plane/etcd-access.ts';
import { externalEtcdFindings } from '../../../../../src/kubeadm/workflows/control-plane/etcd-access.ts';
import { type FakeClock, fakeClock } from '../../../../support/fake-clock.ts';
import { fakeEtcd } from '../../../../support/fake-etcd.ts';
import { fakeHost } from '../../../../support/fake-host.ts';
import { listenOnLoopback } from '../../../../support/loopback.ts';
import { recordingReporter } from '../../../../support/recording-reporter.ts';

const TLS = { caFile: '/etcd/ca.crt', certFile: '/etcd/c.crt', keyFile: '/etcd/c.key' };
const ENDPOINTS = ['https://192.0.2.1:2379', 'https://192.0.2.2:2379'];
const file = (content: string): FileFact => ({ type: 'file', mode: 0o600, owner: 'root:root', content });
const FILES = new Map([file('ca'), file('cert'), file('key')].map((one, i) => [Object.values(TLS)[i] ?? '', one]));
const newContext = (): PhaseContext => ({ host: fakeHost(), cluster: null, clock: fakeClock(), reporter: recordingReporter() });

/** Connects to etcd endpoints with these versions, in order; an error is thrown. */
const withVersions =
  (versions: readonly (string | AppError)[], targets: Parameters<ConnectEtcd>[0][] = []): ConnectEtcd =>
  async (target) => {
    targets.push(target);
    const version = versions[ENDPOINTS.indexOf(target.endpoints[0] ?? '')] ?? '';
    return { ...fakeEtcd([]), version: async () => (typeof version === 'string' ? version : Promise.reject(version)) };
  };
const messagesOf = async (versions: readonly (string | AppError)[], context = newContext()): Promise<readonly string[]> => {
  const external = { endpoints: ENDPOINTS, ...TLS };
  return (await externalEtcdFindings(context, withVersions(versions), external, FILES)).map(({ id, message }) => `${id}: ${message}`);
};

describe('the version of an external etcd', () => {
  it.each(['3.5.24', '3.5.25', '3.6.0', '3.6.8-0', '3.10.0', '4.0.0', 'v3.6.8'])('is accepted: %s', async (version) => {
    expect(await messagesOf([version, version])).toEqual([]);
  });

  it.each(['3.4.23', '3.5.23', '3.5.3', '2.9.99'])('is refused for the endpoint that has it: %s', async (version) => {
    expect(await messagesOf(['3.6.8', version])).toEqual([
      `ExternalEtcdVersion: the external etcd https://192.0.2.2:2379 has version ${version}, but Kubernetes requires 3.5.24 or later`,
    ]);
  });

  it('is refused if it is none', async () => {
    expect(await messagesOf(['not etcd', ''])).toHaveLength(2);
  });

  it('is read for 15 seconds, at once if a certificate is wrong', async () => {
    for (const [code, seconds] of [
      ['ETCD_UNREACHABLE', 15],
      ['ETCD_TLS_FAILED', 0],
    ] as const) {
      const context = newContext();
      const messages = await messagesOf([new AppError({ code, message: 'no answer' }), '3.6.8'], context);
      expect(messages).toEqual(['ExternalEtcdVersion: cannot read the version of the external etcd: no answer']);
      expect((context.clock as FakeClock).elapsedMs).toBe(seconds * 1000);
    }
  });

  it('is read with the client certificate of the host, at the endpoints without TLS of httpEndpoints', async () => {
    const targets: Parameters<ConnectEtcd>[0][] = [];
    const connect = withVersions(['3.6.8'], targets);
    await externalEtcdFindings(
      newContext(),
      connect,
      { endpoints: ENDPOINTS.slice(1), httpEndpoints: ENDPOINTS.slice(0, 1), ...TLS },
      FILES,
    );
    expect(targets).toMatchObject([{ endpoints: ['https://192.0.2.1:2379'], caPem: 'ca', certificatePem: 'cert' }]);
    expect(targets[0]?.keyPem.reveal()).toBe('key');
  });

  it('is not read without the files of the client certificate, for which another check fails', async () => {
    const targets: Parameters<ConnectEtcd>[0][] = [];
    const files = new Map([...FILES, [TLS.keyFile, null]]);
    expect(await externalEtcdFindings(newContext(), withVersions(['1'], targets), { endpoints: ENDPOINTS, ...TLS }, files)).toEqual([]);
    expect(targets).toEqual([]);
  });

  it('is read without TLS, directly and through a host', async () => {
    const server = createServer(({ url }, response) => void response.end(url === '/version' ? '{"etcdserver":"3.4.23"}' : '{}'));
    const port = await listenOnLoopback(server);
    const dial = async () => connectTcp(port, '127.0.0.1');
    for (const [endpoint, route] of [
      [`http://127.0.0.1:${port}`, {}],
      ['http://192.0.2.1:2379', { dial }],
    ] as const) {
      const connect: ConnectEtcd = async ({ host: _, ...target }) => etcdMembers({ ...target, ...route, clock: fakeClock(new Date()) });
      const [finding] = await externalEtcdFindings(newContext(), connect, { endpoints: [endpoint] }, new Map());
      expect(finding?.message).toContain('has version 3.4.23');
    }
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('names the endpoint that does not answer', async () => {
    const credentials = { caPem: '', certificatePem: '', keyPem: new Secret(''), files: { ca: '', certificate: '', key: '' } };
    const connect: ConnectEtcd = async ({ endpoints }) => etcdMembers({ ...credentials, endpoints, clock: fakeClock() });
    const [finding] = await externalEtcdFindings(newContext(), connect, { endpoints: ['http://127.0.0.1:1'] }, new Map());
    expect(finding?.message).toContain('http://127.0.0.1:1: connection refused');
  });
});
