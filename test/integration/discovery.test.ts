import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type CertificateAuthority, createCa } from '../../lab/api-server/pki.ts';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import type { JsonObject } from '../../src/base/json.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { clusterInfoKubeconfig } from '../../src/kube/kubeconfig-render.ts';
import { BOOTSTRAP_GROUP } from '../../src/kubeadm/cluster-objects/bootstrap-rbac.ts';
import { clusterInfoMap, clusterInfoRbac } from '../../src/kubeadm/cluster-objects/cluster-info.ts';
import { kubeletConfigRbac } from '../../src/kubeadm/cluster-objects/kubelet-config-map.ts';
import { signDetached } from '../../src/kubeadm/token/jws.ts';
import { tokenSecret } from '../../src/kubeadm/token/token-secret.ts';
import { caPinsOf } from '../../src/x509/ca-pin.ts';
import { TOKEN } from '../support/cluster-info.ts';
import { freePort, listenOnLoopback } from '../support/loopback.ts';
import { type Attack, type ManInTheMiddle, startManInTheMiddle } from '../support/man-in-the-middle.ts';
import { type CliResult, runCommand } from '../support/run-cli.ts';

const GROUPS = [String(BOOTSTRAP_GROUP.name)];
const KUBELET_CONFIG = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: 77\n';
const NAME = 'api.example.test';

let api: LabApiServer;
let evil: CertificateAuthority;
let directory: string;
let pin: string;
let count = 0;
const open: { close(): Promise<unknown> | unknown }[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'kubeletadm-discovery-'));
  evil = await createCa('evil');
  api = await startApiServer({ controllers: ['bootstrap-signer', 'token-cleaner'], names: [NAME] });
  pin = caPinsOf(api.caPem)?.[0] as string;
  api.put(
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'kubelet-config', namespace: 'kube-system' },
      data: { kubelet: KUBELET_CONFIG },
    },
    ...kubeletConfigRbac('kubelet-config'),
    ...clusterInfoRbac(),
    clusterInfoMap({ server: api.url, caPem: api.caPem }),
    tokenSecret({ token: new Secret(TOKEN.full), usages: ['signing', 'authentication'], groups: GROUPS }, new Date()),
    tokenSecret({ token: new Secret('signer.0123456789abcdef'), usages: ['signing'], groups: [] }, new Date()),
  );
});
afterAll(async () => {
  await api.close();
  rmSync(directory, { recursive: true, force: true });
});
afterEach(async () => {
  api.faults.clear();
  for (const each of open.splice(0).reverse()) await each.close();
});

const host = () => new URL(api.url).host;
const file = (text: string): string => {
  const path = join(directory, `file-${count++}`);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};

interface Joined extends CliResult {
  /** Path on the host of a directory that the program creates. */
  readonly root: string;
}

/** Joins a host that is a directory, with a short discovery timeout. */
async function joinWith(
  discovery: object,
  options: { readonly argv?: readonly string[]; readonly env?: Record<string, string>; readonly timeout?: string } = {},
): Promise<Joined> {
  const document = {
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    kind: 'JoinConfiguration',
    discovery,
    nodeRegistration: { name: 'node-7', criSocket: 'unix:///var/run/containerd/containerd.sock' },
    timeouts: { discovery: options.timeout ?? '1s' },
  };
  const root = join(directory, `root-${count++}`);
  const config = file(JSON.stringify(document));
  const result = await runCommand(['join', '--config', config, '--rootfs', root, '-v', '9', ...(options.argv ?? [])], {
    env: options.env ?? {},
  });
  return { ...result, root };
}

const byToken = (more: object = {}) => ({ bootstrapToken: { token: TOKEN.full, apiServerEndpoint: host(), caCertHashes: [pin], ...more } });
/** The last line of the errors, without stack traces. */
const lastLine = ({ stderr }: CliResult) =>
  stderr
    .split('\n')
    .filter((line) => /\[[A-Z_]+\]$/.test(line) && !/^(?:AppError|caused by):/.test(line))
    .at(-1);

function bootstrapConf({ root, code, stderr }: Joined): {
  clusters: { cluster: JsonObject }[];
  users: { name: string; user: JsonObject }[];
} {
  expect(code, stderr).toBe(0);
  return parse(readFileSync(join(root, 'etc/kubernetes/bootstrap-kubelet.conf'), 'utf8'));
}

