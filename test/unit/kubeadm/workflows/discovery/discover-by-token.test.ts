import { beforeAll, describe, expect, it } from 'vitest';
import { type CertificateAuthority, createCa } from '../../../../../lab/api-server/pki.ts';
import { AppError } from '../../../../../src/base/errors.ts';
import { Secret } from '../../../../../src/base/text/secret.ts';
import type { WebFailureCause } from '../../../../../src/kube/https-client.ts';
import { describeClocks } from '../../../../../src/kubeadm/discovery/clock-reading.ts';
import { discoverByToken, type TokenDiscovery } from '../../../../../src/kubeadm/workflows/discovery/discover-by-token.ts';
import { deadlineIn } from '../../../../../src/kubeadm/workflows/discovery/fetch.ts';
import { caPinsOf } from '../../../../../src/x509/ca-pin.ts';
import { type ClusterInfoPlan, clusterInfoObject, TOKEN } from '../../../../support/cluster-info.ts';
import { fakeClock } from '../../../../support/fake-clock.ts';
import { type FakeReply, type FakeServer, fakeWeb } from '../../../../support/fake-web.ts';
import { recordingReporter } from '../../../../support/recording-reporter.ts';

const ENDPOINT = '10.0.0.1:6443';
const NOW = new Date('2030-01-01T00:00:00Z');
const DAY = 24 * 3_600_000;
const OTHER_PIN = `sha256:${'0'.repeat(64)}`;
const NEW_TOKEN = 'Create a new token on a control plane: kubeletadm token create --print-join-command.';

let ca: CertificateAuthority;
let foreign: CertificateAuthority;
let pin: string;
beforeAll(async () => {
  ca = await createCa('kubernetes', { notBefore: new Date(NOW.getTime() - DAY), notAfter: new Date(NOW.getTime() + 365 * DAY) });
  foreign = await createCa('foreign', { notBefore: new Date(NOW.getTime() - DAY), notAfter: new Date(NOW.getTime() + 365 * DAY) });
  pin = caPinsOf(ca.certPem)?.[0] as string;
});

interface Try extends Partial<TokenDiscovery> {
  readonly server?: Partial<FakeServer>;
  readonly timeoutMs?: number;
  /** Replies in order; the last one is repeated. */
  readonly replies?: readonly FakeReply[];
}

const info = (plan: Partial<ClusterInfoPlan> = {}): FakeReply => ({
  text: JSON.stringify(clusterInfoObject({ caPem: ca.certPem, ...plan })),
  date: null,
});
const status = (code: number, more: object = {}, date: Date | null = null): FakeReply => ({
  status: code,
  text: JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', code, ...more }),
  date,
});

/** Runs discovery against one server and returns the result. */
async function attempt({ server, replies = [info()], timeoutMs = 60_000, ...input }: Try = {}) {
  const clock = fakeClock(NOW);
  let replyCount = 0;
  const web = fakeWeb({
    now: clock.now,
    servers: {
      [`https://${ENDPOINT}`]: {
        authority: ca.certPem,
        names: ['10.0.0.1'],
        reply: () => replies[Math.min(replyCount++, replies.length - 1)] as FakeReply,
        ...server,
      },
    },
  });
  const reporter = recordingReporter();
  let tokensSent = 0;
  const result = await discoverByToken({ web, clock, reporter }, deadlineIn(timeoutMs, clock), {
    endpoint: ENDPOINT,
    token: new Secret(TOKEN.full),
    pins: [pin],
    forOthers: false,
    ...input,
    acceptsToken: async (cluster) => {
      tokensSent++;
      return input.acceptsToken?.(cluster) ?? null;
    },
  }).then(
    (found) => ({ found, message: '', code: '', exitCode: 0 }),
    (error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      return { found: null, message: error.message, code: error.code, exitCode: error.exitCode };
    },
  );
  return { ...result, clock, reporter, requests: web.requests, tokensSent };
}

