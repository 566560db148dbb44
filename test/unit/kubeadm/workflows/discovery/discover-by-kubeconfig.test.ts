import { beforeAll, describe, expect, it } from 'vitest';
import { type CertificateAuthority, createCa } from '../../../../../lab/api-server/pki.ts';
import { AppError } from '../../../../../src/base/errors.ts';
import { Secret } from '../../../../../src/base/text/secret.ts';
import { parseKubeconfig } from '../../../../../src/kube/kubeconfig.ts';
import { discoverByKubeconfig, type KubeconfigDiscovery } from '../../../../../src/kubeadm/workflows/discovery/discover-by-kubeconfig.ts';
import { deadlineIn } from '../../../../../src/kubeadm/workflows/discovery/fetch.ts';
import { clusterInfoObject, TOKEN } from '../../../../support/cluster-info.ts';
import { fakeClock } from '../../../../support/fake-clock.ts';
import { type FakeReply, type FakeServer, fakeWeb } from '../../../../support/fake-web.ts';
import { recordingReporter } from '../../../../support/recording-reporter.ts';

const SERVER = 'https://10.0.0.1:6443';

let ca: CertificateAuthority;
let other: CertificateAuthority;
beforeAll(async () => {
  [ca, other] = [await createCa(), await createCa('other')];
});

const base64 = (text: string) => Buffer.from(text).toString('base64');
const caData = () => ({ 'certificate-authority-data': base64(ca.certPem) });
const info = (server = SERVER): FakeReply => ({ text: JSON.stringify(clusterInfoObject({ caPem: ca.certPem, server })) });
const status = (code: number, name = ''): FakeReply => ({
  status: code,
  text: JSON.stringify({ kind: 'Status', code, details: { name } }),
});

interface Try extends Partial<Omit<KubeconfigDiscovery, 'kubeconfig'>> {
  readonly cluster?: object;
  readonly user?: object;
  readonly replies?: readonly FakeReply[];
  readonly server?: Partial<FakeServer>;
  readonly machine?: readonly string[];
}

async function attempt({ cluster = caData(), user, replies = [info()], server, machine = [], ...input }: Try = {}) {
  const clock = fakeClock();
  let replyCount = 0;
  const reply = () => replies[Math.min(replyCount++, replies.length - 1)] as FakeReply;
  const servers = { [SERVER]: { authority: ca.certPem, reply, ...server } };
  const web = fakeWeb({ servers, machine, now: clock.now });
  const reporter = recordingReporter();
  const kubeconfig = {
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'k', user: user === undefined ? '' : 'u' } }],
    clusters: [{ name: 'k', cluster: { server: SERVER, ...cluster } }],
    users: user === undefined ? [] : [{ name: 'u', user }],
  };
  const result = await discoverByKubeconfig({ web, clock, reporter }, deadlineIn(60_000, clock), {
    kubeconfig: parseKubeconfig(JSON.stringify(kubeconfig), 'd.conf'),
    readFile: async (path) => `content of ${path}\n`,
    tlsBootstrapToken: user === undefined ? new Secret(TOKEN.full) : undefined,
    forOthers: false,
    ...input,
  }).then(
    (found) => ({ found, message: '', exitCode: 0 }),
    (error: unknown) => {
      if (!(error instanceof AppError)) throw error;
      return { found: null, message: error.message, exitCode: error.exitCode };
    },
  );
  return { ...result, clock, reporter, requests: web.requests };
}

/** Reveals secrets for comparison. */
const revealed = (value: unknown): unknown => {
  if (value instanceof Secret) return value.reveal();
  if (Array.isArray(value)) return value.map(revealed);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, revealed(each)]));
  return value;
};