describe('join discovers the cluster', () => {
  it('by token and pin', async () => {
    const joined = await joinWith(byToken());
    expect(bootstrapConf(joined)).toMatchObject({
      clusters: [{ cluster: { server: api.url } }],
      users: [{ name: 'tls-bootstrap-token-user', user: { token: TOKEN.full } }],
    });
    expect(readFileSync(join(joined.root, 'etc/kubernetes/pki/ca.crt'), 'utf8')).toBe(api.caPem);
    expect(readFileSync(join(joined.root, 'var/lib/kubelet/config.yaml'), 'utf8')).toContain('maxPods: 77\n');
    expect(joined.stdout + joined.stderr).not.toContain(TOKEN.secret);
  });

  it('by the command line that kubeadm prints', async () => {
    const root = join(directory, `root-${count++}`);
    const { code, stderr } = await runCommand([
      'join',
      host(),
      '--token',
      TOKEN.full,
      '--discovery-token-ca-cert-hash',
      pin,
      '--node-name',
      'node-7',
      '--rootfs',
      root,
    ]);
    expect(code, stderr).toBe(0);
    expect(existsSync(join(root, 'etc/kubernetes/bootstrap-kubelet.conf'))).toBe(true);
  });

  it('by token alone with --discovery-token-unsafe-skip-ca-verification', async () => {
    const refused = await joinWith(byToken({ caCertHashes: [] }));
    expect([refused.code, lastLine(refused)]).toEqual([
      2,
      expect.stringContaining('token discovery requires caCertHashes to verify the cluster CA'),
    ]);
    bootstrapConf(await joinWith(byToken({ caCertHashes: [], unsafeSkipCAVerification: true })));
  });

  it('by a given CA, without cluster-info', async () => {
    api.faults.add(
      { name: 'cluster-info' },
      {
        kind: 'answer',
        status: 404,
        contentType: 'application/json',
        body: '{"kind":"Status","code":404,"details":{"name":"cluster-info"}}',
      },
    );
    const joined = await joinWith(byToken({ caCertHashes: [] }), { argv: ['--ca-cert', file(api.caPem)] });
    expect(bootstrapConf(joined).clusters[0]?.cluster.server).toBe(api.url);
  });

  it("not by another cluster's CA, an invalid CA or a CA that is not pinned", async () => {
    const other = await joinWith(byToken({ caCertHashes: [] }), { argv: ['--ca-cert', file(evil.certPem)] });
    expect([other.code, lastLine(other)]).toEqual([3, expect.stringContaining('is not signed by the CA in ')]);
    const none = await joinWith(byToken(), { argv: ['--ca-cert', file('hello')] });
    expect([none.code, lastLine(none)]).toEqual([2, expect.stringMatching(/the file contains no certificate, .*\[DISCOVERY_NO_CA\]$/)]);
    const contradiction = await joinWith(byToken(), { argv: ['--ca-cert', file(evil.certPem)] });
    expect(lastLine(contradiction)).toMatch(/\[DISCOVERY_PIN_MISMATCH\]$/);
  });

  it('by a file without credentials and a token', async () => {
    const kubeConfigPath = file(clusterInfoKubeconfig({ server: api.url, caPem: api.caPem }));
    const joined = await joinWith({ file: { kubeConfigPath }, tlsBootstrapToken: TOKEN.full });
    expect(bootstrapConf(joined).users).toEqual([{ name: 'tls-bootstrap-token-user', user: { token: TOKEN.full } }]);
    const without = await joinWith({ file: { kubeConfigPath } });
    expect([without.code, lastLine(without)]).toEqual([
      2,
      `discovery (${kubeConfigPath}): the kubeconfig contains no credentials for the TLS bootstrap of the kubelet. Pass a token with --tls-bootstrap-token. [DISCOVERY_NO_TOKEN]`,
    ]);
  });

  it('by a file with credentials, which go along: also those it keeps in other files', async () => {
    const { certPem, keyPem } = await api.ca.issueClient({ commonName: 'joiner', organizations: ['system:masters'] });
    const kubeconfig = (user: object, cluster: object) =>
      file(
        JSON.stringify({
          kind: 'Config',
          'current-context': 'x',
          contexts: [{ name: 'x', context: { cluster: 'c', user: 'joiner' } }],
          clusters: [{ name: 'c', cluster: { server: api.url, ...cluster } }],
          users: [{ name: 'joiner', user }],
        }),
      );
    const ca = { 'certificate-authority-data': Buffer.from(api.caPem).toString('base64') };
    const data = {
      'client-certificate-data': Buffer.from(certPem).toString('base64'),
      'client-key-data': Buffer.from(keyPem).toString('base64'),
    };
    const embedded = await joinWith({ file: { kubeConfigPath: kubeconfig(data, ca) } });
    expect(bootstrapConf(embedded).users).toEqual([{ name: 'joiner', user: data }]);
    expect(embedded.stdout + embedded.stderr).not.toContain(data['client-key-data'].slice(40, 80));

    const [certFile, keyFile, caFile] = [certPem, keyPem, api.caPem].map((text) => file(text).split('/').at(-1));
    const named = await joinWith({
      file: { kubeConfigPath: kubeconfig({ 'client-certificate': certFile, 'client-key': keyFile }, { 'certificate-authority': caFile }) },
    });
    expect(bootstrapConf(named)).toMatchObject({ users: [{ user: data }], clusters: [{ cluster: ca }] });

    const token = await joinWith({ file: { kubeConfigPath: kubeconfig({ tokenFile: file(`${TOKEN.full}\n`) }, ca) } });
    expect(bootstrapConf(token).users).toEqual([{ name: 'joiner', user: { token: TOKEN.full } }]);

    const wrong = await joinWith({ file: { kubeConfigPath: kubeconfig({ token: 'wrong' }, ca) } });
    expect([wrong.code, lastLine(wrong)]).toEqual([
      3,
      expect.stringMatching(
        /the API server does not accept the credentials of the file: unknown or expired \(401\)\. .*\[DISCOVERY_CREDENTIALS_REFUSED\]$/,
      ),
    ]);
  });

  it('not by a file with insecure-skip-tls-verify', async () => {
    const insecure = (server: string, cluster: object) =>
      file(JSON.stringify({ kind: 'Config', clusters: [{ name: '', cluster: { server, ...cluster } }] }));
    for (const kubeConfigPath of [insecure(api.url, { 'insecure-skip-tls-verify': true }), insecure(`http://${host()}`, {})]) {
      const { code, stderr, root } = await joinWith({ file: { kubeConfigPath }, tlsBootstrapToken: TOKEN.full });
      expect([code, stderr]).toEqual([
        2,
        expect.stringMatching(/(?:any server could impersonate|accepts any server).*\[DISCOVERY_INSECURE\]$/m),
      ]);
      expect(existsSync(root)).toBe(false);
    }
  });

  it('by a file whose server the local host trusts, with the CA from cluster-info', async () => {
    const kubeConfigPath = file(JSON.stringify({ kind: 'Config', clusters: [{ name: '', cluster: { server: api.url } }] }));
    const discovery = { file: { kubeConfigPath }, tlsBootstrapToken: TOKEN.full };
    const joined = await joinWith(discovery, { timeout: '10s', env: { NODE_EXTRA_CA_CERTS: file(api.caPem) } });
    expect(bootstrapConf(joined).clusters[0]?.cluster['certificate-authority-data']).toBe(Buffer.from(api.caPem).toString('base64'));
    const stranger = await joinWith(discovery);
    expect(lastLine(stranger)).toMatch(/is not signed by a system CA of the local host\. .*\[DISCOVERY_UNTRUSTED_SERVER\]$/);
  });
});

