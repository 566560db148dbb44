import { createServer, type Server } from 'node:https';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type CertificateAuthority, createCa, type KeyPair } from '../../../../lab/api-server/pki.ts';
import { Secret } from '../../../../src/base/text/secret.ts';
import type { EtcdCluster } from '../../../../src/kube/etcd-cluster.ts';
import { etcdMembers, explainEtcdError } from '../../../../src/kubeadm/adapters/etcd-members.ts';
import type { EtcdCredentials } from '../../../../src/kubeadm/control-plane/etcd-credentials.ts';
import { type FakeClock, fakeClock } from '../../../support/fake-clock.ts';
import { freePort, listenOnLoopback } from '../../../support/loopback.ts';
import { recordingReporter } from '../../../support/recording-reporter.ts';

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
    [
      'the CA file is damaged',
      `${FILES.ca} contains a certificate that cannot be read`,
      'Put the CA',
      async () => ({ caPem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n' }),
    ],
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

  describe('a change of the members', () => {
    const refusal = (message: string) => [503, { code: 14, message: `etcdserver: ${message}` }] as const;
    const UNHEALTHY = refusal('unhealthy cluster');
    const TIMED_OUT = refusal('request timed out');
    const NOT_FOUND = [404, { code: 5, message: 'etcdserver: member not found' }] as const;
    const list = (...members: readonly object[]) => [200, { members }] as const;
    const CP_2 = { ID: '7', name: 'cp-2', peerURLs: ['https://10.0.0.2:2380'] };
    const CP_3 = { ID: '8', name: '', peerURLs: ['https://10.0.0.3:2380'], isLearner: true };
    const CP_4 = { ID: '9', name: 'cp-4', peerURLs: ['https://10.0.0.4:2380'], isLearner: true };
    const WITH_MEMBER = list(CP_2);
    const WITHOUT_MEMBER = list({ ID: '1', name: 'cp-1' });
    const DONE = [200, {}] as const;

    /** An answer; null: the connection is closed. */
    type Answer = readonly [status: number, body: object] | null;

    /** An etcd member that gives these answers, in order. `everyMs`: each takes so long. The last one is repeated. */
    async function etcdThatAnswers(everyMs: number, ...answers: readonly Answer[]) {
      const clock = fakeClock(new Date());
      const asked: string[] = [];
      const { certPem: cert, keyPem: key } = valid.server;
      const etcd = createServer({ cert, key }, ({ url = '', socket }, response) => {
        clock.advance(everyMs);
        const answer = answers[Math.min(asked.push(url.split('/').at(-1) ?? '') - 1, answers.length - 1)] ?? null;
        if (answer === null) return void socket.destroy();
        response.writeHead(answer[0]).end(JSON.stringify(answer[1]));
      });
      servers.push(etcd);
      return { asked, clock, endpoint: `https://127.0.0.1:${await listenOnLoopback(etcd)}` };
    }

    const membersAt = (clock: FakeClock, endpoints: readonly string[]): EtcdCluster => {
      const { caPem, client } = valid;
      return etcdMembers({ endpoints, caPem, certificatePem: client.certPem, keyPem: new Secret(client.keyPem), files: FILES, clock });
    };

    async function clusterThatAnswers(everyMs: number, ...answers: readonly Answer[]) {
      const { asked, clock, endpoint } = await etcdThatAnswers(everyMs, ...answers);
      return { asked, clock, cluster: membersAt(clock, [endpoint]) };
    }

    it.each([
      ['that etcd refuses', UNHEALTHY, UNHEALTHY],
      ['whose connection is closed', null, null],
      ['that etcd cannot find', NOT_FOUND, NOT_FOUND],
    ])('is repeated after a request %s', async (_, first, second) => {
      const { asked, cluster } = await clusterThatAnswers(0, first, WITH_MEMBER, second, WITH_MEMBER, DONE);
      await cluster.remove('7');
      expect(asked).toEqual(['list', 'list', 'remove', 'list', 'remove']);
    });

    it.each([
      ['permission denied', 403, 7],
      ['user name is empty', 400, 3],
      ['invalid auth token', 401, 16],
      ['denied by a proxy', 403, undefined],
    ])('is not repeated if etcd answers: %s', async (message, status, code) => {
      const { asked, clock, cluster } = await clusterThatAnswers(0, WITH_MEMBER, [status, { code, message }]);
      await expect(cluster.remove('7')).rejects.toMatchObject({ code: 'ETCD_DENIED', message: expect.stringContaining(message) });
      expect(asked).toEqual(['list', 'remove']);
      expect(clock.elapsedMs).toBe(0);
    });

    it.each([
      ['removed', WITH_MEMBER, WITHOUT_MEMBER, (cluster: EtcdCluster) => cluster.remove('7')],
      ['added', WITHOUT_MEMBER, WITH_MEMBER, (cluster: EtcdCluster) => cluster.addLearner('https://10.0.0.2:2380')],
      ['promoted', list({ ...CP_2, isLearner: true }), WITH_MEMBER, (cluster: EtcdCluster) => cluster.promote('7')],
    ])('is complete if the member was %s before the request timed out', async (_, before, after, change) => {
      for (const failure of [TIMED_OUT, null]) {
        const { asked, cluster } = await clusterThatAnswers(0, before, failure, after);
        await change(cluster);
        expect(asked).toHaveLength(3);
      }
    });

    it('is sent to the next member when one is a learner or stops', async () => {
      const learner = await etcdThatAnswers(0, refusal('rpc not supported for learner'));
      const voter = await etcdThatAnswers(0, WITH_MEMBER, DONE);
      await membersAt(voter.clock, [learner.endpoint, voter.endpoint]).remove('7');
      expect(voter.asked).toEqual(['list', 'remove']);
    });

    it('waits as long as other members join one after the other', async () => {
      const { asked, clock, cluster } = await clusterThatAnswers(
        50_000,
        ...[list(CP_3), list(CP_3), list(CP_4), list(CP_4), WITHOUT_MEMBER],
        DONE,
      );
      const reporter = recordingReporter();
      await cluster.addLearner('https://10.0.0.2:2380', { reporter, phase: 'etcd-join' });
      expect(asked).toEqual(['list', 'list', 'list', 'list', 'list', 'add']);
      expect(clock.elapsedMs).toBeGreaterThan(240_000);
      expect(reporter.messages('WAITING')[0]).toContain('member https://10.0.0.3:2380 has not joined yet');
    });

    it('fails when one other member does not join within two minutes', async () => {
      const { clock, cluster } = await clusterThatAnswers(50_000, list(CP_3));
      await expect(cluster.addLearner('https://10.0.0.2:2380')).rejects.toMatchObject({ code: 'ETCD_UNHEALTHY' });
      expect(clock.elapsedMs).toBeLessThan(260_000);
    });

    it('fails with the message of etcd after two minutes', async () => {
      const { cluster } = await clusterThatAnswers(
        20_000,
        ...Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? WITH_MEMBER : UNHEALTHY)),
      );
      await expect(cluster.remove('7')).rejects.toMatchObject({ message: expect.stringContaining('unhealthy cluster') });
    });

    it('reads the reason of an unhealthy member', async () => {
      const { cluster } = await clusterThatAnswers(0, [503, { health: 'false', reason: 'RAFT NO LEADER' }]);
      expect(await cluster.health()).toEqual({ healthy: false, reason: 'RAFT NO LEADER' });
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
