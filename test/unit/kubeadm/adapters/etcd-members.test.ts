import { createServer, type Server } from 'node:https';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Secret } from '../../../../src/base/text/secret.ts';
import type { EtcdCluster } from '../../../../src/kube/etcd-cluster.ts';
import { etcdMembers, explainEtcdError } from '../../../../src/kubeadm/adapters/etcd-members.ts';
import type { EtcdCredentials } from '../../../../src/kubeadm/control-plane/etcd-credentials.ts';
import { type CertificateAuthority, createCa, type KeyPair } from '../../../../src/lab/api-server/pki.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { freePort, listenOnLoopback } from '../../../support/loopback.ts';

const PAST = { notBefore: new Date('2020-01-01T00:00:00Z'), notAfter: new Date('2021-01-01T00:00:00Z') };
const FILES = { ca: '/pki/etcd/ca.crt', certificate: '/pki/etcd/hc.crt', key: '/pki/etcd/hc.key' };

interface Material {
  readonly server: KeyPair;
  readonly caPem: string;
  readonly client: KeyPair;
}

describe('etcdMembers', () => {
  let ca: CertificateAuthority;
  let other: CertificateAuthority;
  let expiredCa: CertificateAuthority;
  let valid: Material;
  const servers: Server[] = [];
  beforeAll(async () => {
    [ca, other, expiredCa] = await Promise.all([createCa('etcd-ca'), createCa('etcd-ca'), createCa('etcd-ca', PAST)]);
    const [server, client] = await Promise.all([ca.issueServer(['127.0.0.1']), ca.issueClient({ commonName: 'hc' })]);
    valid = { server, client, caPem: ca.certPem };
  });
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** Queries a server that requires client certificates of the CA, directly and over a custom dialer. */
  async function query({ server, caPem, client }: Material): Promise<readonly [string, unknown, unknown]> {
    const options = { cert: server.certPem, key: server.keyPem, ca: ca.certPem, requestCert: true, rejectUnauthorized: true };
    const etcd = createServer(options, (_, response) => void response.end('{"members":[{"ID":"1","name":"cp-1"}]}'));
    servers.push(etcd);
    const port = await listenOnLoopback(etcd);
    const endpoint = `https://127.0.0.1:${port}`;
    const credentials: EtcdCredentials = { caPem, certificatePem: client.certPem, keyPem: new Secret(client.keyPem), files: FILES };
    const dial = async (): Promise<Duplex> => connect(port, '127.0.0.1');
    const clock = fakeClock(new Date());
    const reported = [{}, { dial }].map((route) => {
      const members = etcdMembers({ endpoints: [endpoint], ...credentials, clock, ...route }).members();
      return members.then(
        (found) => found.map(({ name }) => name),
        (error: unknown) => error,
      );
    });
    return [endpoint, await reported[0], await reported[1]];
  }

  it('lists members', async () => {
    const [, direct, dialed] = await query(valid);
    expect([direct, dialed]).toEqual([['cp-1'], ['cp-1']]);
  });

  it.each<readonly [string, string, string, () => Promise<Partial<Material>>]>([
    [
      'the CA is another one of the same name',
      `the server certificate is not signed by the CA in ${FILES.ca}`,
      'Put the CA of the etcd cluster into /pki/etcd/ca.crt',
      async () => ({ caPem: other.certPem, client: await other.issueClient({ commonName: 'hc' }) }),
    ],
    [
      'the CA is another one that did not sign the client certificate',
      `${FILES.certificate} is not signed by the CA in ${FILES.ca}`,
      'certs renew etcd-healthcheck-client',
      async () => ({ caPem: other.certPem }),
    ],
    ['the CA expired', `${FILES.ca} expired on 2021-01-01T00:00:00.000Z`, 'Put the CA', async () => ({ caPem: expiredCa.certPem })],
    ['the CA file contains no certificate', `${FILES.ca} contains no certificate`, 'Put the CA', async () => ({ caPem: 'pem\n' })],
    [
      'the certificate of the member expired',
      'the server certificate has expired',
      'certs renew etcd-server',
      async () => ({ server: await ca.issueServer(['127.0.0.1'], PAST) }),
    ],
    [
      'the certificate of the member is for another address',
      'the server certificate is not valid for 127.0.0.1, only for 10.0.0.1',
      'certs renew etcd-server',
      async () => ({ server: await ca.issueServer(['10.0.0.1']) }),
    ],
    [
      'the client certificate expired',
      `etcd rejects the client certificate: ${FILES.certificate} expired on 2021-01-01T00:00:00.000Z`,
      'certs renew etcd-healthcheck-client',
      async () => ({ client: await ca.issueClient({ commonName: 'hc' }, PAST) }),
    ],
    [
      'the client certificate is signed by another CA',
      `etcd rejects the client certificate: ${FILES.certificate} is not signed by the CA in ${FILES.ca}`,
      'certs renew etcd-healthcheck-client',
      async () => ({ client: await other.issueClient({ commonName: 'hc' }) }),
    ],
    [
      'the client certificate file contains no certificate',
      `${FILES.certificate} contains no certificate`,
      'certs renew',
      async () => ({ client: { ...valid.client, certPem: 'pem\n' } }),
    ],
    [
      'the key file contains no key',
      `${FILES.key} contains no private key`,
      'certs renew',
      async () => ({ client: { ...valid.client, keyPem: 'pem\n' } }),
    ],
    [
      'the key does not match the certificate',
      `${FILES.key} does not match ${FILES.certificate}`,
      'certs renew',
      async () => ({ client: { ...valid.client, keyPem: valid.server.keyPem } }),
    ],
  ])('reports the faulty file when %s', async (_, why, hint, broken) => {
    const [endpoint, ...errors] = await query({ ...valid, ...(await broken()) });
    for (const error of errors) {
      expect(error).toMatchObject({ code: 'ETCD_TLS_FAILED', problems: [{ message: `cannot query etcd: ${endpoint}: ${why}` }] });
      expect(error).toMatchObject({ problems: [{ hint: expect.stringContaining(hint) }] });
    }
  });

  describe('a change that etcd refuses', () => {
    const UNHEALTHY = [503, { code: 14, message: 'etcdserver: unhealthy cluster' }] as const;
    const TIMED_OUT = [503, { code: 14, message: 'etcdserver: request timed out' }] as const;
    const NOT_FOUND = [404, { code: 5, message: 'etcdserver: member not found' }] as const;
    const WITH_MEMBER = [200, { members: [{ ID: '7', name: 'cp-2', peerURLs: ['https://10.0.0.2:2380'] }] }] as const;
    const WITHOUT_MEMBER = [200, { members: [{ ID: '1', name: 'cp-1' }] }] as const;

    type Answer = readonly [status: number, body: object];

    /** etcd that gives these answers, in order. `everyMs`: each takes so long. */
    async function etcdThatAnswers(first: Answer | { readonly everyMs: number }, ...more: readonly Answer[]) {
      const [everyMs, answers] = 'everyMs' in first ? [first.everyMs, more] : [0, [first, ...more]];
      const clock = fakeClock();
      const asked: string[] = [];
      const { certPem: cert, keyPem: key } = valid.server;
      const etcd = createServer({ cert, key }, ({ url = '' }, response) => {
        clock.advance(everyMs);
        const [status, body] = answers[asked.push(url.split('/').at(-1) ?? '') - 1] ?? [500, {}];
        response.writeHead(status).end(JSON.stringify(body));
      });
      servers.push(etcd);
      const endpoints = [`https://127.0.0.1:${await listenOnLoopback(etcd)}`];
      const { caPem, client } = valid;
      const credentials = { caPem, certificatePem: client.certPem, keyPem: new Secret(client.keyPem), files: FILES };
      return { asked, cluster: etcdMembers({ endpoints, ...credentials, clock }) };
    }

    it('is repeated while the cluster is unhealthy', async () => {
      const { asked, cluster } = await etcdThatAnswers(UNHEALTHY, WITH_MEMBER, UNHEALTHY, UNHEALTHY, [200, {}]);
      await cluster.remove('7');
      expect(asked).toEqual(['remove', 'list', 'remove', 'list', 'remove']);
    });

    it.each([
      ['removed', WITHOUT_MEMBER, (cluster: EtcdCluster) => cluster.remove('7')],
      ['added', WITH_MEMBER, (cluster: EtcdCluster) => cluster.addLearner('https://10.0.0.2:2380')],
      ['promoted', WITH_MEMBER, (cluster: EtcdCluster) => cluster.promote('7')],
    ])('is complete if the member was %s before the request timed out', async (_, members, change) => {
      const { asked, cluster } = await etcdThatAnswers(TIMED_OUT, members);
      await change(cluster);
      expect(asked).toHaveLength(2);
    });

    it('is complete if the member itself answers that it stops, and others no longer know it', async () => {
      const STOPPED = [503, { code: 14, message: 'etcdserver: server stopped' }] as const;
      const { asked, cluster } = await etcdThatAnswers(STOPPED, STOPPED, NOT_FOUND, WITHOUT_MEMBER);
      await cluster.remove('7');
      expect(asked).toEqual(['remove', 'list', 'remove', 'list']);
    });

    it('fails at once for a reason that does not pass', async () => {
      const { asked, cluster } = await etcdThatAnswers(NOT_FOUND, WITH_MEMBER);
      await expect(cluster.remove('7')).rejects.toMatchObject({
        code: 'ETCD_REFUSED',
        message: expect.stringContaining('member not found'),
      });
      expect(asked).toEqual(['remove', 'list']);
    });

    it('fails with the message of etcd after two minutes', async () => {
      const answers = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? UNHEALTHY : WITH_MEMBER));
      const { cluster } = await etcdThatAnswers({ everyMs: 20_000 }, ...answers);
      await expect(cluster.remove('7')).rejects.toMatchObject({ message: expect.stringContaining('unhealthy cluster') });
    });
  });

  // Node's own servers close connections without a TLS alert.
  it.each(['ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE', 'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA', 'EPROTO'])(
    'recognizes the %s of an etcd that trusts another CA',
    (code) => {
      const { caPem, client } = valid;
      const credentials = { caPem, certificatePem: client.certPem, keyPem: new Secret(client.keyPem), files: FILES };
      expect(explainEtcdError(Object.assign(new Error('SSL alert number 42'), { code }), credentials, new Date())).toEqual({
        why: `etcd rejects the client certificate ${FILES.certificate}`,
        hint: 'Add the CA that signed the client certificate to the file of the etcd flag --trusted-ca-file',
        isTls: true,
      });
    },
  );

  it.each([
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'the server does not speak TLS'],
    ['EPROTO', 'the TLS handshake failed (EPROTO)'],
    ['ECONNRESET', 'the connection was closed before a response arrived'],
  ])('blames no certificate for %s', (code, why) => {
    const { caPem, client } = valid;
    const credentials = { caPem, certificatePem: client.certPem, keyPem: new Secret(client.keyPem), files: FILES };
    expect(explainEtcdError(Object.assign(new Error(''), { code }), credentials, new Date())).toMatchObject({ why, isTls: false });
  });

  it('reports a readable reason for each unreachable member', async () => {
    const ports = [await freePort(), await freePort()];
    const endpoints = ports.map((port) => `https://127.0.0.1:${port}`);
    const { caPem, client } = valid;
    const options = { caPem, certificatePem: client.certPem, keyPem: new Secret(client.keyPem), files: FILES, clock: fakeClock() };
    const message = `etcd does not answer: ${endpoints.map((each) => `${each}: connection refused`).join('; ')}`;
    await expect(etcdMembers({ ...options, endpoints }).members()).rejects.toMatchObject({
      code: 'ETCD_UNREACHABLE',
      problems: [{ message }],
    });
  });
});