describe('discovery by URL', () => {
  const serve = async (answer: (path: string) => { status: number; headers?: Record<string, string>; text?: string }, ca = api.ca) => {
    const { certPem, keyPem } = await ca.issueServer(['127.0.0.1'], { commonName: 'www' });
    const server = createHttpsServer({ cert: certPem, key: keyPem }, (request, response) => {
      const { status, headers = {}, text = '' } = answer(request.url ?? '');
      response.writeHead(status, headers).end(text);
    });
    server.on('tlsClientError', () => undefined);
    const port = await listenOnLoopback(server);
    open.push({
      close: () => {
        server.close();
        server.closeAllConnections();
      },
    });
    return `https://127.0.0.1:${port}`;
  };
  const joinByUrl = (kubeConfigPath: string) =>
    joinWith({ file: { kubeConfigPath }, tlsBootstrapToken: TOKEN.full }, { env: { SSL_CERT_FILE: file(api.caPem) } });
  const kubeconfig = () => clusterInfoKubeconfig({ server: api.url, caPem: api.caPem });

  it('follows redirects to a server that the local host trusts', async () => {
    const url = await serve((path) =>
      path === '/new?x=1' ? { status: 200, text: kubeconfig() } : { status: 302, headers: { Location: '/new?x=1' } },
    );
    bootstrapConf(await joinByUrl(`${url}/old`));
  });

  const withUser = (user: object): string => {
    const clusters = [{ name: 'k', cluster: { server: api.url, 'certificate-authority-data': Buffer.from(api.caPem).toString('base64') } }];
    const contexts = [{ name: 'c', context: { cluster: 'k', user: 'u' } }];
    return JSON.stringify({ kind: 'Config', 'current-context': 'c', contexts, clusters, users: [{ name: 'u', user }] });
  };
  const joinWithUser = async (user: object): Promise<Joined> => {
    const url = await serve(() => ({ status: 200, text: withUser(user) }));
    return joinWith({ file: { kubeConfigPath: url } }, { env: { SSL_CERT_FILE: file(api.caPem) } });
  };

  it('uses the credentials embedded in the kubeconfig', async () => {
    expect(bootstrapConf(await joinWithUser({ token: TOKEN.full })).users[0]?.user).toEqual({ token: TOKEN.full });
    const client = parse(await api.kubeconfigFor('node-7', GROUPS)).users[0].user as JsonObject;
    expect(bootstrapConf(await joinWithUser(client)).users[0]?.user).toEqual(client);
  });

  it.each(['exec', 'auth-provider'])('rejects %s: a server of the kubeconfig could run a program on the local host', async (field) => {
    const mark = join(directory, `executed-by-${field}`);
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'touch', args: [mark], interactiveMode: 'Never' };
    const provider = { name: 'gcp', config: { 'cmd-path': 'touch', 'cmd-args': mark } };
    const joined = await joinWithUser({ [field]: field === 'exec' ? exec : provider });
    expect(existsSync(mark)).toBe(false);
    expect(lastLine(joined)).toMatch(new RegExp(`would run a program on the local host: ${field}\\. .*\\[DISCOVERY_NAMES_PROGRAMS\\]$`));
    expect(joined.code).toBe(2);
  });

  it('rejects a server that the local host does not trust', async () => {
    const url = await serve(() => ({ status: 200, text: kubeconfig() }), evil);
    expect(lastLine(await joinByUrl(url))).toMatch(/is not signed by a system CA of the local host\..*\[DISCOVERY_UNTRUSTED_SERVER\]$/);
  });

  it.each<[string, { status: number; headers?: Record<string, string>; text?: string }, RegExp]>([
    ['does not exist', { status: 404 }, /answered 404\. .*\[DISCOVERY_URL\]$/],
    ['is a login page', { status: 200, text: '<!DOCTYPE html>' }, /the server answered with a web page\. .*\[DISCOVERY_URL\]$/],
    [
      'redirects to plain HTTP',
      { status: 301, headers: { Location: 'http://127.0.0.1:1/x' } },
      /redirects to a URL that is not https\. .*\[DISCOVERY_URL\]$/,
    ],
    ['redirects in a circle', { status: 301, headers: { Location: '/x' } }, /more than 10 redirects\. .*\[DISCOVERY_URL\]$/],
    ['answers with a server error', { status: 500 }, /answered 500 \(gave up after 1s\)\. .*\[DISCOVERY_URL\]$/],
    ['is not a kubeconfig', { status: 200, text: 'hello' }, /not a kubeconfig.*\[KUBECONFIG_INVALID\]$/],
    [
      'names files of the local host',
      {
        status: 200,
        text: '{"kind":"Config","clusters":[{"name":"","cluster":{"server":"https://127.0.0.1:1","certificate-authority":"/etc/shadow"}}]}',
      },
      /the kubeconfig refers to files of the local host: certificate-authority\. .*\[DISCOVERY_NAMES_FILES\]$/,
    ],
  ])('fails for a URL that %s', async (_, answer, expected) => {
    const url = (await serve(() => answer)).replace('https://', 'https://me:hunter2@');
    const joined = await joinByUrl(`${url}/x?key=hunter3`);
    expect(lastLine(joined)).toMatch(expected);
    expect(joined.stderr).not.toMatch(/hunter/);
    expect(existsSync(joined.root)).toBe(false);
  });
});