describe('discoverByToken', () => {
  it('reads cluster-info twice: first unverified, then verified with a pinned CA', async () => {
    const { found, requests, clock, tokensSent } = await attempt();
    expect(found).toMatchObject({ server: 'https://10.0.0.1:6443', caPem: ca.certPem });
    expect(requests.map(({ url }) => url)).toEqual(
      Array(2).fill(`https://${ENDPOINT}/api/v1/namespaces/kube-public/configmaps/cluster-info`),
    );
    expect(requests.map(({ trust }) => trust)).toEqual([{ kind: 'unverified' }, { kind: 'ca', pem: ca.certPem }]);
    expect([clock.elapsedMs, tokensSent]).toEqual([0, 0]);
  });

  it('requires only the signature without a pin', async () => {
    const { found, requests } = await attempt({ pins: [] });
    expect(found?.caPem).toBe(ca.certPem);
    expect(requests).toHaveLength(1);
  });

  it('accepts any pin for any certificate of the bundle, and trusts only that certificate', async () => {
    const { found, requests } = await attempt({
      pins: [OTHER_PIN, pin.toUpperCase()],
      replies: [info({ caPem: foreign.certPem + ca.certPem })],
    });
    expect(found?.certificates).toHaveLength(2);
    expect(requests[1]?.trust).toEqual({ kind: 'ca', pem: ca.certPem });
  });

  it('uses the address in cluster-info instead of the discovery endpoint', async () => {
    const { found } = await attempt({ replies: [info({ server: 'https://api.example.com:443' })] });
    expect(found?.server).toBe('https://api.example.com:443');
  });
});

describe('the token', () => {
  it('has no signature: discovery waits and reports it', async () => {
    const missing = info({ signers: { fedcba: TOKEN.secret } });
    const { found, clock, reporter } = await attempt({ replies: [missing, missing, missing, info()], pins: [] });
    expect(found).not.toBeNull();
    expect(clock.elapsedMs).toBe(8_000);
    expect(reporter.messages('WAITING')).toEqual([
      'discovery (10.0.0.1:6443): ConfigMap kube-public/cluster-info is signed for 1 other token, but not for the token abcdef: the token is unknown, has expired, lacks the usage "signing", or was just created; retrying for up to 1m0s (Ctrl-C stops)',
    ]);
  });

  it('has no signature until the timeout', async () => {
    const { message, exitCode, clock } = await attempt({ replies: [info({ signers: {} })], pins: [] });
    expect(message).toBe(
      `discovery (10.0.0.1:6443): ConfigMap kube-public/cluster-info has no signatures: the bootstrapsigner of kube-controller-manager does not run, or the token is unknown, has expired, lacks the usage "signing", or was just created (gave up after 1m0s). Check that kube-controller-manager runs with the controller bootstrapsigner, or create a new token on a control plane: kubeletadm token create --print-join-command. [DISCOVERY_NO_SIGNATURE]`,
    );
    expect([exitCode, clock.elapsedMs]).toEqual([1, 60_000]);
  });

  it('is unknown to the verified API server: discovery fails early', async () => {
    const { message, exitCode, clock, requests } = await attempt({ replies: [info({ signers: {} })], acceptsToken: async () => false });
    expect(message).toBe(
      `discovery (10.0.0.1:6443): the API server does not know the token abcdef: the token has expired, was deleted, or belongs to another cluster. ${NEW_TOKEN} [DISCOVERY_TOKEN_UNKNOWN]`,
    );
    expect([exitCode, clock.elapsedMs]).toEqual([3, 1_000]);
    expect(requests.map(({ trust }) => trust.kind)).toEqual(['unverified', 'ca', 'unverified', 'ca']);
  });

  it('is known but not signed yet: discovery waits', async () => {
    const missing = info({ signers: {} });
    const { found, clock } = await attempt({ replies: [missing, missing, missing, missing, info()], acceptsToken: async () => true });
    expect(found).not.toBeNull();
    expect(clock.elapsedMs).toBe(3_000);
  });

  it('expires during the wait', async () => {
    const outdated = info({
      signatures: { abcdef: 'old..old' },
      times: { written: '2030-01-01T00:00:01Z', signed: '2030-01-01T00:00:00Z' },
    });
    const { message } = await attempt({ replies: [outdated, info({ signers: {} })], pins: [] });
    expect(message).toBe(
      `discovery (10.0.0.1:6443): the token abcdef has expired or was deleted: ConfigMap kube-public/cluster-info is no longer signed for this token. ${NEW_TOKEN} [DISCOVERY_TOKEN_EXPIRED]`,
    );
  });

  const times = (written: string, signed: string) => ({ times: { written: `2030-01-01T${written}Z`, signed: `2030-01-01T${signed}Z` } });

  it('has another secret: the signature is newer than the content and does not match', async () => {
    const { message, exitCode, clock } = await attempt({
      replies: [info({ signers: { abcdef: 'fedcba9876543210' }, ...times('00:00:00', '00:00:05') })],
    });
    expect(message).toBe(
      `discovery (10.0.0.1:6443): the signature of ConfigMap kube-public/cluster-info for the token abcdef does not match: the token secret is wrong, or the content was modified in transit. Check the token for typing errors, or create a new token on a control plane: kubeletadm token create --print-join-command. [DISCOVERY_SIGNATURE]`,
    );
    expect([exitCode, clock.elapsedMs]).toEqual([3, 1_000]);
    expect(message).not.toContain(TOKEN.secret);
  });

  it('has a signature older than the content: discovery waits for a new one', async () => {
    const old = info({ signatures: { abcdef: 'old..old' }, signers: {}, ...times('00:00:05', '00:00:00') });
    const { found, reporter } = await attempt({ replies: [old, old, info()], pins: [] });
    expect(found).not.toBeNull();
    expect(reporter.messages('WAITING')).toEqual([
      'discovery (10.0.0.1:6443): the signature of ConfigMap kube-public/cluster-info for the token abcdef is outdated: the content of the ConfigMap changed after the signature was made; retrying for up to 1m0s (Ctrl-C stops)',
    ]);
  });

  it('has a mismatched signature of unknown age: discovery waits until the timeout', async () => {
    const { message, exitCode, clock } = await attempt({ replies: [info({ signers: { abcdef: 'fedcba9876543210' } })], pins: [] });
    expect(message).toContain('the token secret is wrong, the latest content is not signed yet, or the content was modified');
    expect([exitCode, clock.elapsedMs]).toEqual([1, 60_000]);
  });

  it('is never sent to a server whose certificate is not signed by a pinned CA', async () => {
    const untrusted = { server: { authority: foreign.certPem }, acceptsToken: async () => true };
    for (const replies of [[info({ signers: {} })], [info({ signers: { abcdef: 'fedcba9876543210' } })], [info()]]) {
      const { tokensSent, code } = await attempt({ ...untrusted, replies });
      expect([tokensSent, code]).toEqual([0, 'DISCOVERY_UNTRUSTED_SERVER']);
    }
    for (const signers of [{}, { abcdef: 'fedcba9876543210' }]) {
      const { tokensSent } = await attempt({ ...untrusted, pins: [], replies: [info({ signers })] });
      expect(tokensSent).toBe(0);
    }
  });
});