describe('discoverByKubeconfig', () => {
  it('verifies the server with the CA of the file', async () => {
    const { found, requests } = await attempt();
    expect(found).toMatchObject({ apiServer: { server: SERVER, caPem: ca.certPem }, credentials: { user: 'tls-bootstrap-token-user' } });
    expect(requests.map(({ trust }) => trust)).toEqual([{ kind: 'ca', pem: ca.certPem }]);
  });

  it.each([401, 403, 404] as const)('does not require cluster-info: %d', async (code) => {
    const { found, clock } = await attempt({ replies: [status(code, 'cluster-info')] });
    expect(found?.apiServer.caPem).toBe(ca.certPem);
    expect(clock.elapsedMs).toBe(0);
  });

  it('waits for a server that is not running yet', async () => {
    const { found, clock } = await attempt({ replies: [{ issue: { kind: 'refused' } }, status(503), info()] });
    expect(found).not.toBeNull();
    expect(clock.elapsedMs).toBe(3_000);
    const late = await attempt({ replies: [{ issue: { kind: 'refused' } }] });
    expect([late.message, late.exitCode]).toEqual([
      expect.stringMatching(/^discovery \(10\.0\.0\.1:6443\): connection refused \(gave up after 1m0s\)\./),
      1,
    ]);
  });

  it('uses the CA of cluster-info when the file has none and the local host trusts the server', async () => {
    expect((await attempt({ cluster: {}, machine: [ca.certPem] })).found?.apiServer.caPem).toBe(ca.certPem);
    const unknown = await attempt({ cluster: {} });
    expect(unknown.message).toMatch(/is not signed by a system CA of the local host\./);
    const none = await attempt({ cluster: {}, machine: [ca.certPem], replies: [status(403)] });
    expect([none.message, none.exitCode]).toEqual([
      'discovery (d.conf): the kubeconfig contains no CA, and kube-public/cluster-info provides none. Set certificate-authority-data in the kubeconfig. [DISCOVERY_NO_CA]',
      2,
    ]);
  });

  it('keeps its own address and CA, and reports a different address in cluster-info', async () => {
    const { found, reporter } = await attempt({ replies: [info('https://10.0.0.2:6443')] });
    expect(found?.apiServer.server).toBe(SERVER);
    expect(reporter.messages('DISCOVERY_OTHER_SERVER')).toEqual([
      'd.conf names https://10.0.0.1:6443 as the API server, but ConfigMap kube-public/cluster-info names https://10.0.0.2:6443: using the server of the file',
    ]);
  });

  it.each(['', 'kind: Pod\n', '{'])('ignores an unusable cluster-info: %j', async (kubeconfig) => {
    const reply = { text: JSON.stringify(clusterInfoObject({ caPem: ca.certPem, kubeconfig })) };
    expect((await attempt({ replies: [reply] })).found?.apiServer.caPem).toBe(ca.certPem);
  });

  it('uses tls-server-name and proxy-url', async () => {
    const { found, requests } = await attempt({
      cluster: { ...caData(), 'tls-server-name': 'kubernetes', 'proxy-url': 'http://proxy:3128' },
    });
    expect(requests).toMatchObject([{ serverName: 'kubernetes', proxyUrl: 'http://proxy:3128' }]);
    expect(found?.apiServer).toMatchObject({ tlsServerName: 'kubernetes', proxyUrl: 'http://proxy:3128' });
  });

  it('rejects a server certificate of another CA', async () => {
    const { message, exitCode } = await attempt({ server: { authority: other.certPem } });
    expect([message, exitCode]).toEqual([
      expect.stringMatching(/is not signed by the CA in d\.conf\..*\[DISCOVERY_UNTRUSTED_SERVER\]$/),
      3,
    ]);
  });

  it.each<[string, () => Try, RegExp]>([
    ['without verification', () => ({ cluster: { 'insecure-skip-tls-verify': true } }), /\[DISCOVERY_INSECURE\]$/],
    ['without TLS', () => ({ cluster: { ...caData(), server: 'http://10.0.0.1:8080' } }), /\[DISCOVERY_INSECURE\]$/],
    [
      'with a CA file without certificates',
      () => ({ cluster: { 'certificate-authority': 'ca.crt' } }),
      /^discovery \(ca\.crt\): the file contains no certificate, or a damaged one/,
    ],
    ['without credentials', () => ({ user: {} }), /\[DISCOVERY_NO_TOKEN\]$/],
  ])('rejects a file %s, and sends no request', async (_, input, expected) => {
    const { message, exitCode, requests } = await attempt(input());
    expect(message).toMatch(expected);
    expect([exitCode, requests.length]).toEqual([2, 0]);
  });
});

describe('the credentials of the file', () => {
  it.each<[string, object, object]>([
    ['a token', { token: 'secret' }, { token: 'secret' }],
    ['a file with a token', { tokenFile: 't' }, { token: 'content of t' }],
    [
      'a certificate and key in files',
      { 'client-certificate': 'c', 'client-key': 'k' },
      { 'client-certificate-data': base64('content of c\n'), 'client-key-data': base64('content of k\n') },
    ],
    ['a user and password', { username: 'u', password: 'p' }, { username: 'u', password: 'p' }],
    [
      'a plugin with all its settings',
      {
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: 'get-token',
          args: ['-x'],
          env: [{ name: 'A', value: 'secret' }],
          provideClusterInfo: true,
        },
      },
      {
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: 'get-token',
          args: ['-x'],
          env: [{ name: 'A', value: 'secret' }],
          provideClusterInfo: true,
        },
      },
    ],
  ])('are kept: %s', async (_, user, expected) => {
    const { found } = await attempt({ user });
    expect(found?.credentials).toMatchObject({ user: 'u', context: 'c' });
    expect(revealed(found?.credentials.entry)).toEqual(expected);
    expect(JSON.stringify(found?.credentials)).not.toMatch(/"(?:secret|p|content of t)"/);
  });

  it('are replaced by an additional token', async () => {
    const { found } = await attempt({ user: { token: 'other' }, tlsBootstrapToken: new Secret(TOKEN.full) });
    expect(revealed(found?.credentials)).toEqual({
      user: 'tls-bootstrap-token-user',
      context: 'tls-bootstrap-token-user@kubernetes',
      entry: { token: TOKEN.full },
    });
  });

  it('must not refer to local files when the file is from a web server', async () => {
    const { message, requests } = await attempt({ user: { tokenFile: '/etc/shadow' }, readFile: null });
    expect(message).toBe(
      'discovery (d.conf): the kubeconfig refers to files of the local host: tokenFile. Embed their content: kubectl config view --raw --flatten. [DISCOVERY_NAMES_FILES]',
    );
    expect(requests).toEqual([]);
  });
});