describe('bootstrap token', () => {
  const withToken = (token: string, more: object = {}) => joinWith(byToken({ token, ...more }), { timeout: '5s' });

  it('unknown or expired: the API server reports it immediately', async () => {
    const joined = await withToken('zzzzzz.0123456789abcdef');
    expect([joined.code, lastLine(joined)]).toEqual([
      3,
      expect.stringMatching(/does not know the token zzzzzz: .*\[DISCOVERY_TOKEN_UNKNOWN\]$/),
    ]);
    expect(existsSync(joined.root)).toBe(false);
  });

  it('with a wrong secret', async () => {
    const joined = await withToken(`${TOKEN.id}.fedcba9876543210`);
    expect([joined.code, lastLine(joined)]).toEqual([3, expect.stringMatching(/the token secret is wrong.*\[DISCOVERY_SIGNATURE\]$/)]);
    expect(joined.stderr).not.toContain('fedcba9876543210');
  });

  it('for signing, but not for authentication', async () => {
    expect(lastLine(await withToken('signer.0123456789abcdef'))).toMatch(
      /the API server rejects the token signer: the token has just expired, lacks the usage "authentication", .*\[DISCOVERY_TOKEN_REFUSED\]$/,
    );
  });

  it('differs from the token for authentication', async () => {
    const joined = await joinWith({ ...byToken(), tlsBootstrapToken: 'zzzzzz.0123456789abcdef' });
    expect(lastLine(joined)).toMatch(/the API server rejects the token zzzzzz: .*\[DISCOVERY_TOKEN_REFUSED\]$/);
  });

  it('whose signature appears a moment later', async () => {
    const late = 'latest.0123456789abcdef';
    const secret = tokenSecret({ token: new Secret(late), usages: ['signing', 'authentication'], groups: GROUPS }, new Date());
    const joining = withToken(late);
    setTimeout(() => api.put(secret), 300);
    bootstrapConf(await joining);
  });
});