describe('the CA', () => {
  it('is not the pinned one: the error shows both pins', async () => {
    const { message, exitCode, requests } = await attempt({ pins: [OTHER_PIN] });
    expect(message).toBe(
      `discovery (10.0.0.1:6443): the hash of the cluster CA differs from the pin (--discovery-token-ca-cert-hash): expected ${OTHER_PIN}, found ${pin} (CN=kubernetes). Compare the pin with the output of kubeletadm token create --print-join-command on a control plane. If the pin is right, the address is that of another cluster, or the connection is intercepted. [DISCOVERY_PIN_MISMATCH]`,
    );
    expect([exitCode, requests.length]).toEqual([3, 1]);
  });

  it('is not the one that signed the certificate of the server', async () => {
    const { message, exitCode } = await attempt({ server: { authority: foreign.certPem } });
    expect(message).toBe(
      'discovery (10.0.0.1:6443): the server certificate (CN=kube-apiserver, issued by CN=kubernetes) is not signed by the pinned CA. Check the address: another cluster, another server or a TLS-terminating proxy may use this address. [DISCOVERY_UNTRUSTED_SERVER]',
    );
    expect(exitCode).toBe(3);
  });

  it('is an additional foreign CA, injected with a stolen token: it is not trusted', async () => {
    const { code } = await attempt({ server: { authority: foreign.certPem }, replies: [info({ caPem: ca.certPem + foreign.certPem })] });
    expect(code).toBe('DISCOVERY_UNTRUSTED_SERVER');
  });

  it.each([
    [
      'not valid yet, clocks agree',
      DAY,
      2 * DAY,
      0,
      /not valid before 2030-01-02T00:00:00Z: the local clock shows 2030-01-01T00:00:00Z, the clock of the API server shows 2030-01-01T00:00:00Z\. Wait until 2030-01-02T00:00:00Z, or .* The clocks of both hosts are not the cause: the difference is at most 5m\. \[DISCOVERY_CA_NOT_YET_VALID\]$/,
    ],
    [
      'not valid yet, the clock of the server is unknown',
      DAY,
      2 * DAY,
      null,
      /the CA of the cluster \(CN=kubernetes\) is not valid before 2030-01-02T00:00:00Z: the local clock shows 2030-01-01T00:00:00Z\. Synchronize the clocks of both hosts .*\[DISCOVERY_CLOCK_SKEW\]$/,
    ],
    [
      'not valid yet, the server is ahead',
      DAY,
      3 * DAY,
      2 * DAY,
      /shows 2030-01-01T00:00:00Z, the clock of the API server shows 2030-01-03T00:00:00Z \(48h0m0s ahead\)\. .*\[DISCOVERY_CLOCK_SKEW\]$/,
    ],
    [
      'expired',
      -3 * DAY,
      -DAY,
      0,
      /the CA of the cluster \(CN=kubernetes\) expired on 2029-12-31T00:00:00Z: .* Replace the CA of the cluster .*\[DISCOVERY_CA_EXPIRED\]$/,
    ],
    ['expired by a clock that is ahead', -3 * DAY, -DAY, -2 * DAY, /48h0m0s behind\)\. Synchronize the clocks .*\[DISCOVERY_CLOCK_SKEW\]$/],
  ])('is %s', async (_, from, to, remote, expected) => {
    const at = (ms: number) => new Date(NOW.getTime() + ms);
    const other = await createCa('kubernetes', { notBefore: at(from), notAfter: at(to) });
    const reply = { text: JSON.stringify(clusterInfoObject({ caPem: other.certPem })), date: remote === null ? null : at(remote) };
    for (const pins of [[], caPinsOf(other.certPem) as string[]]) {
      const { message, exitCode, requests } = await attempt({ pins, replies: [reply], server: { authority: other.certPem } });
      expect(message).toMatch(expected);
      expect([exitCode, requests.length]).toEqual([3, 1]);
    }
  });
});