describe('route to the API server', () => {
  it('cluster-info names an address that does not answer', async () => {
    const port = await freePort();
    const elsewhere = await startApiServer({ controllers: ['bootstrap-signer'] });
    open.push(elsewhere);
    elsewhere.put(
      ...clusterInfoRbac(),
      clusterInfoMap({ server: `https://127.0.0.1:${port}`, caPem: elsewhere.caPem }),
      tokenSecret({ token: new Secret(TOKEN.full), usages: ['signing', 'authentication'], groups: GROUPS }, new Date()),
    );
    const endpoint = new URL(elsewhere.url).host;
    const joined = await joinWith(byToken({ apiServerEndpoint: endpoint, caCertHashes: caPinsOf(elsewhere.caPem) }));
    expect(lastLine(joined)).toBe(
      `discovery (${endpoint}): ConfigMap kube-public/cluster-info names the API server https://127.0.0.1:${port}, which does not answer: connection refused. Make https://127.0.0.1:${port} reachable for nodes, or change the server in ConfigMap kube-public/cluster-info to https://${endpoint}. [DISCOVERY_SERVER_UNREACHABLE]`,
    );
  });

  it('uses HTTPS_PROXY', async () => {
    const asked: string[] = [];
    const proxy = createHttpServer().on('connect', (request, client) => {
      asked.push(request.url ?? '');
      const target = connect(Number(new URL(api.url).port), '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        target.pipe(client).pipe(target);
      });
      client.on('error', () => target.destroy()).on('close', () => target.destroy());
      target.on('error', () => client.destroy());
    });
    const port = await listenOnLoopback(proxy);
    open.push({ close: () => proxy.close() });
    const joined = await joinWith(byToken({ apiServerEndpoint: `${NAME}:6443` }), { env: { HTTPS_PROXY: `http://127.0.0.1:${port}` } });
    bootstrapConf(joined);
    expect(joined.stderr).toContain(
      `the API server https://${NAME}:6443 is reached through the proxy http://127.0.0.1:${port}. If this is not intended, add the API server to NO_PROXY [HTTPProxy]`,
    );
    expect(new Set(asked)).toEqual(new Set([`${NAME}:6443`]));
  });

  it('is blocked by a proxy', async () => {
    const proxy = createHttpServer().on('connect', (_, client) => client.end('HTTP/1.1 407 No\r\n\r\n'));
    const port = await listenOnLoopback(proxy);
    open.push({ close: () => proxy.close() });
    const joined = await joinWith(byToken({ apiServerEndpoint: `${NAME}:6443` }), {
      env: { HTTPS_PROXY: `http://me:hunter2@127.0.0.1:${port}` },
    });
    expect([joined.code, lastLine(joined)]).toEqual([
      3,
      `discovery (${NAME}:6443): the proxy http://127.0.0.1:${port} refused the connection with status 407. Set user and password in HTTPS_PROXY (http://USER:PASSWORD@HOST:PORT), or add the API server to NO_PROXY. [DISCOVERY_PROXY]`,
    ]);
    expect(joined.stderr).not.toContain('hunter2');
  });

  it.each([
    ['10.0.0.1', /"10\.0\.0\.1" has no port\. Use an endpoint such as 10\.0\.0\.10:6443 or \[fd00::10\]:6443/],
    ['https://10.0.0.1:6443', /is not of the form ADDRESS:PORT\. Remove the scheme/],
    ['fd00::10:6443', /is not of the form ADDRESS:PORT\. Use .*\[fd00::10\]:6443/],
    ['[fd00::10]', /is not of the form ADDRESS:PORT/],
    ['[fe80::1%eth0]:6443', /is not of the form ADDRESS:PORT/],
    ['10.0.0.1:0', /"0" is not a valid port/],
    ['10.0.0.1:65536', /"65536" is not a valid port/],
    ['10.0.0.1:6443/api', /"6443\/api" is not a valid port/],
    ['me@10.0.0.1:6443', /is not of the form ADDRESS:PORT/],
    [':6443', /is not of the form ADDRESS:PORT/],
  ])('has an invalid address: %s', async (endpoint, expected) => {
    const { code, stderr } = await joinWith(byToken({ apiServerEndpoint: endpoint }));
    expect([code, stderr]).toEqual([2, expect.stringMatching(expected)]);
  });
});