describe('the certificate of the server', () => {
  it('is for other names', async () => {
    const { message } = await attempt({ server: { names: ['kubernetes', '10.0.0.2'] } });
    expect(message).toBe(
      'discovery (10.0.0.1:6443): the server certificate is not valid for 10.0.0.1, only for kubernetes, 10.0.0.2. Use one of these names as the address, or add 10.0.0.1 to the certificate (apiServer.certSANs). [DISCOVERY_WRONG_NAME]',
    );
  });

  it('has expired', async () => {
    const { message } = await attempt({ server: { notAfter: new Date(NOW.getTime() - DAY) } });
    expect(message).toBe(
      'discovery (10.0.0.1:6443): the server certificate expired on 2029-12-31T00:00:00Z: the local clock shows 2030-01-01T00:00:00Z. Renew the certificate on the control plane (kubeletadm certs renew apiserver). [DISCOVERY_CERTIFICATE_EXPIRED]',
    );
  });

  it('is not valid yet by the local clock, which is behind', async () => {
    const reply = { text: JSON.stringify(clusterInfoObject({ caPem: ca.certPem })), date: new Date(NOW.getTime() + 2 * DAY) };
    const { message, reporter } = await attempt({ replies: [reply], server: { notBefore: new Date(NOW.getTime() + DAY) } });
    expect(message).toBe(
      'discovery (10.0.0.1:6443): the server certificate is not valid before 2030-01-02T00:00:00Z: the local clock shows 2030-01-01T00:00:00Z, the clock of the API server shows 2030-01-03T00:00:00Z (48h0m0s ahead). Synchronize the clocks of both hosts (timedatectl, chronyc). [DISCOVERY_CLOCK_SKEW]',
    );
    expect(reporter.messages('DISCOVERY_CLOCK_SKEW')).toHaveLength(1);
  });

  it('is not valid yet by both clocks, which agree within a second', async () => {
    const reply = { text: JSON.stringify(clusterInfoObject({ caPem: ca.certPem })), date: new Date(NOW.getTime() - 1) };
    const { message } = await attempt({ replies: [reply], server: { notBefore: new Date(NOW.getTime() + DAY) } });
    expect(message).toBe(
      'discovery (10.0.0.1:6443): the server certificate is not valid before 2030-01-02T00:00:00Z: the local clock shows 2030-01-01T00:00:00Z, the clock of the API server shows 2029-12-31T23:59:59Z (1s behind). Wait until 2030-01-02T00:00:00Z, or renew the certificate on the control plane (kubeletadm certs renew apiserver). The clocks of both hosts are not the cause: the difference is at most 5m. [DISCOVERY_CERTIFICATE_NOT_YET_VALID]',
    );
  });

  it.each([
    ['2030-01-01T00:00:00.900Z', '2030-01-01T00:00:00.000Z', ''],
    ['2030-01-01T00:00:00.400Z', '2030-01-01T00:00:00.600Z', ''],
    ['2030-01-01T00:00:00.900Z', '2030-01-01T00:00:01.000Z', ' (1s ahead)'],
  ])('describes the clocks %s and %s by the displayed seconds', (local, remote, expected) => {
    expect(
      describeClocks({ local: new Date(local), remote: new Date(remote) })
        .split('the clock of the API server shows ')[1]
        ?.slice(20),
    ).toBe(expected);
  });

  it('is valid although the clocks differ: a warning is printed', async () => {
    const reply = { text: JSON.stringify(clusterInfoObject({ caPem: ca.certPem })), date: new Date(NOW.getTime() - 10 * 60_000) };
    const { found, reporter } = await attempt({ replies: [reply] });
    expect(found).not.toBeNull();
    expect(reporter.messages('DISCOVERY_CLOCK_SKEW')).toEqual([
      'discovery (10.0.0.1:6443): the clocks differ: the local clock shows 2030-01-01T00:00:00Z, the clock of the API server shows 2029-12-31T23:50:00Z (10m0s behind). Synchronize the clocks of both hosts (timedatectl, chronyc): otherwise certificates seem expired or not yet valid',
    ]);
  });
});

describe('the content of cluster-info', () => {
  const cluster = (more: object, name = '') => ({ name, cluster: { server: 'https://10.0.0.1:6443', ...more } });
  const kubeconfig = (...clusters: object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters });
  const caData = () => ({ 'certificate-authority-data': Buffer.from(ca.certPem).toString('base64') });

  it.each<[string, () => string, RegExp]>([
    ['nothing', () => '', /is not usable: it is empty\. Recreate the ConfigMap.*\[DISCOVERY_CLUSTER_INFO\]$/],
    ['invalid YAML', () => '{', /^kube-public\/cluster-info:1:\d+: .*\[CONFIG_SYNTAX\]$/],
    [
      'another kind',
      () => 'kind: Pod\n',
      /^kube-public\/cluster-info:1:1: the file is not a kubeconfig: kind is Pod, expected Config \[KUBECONFIG_INVALID\]$/,
    ],
    ['no cluster', () => kubeconfig(), /\[KUBECONFIG_NO_CONTEXT\]$/],
    [
      'several clusters',
      () => kubeconfig(cluster(caData(), 'a'), cluster(caData(), 'b')),
      /none of its clusters \("a", "b"\) has an empty name, and no current-context selects one of these clusters\..*\[DISCOVERY_CLUSTER_INFO\]$/,
    ],
    ['no CA', () => kubeconfig(cluster({})), /is not usable: it contains no CA\./],
    [
      'a CA file reference',
      () => kubeconfig(cluster({ 'certificate-authority': '/etc/shadow' })),
      /it refers to a CA file instead of embedding the CA\./,
    ],
    [
      'an invalid CA',
      () => kubeconfig(cluster({ 'certificate-authority-data': 'AAAA' })),
      /certificate-authority-data is not the base64 of a PEM certificate/,
    ],
    [
      'a CA certificate that cannot be read',
      () => kubeconfig(cluster({ 'certificate-authority-data': Buffer.from(ca.certPem.replace('MII', 'MIA')).toString('base64') })),
      /its certificate-authority-data contains more than 1,000 certificates, or one that cannot be read\./,
    ],
    ['no verification', () => kubeconfig(cluster({ 'insecure-skip-tls-verify': true })), /it sets insecure-skip-tls-verify\./],
    [
      'a server without TLS',
      () => kubeconfig(cluster({ ...caData(), server: 'http://10.0.0.1:8080' })),
      /its server "http:\/\/10\.0\.0\.1:8080" is not an https address\./,
    ],
    ['no server', () => kubeconfig(cluster({ ...caData(), server: '' })), /cluster "" has no server\./],
  ])('%s', async (_, text, expected) => {
    for (const pins of [[], [pin]]) {
      const { message, exitCode } = await attempt({ pins, replies: [info({ kubeconfig: text() })] });
      expect(message).toMatch(expected);
      expect(exitCode).toBe(3);
    }
  });

  it('uses the unnamed one of several clusters, like kubeadm', async () => {
    const other = { 'certificate-authority-data': Buffer.from(foreign.certPem).toString('base64') };
    const { found } = await attempt({
      replies: [info({ kubeconfig: kubeconfig(cluster(other, 'a'), cluster(caData()), cluster(other, 'b')) })],
    });
    expect(found?.caPem).toBe(ca.certPem);
  });

  it('is different when read over verified TLS', async () => {
    const { message, exitCode } = await attempt({ replies: [info(), info({ server: 'https://10.0.0.9:6443' })] });
    expect(message).toBe(
      'discovery (10.0.0.1:6443): ConfigMap kube-public/cluster-info changed between two requests, or the first connection was intercepted. Rerun the command. If the error occurs again, check the network between both hosts. [DISCOVERY_CHANGED]',
    );
    expect(exitCode).toBe(3);
  });

  it('differs by one space when read again', async () => {
    const first = clusterInfoObject({ caPem: ca.certPem }) as { data: { kubeconfig: string } };
    const { code } = await attempt({ replies: [info(), info({ kubeconfig: `${first.data.kubeconfig} ` })] });
    expect(code).toBe('DISCOVERY_CHANGED');
  });
});