describe('a man in the middle', () => {
  const attack = async (plan: Partial<Attack>): Promise<ManInTheMiddle> => {
    const between = await startManInTheMiddle({ ca: evil, upstream: api.url, ...plan });
    open.push(between);
    return between;
  };
  const changed = (change: (kubeconfig: string) => string, resign: boolean) => (object: JsonObject) => {
    if (object.kind !== 'ConfigMap') return object;
    const data = object.data as Record<string, string>;
    const kubeconfig = change(data.kubeconfig as string);
    const signature = resign ? { [`jws-kubeconfig-${TOKEN.id}`]: signDetached(TOKEN.id, new Secret(TOKEN.secret), kubeconfig) } : {};
    return { ...object, data: { ...data, kubeconfig, ...signature } };
  };
  const swapCa = (kubeconfig: string) =>
    kubeconfig.replace(Buffer.from(api.caPem).toString('base64'), Buffer.from(evil.certPem).toString('base64'));
  const addCa = (kubeconfig: string) =>
    kubeconfig.replace(Buffer.from(api.caPem).toString('base64'), Buffer.from(api.caPem + evil.certPem).toString('base64'));
  const swapServer = (kubeconfig: string) => kubeconfig.replace(api.url, 'https://127.0.0.1:1');
  const setSignature = (signature: string | null) => (object: JsonObject) => {
    const { [`jws-kubeconfig-${TOKEN.id}`]: _, ...data } = object.data as Record<string, string>;
    return { ...object, data: signature === null ? data : { ...data, [`jws-kubeconfig-${TOKEN.id}`]: signature } };
  };
  const none = `${Buffer.from('{"alg":"none","kid":"abcdef"}').toString('base64url')}..`;

  it.each<[string, Partial<Attack>, string, string]>([
    // attack, result with a pin, result with the token alone
    ['changes the CA', { change: changed(swapCa, false) }, 'PIN_MISMATCH', 'SIGNATURE'],
    ['adds its CA', { change: changed(addCa, false) }, 'UNTRUSTED_SERVER', 'SIGNATURE'],
    ['changes the address and keeps the old signature', { change: changed(swapServer, false) }, 'UNTRUSTED_SERVER', 'SIGNATURE'],
    ['strips the signature', { change: setSignature(null) }, 'UNTRUSTED_SERVER', 'NO_SIGNATURE'],
    ['replaces the signature by one with alg none', { change: setSignature(none) }, 'UNTRUSTED_SERVER', 'SIGNATURE'],
    ['gives an empty signature', { change: setSignature('') }, 'UNTRUSTED_SERVER', 'NO_SIGNATURE'],
    [
      'offers only an old TLS version',
      { tls: { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } },
      'TLS',
      'TLS',
    ],
    [
      'redirects to another server',
      { answer: { status: 307, headers: { Location: 'http://127.0.0.1:1/' } } },
      'NOT_API_SERVER',
      'NOT_API_SERVER',
    ],
    [
      'requests a password',
      { answer: { status: 401, headers: { 'WWW-Authenticate': 'Basic realm="k8s"' } } },
      'NOT_API_SERVER',
      'NOT_API_SERVER',
    ],
  ])('that %s is rejected', async (_, plan, pinned, unpinned) => {
    const between = await attack(plan);
    const before = api.requests.length;
    for (const [more, code] of [
      [{}, pinned],
      [{ caCertHashes: [], unsafeSkipCAVerification: true }, unpinned],
    ] as const) {
      const joined = await joinWith(byToken({ apiServerEndpoint: between.endpoint, ...more }));
      expect(lastLine(joined)).toContain(`[DISCOVERY_${code}]`);
      expect([1, 3]).toContain(joined.code);
      expect(existsSync(joined.root)).toBe(false);
    }
    expect(between.received.join('\n')).not.toMatch(new RegExp(`authorization|${TOKEN.secret}`, 'i'));
    // An attacker cannot test secrets through join: join sends the same anonymous requests for any response.
    expect(between.received.length).toBeLessThanOrEqual(8);
    expect(api.requests.slice(before).every(({ user }) => user === 'system:anonymous')).toBe(true);
  });

  it('that relays the traffic with its own certificate is rejected', async () => {
    const between = await attack({});
    const joined = await joinWith(byToken({ apiServerEndpoint: between.endpoint }));
    expect(lastLine(joined)).toMatch(
      /the server certificate \(CN=kube-apiserver, issued by CN=evil\) is not signed by the pinned CA\. .*\[DISCOVERY_UNTRUSTED_SERVER\]$/,
    );
    expect(existsSync(joined.root)).toBe(false);
    expect(between.received).toHaveLength(1);
  });

  it('that knows the token and signs its own CA is stopped by the pin', async () => {
    for (const [change, code] of [
      [swapCa, 'PIN_MISMATCH'],
      [addCa, 'UNTRUSTED_SERVER'],
    ] as const) {
      const between = await attack({ change: changed(change, true) });
      const joined = await joinWith(byToken({ apiServerEndpoint: between.endpoint }));
      expect(lastLine(joined)).toContain(`[DISCOVERY_${code}]`);
      expect(existsSync(joined.root)).toBe(false);
      expect(between.received.join('\n')).not.toMatch(/authorization/i);
    }
  });

  it('that relays without changes receives no token even without a pin: join follows the signed CA and address', async () => {
    const between = await attack({});
    const joined = await joinWith(byToken({ apiServerEndpoint: between.endpoint, caCertHashes: [], unsafeSkipCAVerification: true }));
    expect(bootstrapConf(joined).clusters[0]?.cluster.server).toBe(api.url);
    expect(between.received).toHaveLength(1);
    expect(between.received.join('\n')).not.toMatch(/authorization/i);
  });

  it('in front of the discovery file or the discovery CA is rejected', async () => {
    const between = await attack({});
    const server = `https://${between.endpoint}`;
    const kubeConfigPath = file(clusterInfoKubeconfig({ server, caPem: api.caPem }));
    const byFile = await joinWith({ file: { kubeConfigPath }, tlsBootstrapToken: TOKEN.full });
    const byCa = await joinWith(byToken({ apiServerEndpoint: between.endpoint }), { argv: ['--ca-cert', file(api.caPem)] });
    for (const joined of [byFile, byCa]) {
      expect(lastLine(joined)).toMatch(/is not signed by the CA in .*\[DISCOVERY_UNTRUSTED_SERVER\]$/);
      expect(existsSync(joined.root)).toBe(false);
    }
    expect(between.received).toEqual([]);
  });
});