describe('the responding server', () => {
  const html: FakeReply = { status: 200, contentType: 'text/html', text: '<!DOCTYPE html><title>Sign in</title>' };
  const text = (code: number, body: string): FakeReply => ({ status: code, contentType: 'text/plain', text: body });

  it.each<[string, FakeReply, RegExp]>([
    [
      'a web page',
      html,
      /the server is not a Kubernetes API server: status 200 with a web page \(text\/html\)\. Check the address and the port of the API server \(default: 6443\)\. \[DISCOVERY_NOT_API_SERVER\]$/,
    ],
    [
      'a kubelet',
      text(401, 'Unauthorized'),
      /not a Kubernetes API server: status 401 with text\/plain: "Unauthorized"\..*\[DISCOVERY_NOT_API_SERVER\]$/,
    ],
    ['another service', text(404, '404 page not found\n'), /404 with text\/plain: "404 page not found"\./],
    ['terminal control characters', text(404, '\u001b[2J\u0007x\n'), /404 with text\/plain: "\[2J x"\./],
    ['other JSON', { text: '{"hello":"world"}' }, /returns JSON, but not the requested ConfigMap\..*\[DISCOVERY_NOT_API_SERVER\]$/],
    ['another object', { text: '{"kind":"ConfigMap","metadata":{"name":"other"}}' }, /not the requested ConfigMap/],
    ['a list', { text: '[]' }, /not a Kubernetes API server: status 200 with application\/json: "\[\]"/],
    [
      'a redirection',
      { status: 302, text: '', location: 'https://login.example.com/' },
      /the server redirects \(302\) to https:\/\/login\.example\.com\/, which an API server never does\./,
    ],
    [
      'a controller manager',
      status(403, { message: 'forbidden: User "system:anonymous" cannot get path "/api/v1/namespaces"' }),
      /the server is another Kubernetes component\./,
    ],
    [
      'an extension API server',
      status(404, { message: 'the server could not find the requested resource' }),
      /the server serves no ConfigMaps/,
    ],
    [
      'a proxy',
      { status: 407, contentType: 'text/html', text: '<html>' },
      /a proxy answered with status 407\. Set user and password in HTTPS_PROXY.*\[DISCOVERY_PROXY\]$/,
    ],
    [
      'an API server without anonymous access',
      status(401, { message: 'Unauthorized' }),
      /the API server does not allow anonymous requests \(401\)\. Pass --discovery-file .*\[DISCOVERY_NO_ANONYMOUS_ACCESS\]$/,
    ],
  ])('%s: fails immediately', async (_, reply, expected) => {
    const { message, exitCode, clock } = await attempt({ replies: [reply] });
    expect(message).toMatch(expected);
    expect(message).toMatch(/^discovery \(10\.0\.0\.1:6443\): /);
    expect([exitCode, clock.elapsedMs]).toEqual([3, 0]);
  });

  it.each<[string, FakeReply, RegExp]>([
    [
      'cluster-info is not readable',
      status(403, { message: 'configmaps "cluster-info" is forbidden: User "system:anonymous" cannot get resource "configmaps"' }),
      /anonymous users are not allowed to read kube-public\/cluster-info \(403\): configmaps "cluster-info" is forbidden: .*kubeadm:bootstrap-signer-clusterinfo.*\[DISCOVERY_FORBIDDEN\]$/,
    ],
    [
      'cluster-info does not exist',
      status(404, { reason: 'NotFound', details: { name: 'cluster-info', kind: 'configmaps' } }),
      /ConfigMap kube-public\/cluster-info does not exist \(gave up after 1m0s\)\. Create the ConfigMap .*\[DISCOVERY_NO_CLUSTER_INFO\]$/,
    ],
    [
      'the server fails',
      status(500, { message: 'etcdserver: request timed out' }),
      /answered 500: etcdserver: request timed out.*\[DISCOVERY_SERVER_ERROR\]$/,
    ],
    [
      'a load balancer has no backend',
      { status: 503, contentType: 'text/html', text: '<html>' },
      /answered 503: a web page \(text\/html\).*\[DISCOVERY_SERVER_ERROR\]$/,
    ],
    ['the server is busy', status(429, { message: 'Too many requests' }), /answered 429: Too many requests/],
  ])('%s: retries', async (_, reply, expected) => {
    const failed = await attempt({ replies: [reply] });
    expect(failed.message).toMatch(expected);
    expect([failed.exitCode, failed.clock.elapsedMs]).toEqual([1, 60_000]);
    const passed = await attempt({ replies: [reply, reply, info()] });
    expect(passed.found).not.toBeNull();
    const second = await attempt({ replies: [info(), reply, info()] });
    expect(second.found).not.toBeNull();
  });
});

describe('the connection to the server', () => {
  it.each<[WebFailureCause, RegExp]>([
    [
      { kind: 'refused' },
      /connection refused \(gave up after 1m0s\)\. Check that the address is right, that the API server runs, and that no firewall blocks the connection\. \[DISCOVERY_UNREACHABLE\]$/,
    ],
    [{ kind: 'no-route' }, /no route to host/],
    [{ kind: 'dns', temporary: false }, /DNS cannot resolve the name/],
    [{ kind: 'dns', temporary: true }, /DNS does not answer/],
    [{ kind: 'timed-out' }, /timed out/],
    [{ kind: 'closed' }, /the server closed the connection without an answer/],
    [
      { kind: 'proxy-unreachable', proxy: 'http://proxy:3128', why: 'connection refused' },
      /the proxy http:\/\/proxy:3128: connection refused .*HTTPS_PROXY.*\[DISCOVERY_PROXY\]$/,
    ],
    [
      { kind: 'proxy-refused', proxy: 'http://proxy:3128', refusal: { why: 'with status 503', kind: 'failure' } },
      /refused the connection with status 503/,
    ],
    [{ kind: 'other', code: 'EWHATEVER' }, /the connection failed \(EWHATEVER\)/],
  ])('$kind: retries', async (issue, expected) => {
    const { message, exitCode, clock } = await attempt({ replies: [{ issue }] });
    expect(message).toMatch(expected);
    expect([exitCode, clock.elapsedMs]).toEqual([1, 60_000]);
    expect((await attempt({ replies: [{ issue }, info()] })).found).not.toBeNull();
  });

  it.each<[WebFailureCause, RegExp]>([
    [{ kind: 'not-tls', speaks: 'ssh' }, /the server is an SSH server\..*\[DISCOVERY_NOT_API_SERVER\]$/],
    [{ kind: 'not-tls', speaks: 'http' }, /the server uses HTTP without TLS\./],
    [{ kind: 'not-tls', speaks: null }, /the server does not use TLS\./],
    [{ kind: 'not-http' }, /uses TLS but not HTTP\./],
    [{ kind: 'wants-client-certificate' }, /requires a client certificate, as etcd does\./],
    [{ kind: 'tls-version' }, /no common TLS version: the server may support only TLS 1\.1 or older\..*\[DISCOVERY_TLS\]$/],
    [{ kind: 'tls-handshake', why: 'ERR_SSL_X' }, /the TLS handshake failed \(ERR_SSL_X\)\. .*TLS 1\.2 or later\. \[DISCOVERY_TLS\]$/],
    [
      { kind: 'proxy-refused', proxy: 'http://proxy:3128', refusal: { why: 'with status 407', kind: 'login' } },
      /the proxy http:\/\/proxy:3128 refused the connection with status 407\. Set user and password.*\[DISCOVERY_PROXY\]$/,
    ],
    [
      { kind: 'proxy-unusable', why: 'HTTPS_PROXY is not a valid proxy URL' },
      /HTTPS_PROXY is not a valid proxy URL\. Correct HTTPS_PROXY.*\[DISCOVERY_PROXY\]$/,
    ],
    [{ kind: 'too-large', maxBytes: 5 }, /larger than 5 bytes/],
  ])('$kind: fails immediately', async (issue, expected) => {
    const { message, exitCode, clock } = await attempt({ replies: [{ issue }] });
    expect(message).toMatch(expected);
    expect([exitCode, clock.elapsedMs]).toEqual([3, 0]);
  });

  it('is opened by the local host for other hosts: the hint mentions it', async () => {
    const { message } = await attempt({ forOthers: true, replies: [{ issue: { kind: 'timed-out' } }] });
    expect(message).toBe(
      'discovery (10.0.0.1:6443): timed out (gave up after 1m0s). Check that the address is right, that the API server runs, and that no firewall blocks the connection. With --host, kubeletadm connects to the API server from the local host. If only the hosts can reach the API server, run join on the hosts, or set HTTPS_PROXY. [DISCOVERY_UNREACHABLE]',
    );
  });

  it('reports the reason for the wait immediately, on each change, and twice a minute', async () => {
    const { reporter } = await attempt({
      timeoutMs: 90_000,
      replies: [{ issue: { kind: 'refused' } }, ...Array<FakeReply>(30).fill(status(500))],
    });
    expect(reporter.messages('WAITING')).toEqual([
      'discovery (10.0.0.1:6443): connection refused; retrying for up to 1m30s (Ctrl-C stops)',
      'discovery (10.0.0.1:6443): the API server answered 500; retrying for up to 1m29s (Ctrl-C stops)',
      'discovery (10.0.0.1:6443): the API server answered 500; retrying for up to 57s (Ctrl-C stops)',
      'discovery (10.0.0.1:6443): the API server answered 500; retrying for up to 27s (Ctrl-C stops)',
    ]);
  });

  it('tries at least once, and no longer than its timeout', async () => {
    const { requests } = await attempt({ timeoutMs: 0, replies: [{ issue: { kind: 'refused' } }] });
    expect(requests).toHaveLength(1);
    const slow = await attempt({ timeoutMs: 4_000, replies: [{ issue: { kind: 'timed-out' } }] });
    expect(slow.requests.map(({ timeoutMs }) => timeoutMs)).toEqual([4_000, 3_000, 1_000, 1_000]);
  });
});

it('stops when it is aborted', async () => {
  const clock = fakeClock(NOW);
  const stop = new AbortController();
  const web = fakeWeb({ servers: {} });
  const reason = new Error('interrupted');
  clock.at(2_000, () => stop.abort(reason));
  const input = { endpoint: ENDPOINT, token: new Secret(TOKEN.full), pins: [pin], forOthers: false, acceptsToken: async () => null };
  const running = discoverByToken({ web, clock, reporter: recordingReporter(), signal: stop.signal }, deadlineIn(60_000, clock), input);
  await expect(running).rejects.toBe(reason);
});
