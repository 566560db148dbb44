import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, createServer as createTcpServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import { type LabApiServer, startApiServer } from '../../lab/api-server/server.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { type Cluster, pollClient } from '../../src/kube/cluster.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import type { RequestRateLimiter } from '../../src/kube/request-rate-limiter.ts';
import { collect, take } from '../contract/cluster.ts';
import { freePort, listenOnLoopback, startTcpServer } from '../support/loopback.ts';
import { socksProxy } from '../support/socks-proxy.ts';

const TOKEN = 'static-token-of-an-admin';
const configMap = (name: string, data: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data,
});
const ref = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default', name });
const CONFIG_MAPS = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' };

let server: LabApiServer;
let folder: string;
const opened: { close(): Promise<void> }[] = [];
beforeAll(async () => {
  server = await startApiServer({ tokens: { [TOKEN]: { user: 'robot', groups: ['system:masters'] } } });
  folder = await mkdtemp(join(tmpdir(), 'kubeletadm-cluster-kube-'));
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true, force: true });
});
afterEach(async () => {
  server.faults.clear();
  for (const each of opened.splice(0)) await each.close();
});

function keep<T extends { close(): Promise<void> }>(each: T): T {
  opened.push(each);
  return each;
}

function clusterOf(text: string, options: Partial<Parameters<typeof kubeCluster>[0]> = {}): Cluster {
  return keep(kubeCluster({ kubeconfig: { text, file: 'test.conf' }, ...options }));
}

/** Counts the requests and delays none. */
function countingLimiter(): RequestRateLimiter & { turns: number; polls: number } {
  const limiter = {
    turns: 0,
    polls: 0,
    limit: () => undefined,
    waitForSlot: async (_?: AbortSignal, urgency?: string) => void (urgency === 'poll' ? limiter.polls++ : limiter.turns++),
  };
  return limiter;
}

const admin = (options: Partial<Parameters<typeof kubeCluster>[0]> = {}) => clusterOf(server.adminKubeconfig(), options);

/** A kubeconfig as JSON with one context. */
function kubeconfig(cluster: object, user: object): string {
  const ca = Buffer.from(server.caPem).toString('base64');
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: server.url, 'certificate-authority-data': ca, ...cluster } }],
    users: [{ name: 'u', user }],
  });
}

async function listen(listener: Server): Promise<number> {
  const port = await listenOnLoopback(listener);
  keep({ close: () => new Promise<void>((resolve) => listener.close(() => resolve())) });
  return port;
}

async function webServer(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const web = createHttpServer({ keepAlive: false }, answer);
  return `http://127.0.0.1:${await listen(web)}`;
}

async function failure(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => 'no error',
    (thrown: unknown) => thrown,
  );
  return error instanceof Error ? error.message : String(error);
}

describe('failing API server', () => {
  it('a closed port is reported', async () => {
    const gone = createTcpServer();
    const port = await listenOnLoopback(gone);
    await new Promise((resolve) => gone.close(resolve));
    const cluster = admin({ server: `https://127.0.0.1:${port}` });
    expect(await failure(cluster.get(ref('x')))).toBe(
      `cannot reach the API server https://127.0.0.1:${port}: connection refused. Check that the API server runs, and that its address and port are right in the kubeconfig. [CLUSTER_UNREACHABLE]`,
    );
    const named = { text: kubeconfig({ server: `https://127.0.0.1:${port}` }, {}), file: 'my.conf', origin: 'KUBECONFIG' };
    expect(await failure(keep(kubeCluster({ kubeconfig: named })).get(ref('x')))).toContain(
      'are right in the kubeconfig my.conf (context "x", from KUBECONFIG). [CLUSTER_UNREACHABLE]',
    );
  });

  it('an unresolvable name is reported', async () => {
    expect(await failure(admin({ server: 'https://api.invalid:6443' }).version())).toMatch(
      /^cannot reach the API server https:\/\/api\.invalid:6443: (?:DNS name not found|the DNS server does not respond)\. .+ \[CLUSTER_UNREACHABLE\]$/,
    );
  });

  it('a server that accepts the connection and never answers is reported', async () => {
    const silent = await startTcpServer(() => {});
    keep({ close: silent.stop });
    const cluster = admin({ server: `https://127.0.0.1:${silent.port}`, requestTimeoutMs: 150 });
    expect(await failure(cluster.get(ref('x')))).toContain(': no response within 0.15 s. ');
  });

  it('a request that exceeds its time limit is reported', async () => {
    const held = server.faults.hold({ verb: 'create' });
    const cluster = admin({ requestTimeoutMs: 150 });
    expect(await failure(cluster.create(configMap('slow')))).toBe(
      `cannot reach the API server ${server.url}: no response within 0.15 s; the server may still have processed the request (create ConfigMap default/slow). Check the address in the kubeconfig, the network and firewalls, and that the API server is not overloaded. [CLUSTER_UNREACHABLE]`,
    );
    held.release();
  });

  it('a connection closed during a write: the write is not sent again', async () => {
    server.faults.add({ verb: 'create' }, { kind: 'drop' });
    expect(await failure(admin().create(configMap('cut')))).toContain(
      'the connection was closed before a response arrived; the server may still have processed the request (create ConfigMap default/cut)',
    );
    expect(server.get('v1', 'ConfigMap', 'cut', 'default')).toBeNull();
  });

  it('every request waits for its turn, repeated ones and watches too', async () => {
    const limiter = countingLimiter();
    const cluster = admin({ limiter });
    server.faults.add({ verb: 'get' }, { kind: 'drop' }, 2);
    await cluster.get(ref('absent'));
    expect(limiter.turns).toBe(3);
    const { resourceVersion } = await cluster.list(CONFIG_MAPS);
    expect(limiter.turns).toBe(4);
    const stop = new AbortController();
    const events = cluster.watch(CONFIG_MAPS, { resourceVersion, signal: stop.signal })[Symbol.asyncIterator]();
    const next = events.next();
    await cluster.create(configMap('paced'));
    await next;
    stop.abort();
    expect(limiter.turns).toBe(6);
    await pollClient(cluster).get(ref('absent'));
    expect(limiter).toMatchObject({ turns: 6, polls: 1 });
  });

  it('a connection closed during a read: the read is sent again', async () => {
    server.faults.add({ verb: 'get' }, { kind: 'drop' }, 2);
    expect(await admin().get(ref('absent'))).toBeNull();
  });

  it('temporary server errors: reads succeed after retries', async () => {
    server.faults.add({ verb: 'list' }, { kind: 'answer', status: 503, body: '{"kind":"Status","message":"starting"}' }, 3);
    expect((await admin().list(CONFIG_MAPS)).resourceVersion).toMatch(/^\d+$/);
  });

  it("lasting server errors: reads fail in time with the server's message", async () => {
    server.faults.add({ verb: 'get' }, { kind: 'answer', status: 500, body: '{"kind":"Status","message":"etcdserver: no leader"}' }, 1000);
    expect(await failure(admin({ requestTimeoutMs: 5_000 }).get(ref('x')))).toBe(
      'cannot get ConfigMap default/x: etcdserver: no leader [CLUSTER_ERROR]',
    );
  });

  it('a server error on a write: the write is not sent again', async () => {
    server.faults.add({ verb: 'create' }, { kind: 'answer', status: 500, body: '{"kind":"Status","message":"boom"}' });
    expect(await failure(admin().create(configMap('once')))).toBe('cannot create ConfigMap default/once: boom [CLUSTER_ERROR]');
  });

  it('429 with Retry-After: every request is sent again after that time', async () => {
    const before = Date.now();
    server.faults.add(
      { verb: 'create' },
      { kind: 'answer', status: 429, headers: { 'Retry-After': '1' }, body: '{"kind":"Status","message":"slow down"}' },
    );
    await admin().create(configMap('busy'));
    expect(Date.now() - before).toBeGreaterThanOrEqual(990);
  });

  it('429 for longer than the retries last is reported', async () => {
    server.faults.add({ verb: 'create' }, { kind: 'answer', status: 429, headers: { 'Retry-After': '3600' }, body: '' }, 100);
    expect(await failure(admin({ requestTimeoutMs: 1000 }).create(configMap('busy-2')))).toBe(
      'cannot create ConfigMap default/busy-2: the API server answered 429 [CLUSTER_ERROR]',
    );
  });

  it.each([
    [200, 'text/html', '<html>Log in</html>'],
    [403, 'text/html', '<html>Blocked</html>'],
    [404, 'text/plain', '404 page not found'],
    [302, '', ''],
    [200, 'application/json', '[1]'],
  ])('a web server or proxy in place of the API server: %d %s', async (status, contentType, body) => {
    const url = await webServer((_, response) => {
      response.writeHead(status, contentType === '' ? {} : { 'Content-Type': contentType });
      response.end(body);
    });
    expect(await failure(admin({ server: url }).get(ref('x')))).toBe(
      `cannot get ConfigMap default/x: ${url} answered ${status} with ${contentType === '' ? 'no content type' : contentType}, not with an API object. Check the server address: another web server or a proxy may be answering at that address. [CLUSTER_ERROR]`,
    );
  });
});

describe('TLS', () => {
  it('rejects an unknown CA', async () => {
    const other = await createCa();
    const ca = Buffer.from(other.certPem).toString('base64');
    expect(await failure(clusterOf(kubeconfig({ 'certificate-authority-data': ca }, { token: TOKEN })).version())).toMatch(
      /^cannot reach the API server https:\/\/127\.0\.0\.1:\d+: certificate signed by (?:an unknown CA|another CA with the same name)\. Set certificate-authority-data in the kubeconfig to the CA of the cluster .+ \[CLUSTER_UNREACHABLE\]$/,
    );
  });

  it('rejects certificates of public CAs when the kubeconfig names no CA', async () => {
    const text = kubeconfig({ 'certificate-authority-data': null }, { token: TOKEN });
    expect(await failure(clusterOf(text).version())).toContain('certificate signed by an unknown CA. ');
  });

  it('rejects a certificate for other names and reports its SANs', async () => {
    const named = keep(await startApiServer({ host: '127.0.0.2', serving: (ca) => ca.issueServer(['api.example.com', '10.0.0.1']) }));
    const cluster = clusterOf(named.adminKubeconfig());
    expect(await failure(cluster.version())).toBe(
      `cannot reach the API server ${named.url}: the server certificate is not valid for 127.0.0.2, only for api.example.com, 10.0.0.1. Use one of these names in the kubeconfig, set tls-server-name, or add the address to the certificate (apiServer.certSANs). [CLUSTER_UNREACHABLE]`,
    );
  });

  it('honours tls-server-name', async () => {
    const named = keep(await startApiServer({ serving: (ca) => ca.issueServer(['api.example.com']) }));
    const text = named.adminKubeconfig().replace('server:', 'tls-server-name: api.example.com\n    server:');
    expect(await clusterOf(text).version()).toBe('v1.36.2');
  });

  it('rejects an expired certificate', async () => {
    const notAfter = new Date(Date.now() - 24 * 3600 * 1000);
    const expired = keep(await startApiServer({ serving: (ca) => ca.issueServer(['127.0.0.1'], { notAfter }) }));
    expect(await failure(clusterOf(expired.adminKubeconfig()).version())).toContain(
      'the server certificate has expired. Check the clocks of both hosts, or renew the certificate of the API server (kubeletadm certs renew apiserver). [CLUSTER_UNREACHABLE]',
    );
  });

  it('checks nothing with insecure-skip-tls-verify', async () => {
    const text = kubeconfig({ 'certificate-authority-data': null, 'insecure-skip-tls-verify': true }, { token: TOKEN });
    expect(await clusterOf(text).version()).toBe('v1.36.2');
  });

  it('reports a server that does not speak TLS', async () => {
    const url = await webServer((_, response) => response.end('x'));
    expect(await failure(admin({ server: url.replace('http:', 'https:') }).version())).toContain('the server does not speak TLS. ');
  });

  it('performs one handshake for many requests', async () => {
    const before = server.connections;
    const cluster = admin();
    for (let i = 0; i < 5; i++) await cluster.get(ref('absent'));
    expect(server.connections - before).toBe(1);
  });
});

describe('credentials', () => {
  const whoAmI = async (cluster: Cluster) => {
    const before = server.requests.length;
    await cluster.version();
    return server.requests[before]?.user;
  };

  it('may be absent: anonymous requests, the CA is still checked', async () => {
    const text = JSON.stringify({ ...JSON.parse(kubeconfig({}, {})), contexts: [{ name: 'x', context: { cluster: 'c' } }], users: [] });
    expect(await whoAmI(clusterOf(text))).toBe('system:anonymous');
  });

  it('are reported when rejected', async () => {
    const secret = 'a-secret-token';
    const message = await failure(clusterOf(kubeconfig({}, { token: secret })).get(ref('x')));
    expect(message).toBe(
      'cannot get ConfigMap default/x: Unauthorized. Check the token or the client certificate in the kubeconfig: the API server rejects these credentials. [CLUSTER_UNAUTHORIZED]',
    );
  });

  it('report an expired bootstrap token', async () => {
    expect(await failure(clusterOf(kubeconfig({}, { token: 'abcdef.0123456789abcdef' })).get(ref('x')))).toBe(
      'cannot get ConfigMap default/x: Unauthorized. Create a new token with kubeletadm token create: the bootstrap token abcdef has expired or was deleted. [CLUSTER_UNAUTHORIZED]',
    );
  });

  it('report an expired client certificate', async () => {
    const notAfter = new Date(Date.now() - 48 * 3600 * 1000);
    const text = await server.kubeconfigFor('late', ['system:masters'], { notAfter });
    expect(await failure(clusterOf(text).get(ref('x')))).toBe(
      `cannot get ConfigMap default/x: Unauthorized. Renew the client certificate in test.conf, which expired on ${notAfter.toISOString().slice(0, 10)}, or use another kubeconfig. [CLUSTER_UNAUTHORIZED]`,
    );
  });

  it('are a certificate and key that do not fit each other', async () => {
    const [a, b] = [await server.ca.issueClient({ commonName: 'a' }), await server.ca.issueClient({ commonName: 'b' })];
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const text = kubeconfig({}, { 'client-certificate-data': base64(a.certPem), 'client-key-data': base64(b.keyPem) });
    expect(await failure(clusterOf(text).version())).toContain('the TLS handshake failed (ERR_OSSL_X509_KEY_VALUES_MISMATCH)');
  });

  it('are files in the directory of the kubeconfig', async () => {
    const { certPem, keyPem } = await server.ca.issueClient({ commonName: 'from-files', organizations: ['system:masters'] });
    await writeFile(join(folder, 'client.crt'), certPem);
    await writeFile(join(folder, 'client.key'), keyPem);
    await writeFile(join(folder, 'ca.crt'), server.caPem);
    const files = { 'client-certificate': 'client.crt', 'client-key': 'client.key' };
    await writeFile(
      join(folder, 'files.conf'),
      kubeconfig({ 'certificate-authority-data': null, 'certificate-authority': 'ca.crt' }, files),
    );
    expect(await whoAmI(keep(kubeCluster({ kubeconfig: { path: join(folder, 'files.conf') } })))).toBe('from-files');
  });

  it('report a missing file', async () => {
    const text = kubeconfig({}, { 'client-certificate': 'none.crt', 'client-key': 'none.key' });
    expect(await failure(clusterOf(text).version())).toBe(
      'test.conf: cannot read none.crt (client-certificate): no such file or directory. Check the path. A relative path is resolved against the directory of the kubeconfig. [KUBECONFIG_FILE_UNREADABLE]',
    );
  });

  it('with a tokenFile are read again after an Unauthorized answer', async () => {
    const path = join(folder, 'token');
    await writeFile(path, 'old-token\n');
    const cluster = clusterOf(kubeconfig({}, { tokenFile: path }));
    expect(await failure(cluster.get(ref('x')))).toContain('[CLUSTER_UNAUTHORIZED]');
    await writeFile(path, `${TOKEN}\n`);
    expect(await cluster.get(ref('x'))).toBeNull();
  });

  it('from a plugin: the plugin receives the cluster information', async () => {
    const plugin = join(folder, 'plugin.sh');
    const info = join(folder, 'exec-info.json');
    await writeFile(
      plugin,
      `#!/bin/sh\nprintf %s "$KUBERNETES_EXEC_INFO" >${info}\necho '{"kind":"ExecCredential","status":{"token":"'$1'"}}'\n`,
    );
    await chmod(plugin, 0o755);
    const exec = {
      apiVersion: 'client.authentication.k8s.io/v1',
      command: './plugin.sh',
      args: [TOKEN],
      env: null,
      interactiveMode: 'Never',
      provideClusterInfo: true,
    };
    await writeFile(join(folder, 'exec.conf'), kubeconfig({}, { exec }));
    expect(await whoAmI(keep(kubeCluster({ kubeconfig: { path: join(folder, 'exec.conf') } })))).toBe('robot');
    const { default: reported } = await import(info, { with: { type: 'json' } });
    expect(reported).toMatchObject({
      kind: 'ExecCredential',
      apiVersion: 'client.authentication.k8s.io/v1',
      spec: { interactive: false, cluster: { server: server.url } },
    });
  });

  it.each([
    [
      'is not installed',
      'no-such-plugin',
      [],
      'the credential plugin "no-such-plugin": program not found. Install the credential plugin, or check users[].user.exec.command in the kubeconfig.',
    ],
    [
      'is not executable',
      '/etc/passwd',
      [],
      'the credential plugin "/etc/passwd": program not found or not executable by this user. Install the credential plugin, or check its mode, PATH and users[].user.exec.command in the kubeconfig.',
    ],
    [
      'fails',
      'sh',
      ['-c', 'echo secret-in-stderr >&2; exit 3'],
      'the credential plugin "sh": execution failed. Run the credential plugin by hand: the plugin must print an ExecCredential.',
    ],
    [
      'prints nonsense',
      'echo',
      ['secret-in-stdout'],
      'the credential plugin "echo": execution failed. Run the credential plugin by hand: the plugin must print an ExecCredential.',
    ],
    [
      'hangs',
      'sleep',
      ['2'],
      'the credential plugin "sleep": no response within 0.2 s. Run the credential plugin by hand: the plugin must print an ExecCredential.',
    ],
  ])('are provided by a plugin that %s', async (_, command, args, reason) => {
    const cluster = clusterOf(kubeconfig({}, { exec: { apiVersion: 'client.authentication.k8s.io/v1', command, args } }), {
      credentialTimeoutMs: 200,
    });
    expect(await failure(cluster.version())).toBe(`no credentials for the API server ${server.url}: ${reason} [CLUSTER_UNAUTHORIZED]`);
  });

  it('may impersonate another user', async () => {
    expect(await whoAmI(clusterOf(kubeconfig({}, { token: TOKEN, as: 'jane', 'as-groups': ['dev', 'ops'] })))).toBe('jane');
  });
});

describe('route to the API server', () => {
  it('works with an IPv6 address, from the local host and from other hosts', async () => {
    const api = keep(await startApiServer({ host: '::1', tokens: { [TOKEN]: { user: 'robot', groups: ['system:masters'] } } }));
    const to = { server: api.url, 'certificate-authority-data': Buffer.from(api.caPem).toString('base64') };
    const dial = async (): Promise<Duplex> => connect(Number(new URL(api.url).port), '::1');
    for (const options of [{}, { dial }]) expect(await clusterOf(kubeconfig(to, { token: TOKEN }), options).version()).toBe('v1.36.2');
  });

  it('uses an HTTP proxy', async () => {
    const asked: string[] = [];
    const proxy = createHttpServer().on('connect', (request, client) => {
      asked.push(request.url ?? '');
      const [host, port] = (request.url ?? '').split(':');
      const target = connect(Number(port), host, () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        target.pipe(client).pipe(target);
      });
      target.on('error', () => client.destroy());
      client.on('error', () => target.destroy()).on('close', () => target.destroy());
    });
    const port = await listen(proxy);
    const cluster = clusterOf(kubeconfig({ 'proxy-url': `http://127.0.0.1:${port}` }, { token: TOKEN }));
    expect([await cluster.version(), await cluster.version()]).toEqual(['v1.36.2', 'v1.36.2']);
    expect(asked).toEqual([new URL(server.url).host]);
    await cluster.close();
  });

  it('uses a SOCKS proxy', async () => {
    const asked: string[] = [];
    const proxy = await listen(socksProxy({ to: { port: Number(new URL(server.url).port) }, asked }));
    const cluster = clusterOf(kubeconfig({ 'proxy-url': `socks5://127.0.0.1:${proxy}` }, { token: TOKEN }));
    expect(await cluster.version()).toBe('v1.36.2');
    expect(asked).toEqual([new URL(server.url).host]);
    await cluster.close();
  });

  it('reports a proxy that rejects the connection', async () => {
    const proxy = createHttpServer().on('connect', (_, client) => client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'));
    const text = kubeconfig({ 'proxy-url': `http://127.0.0.1:${await listen(proxy)}` }, { token: TOKEN });
    expect(await failure(clusterOf(text).version())).toContain(
      ' refused the connection with status 407. Check HTTPS_PROXY and NO_PROXY, or proxy-url in the kubeconfig: the proxy requires a user and a password',
    );
  });

  it('uses the proxy from the environment with its credentials, except for hosts in NO_PROXY', async () => {
    const elsewhere = await startApiServer({ names: ['api.example.test'] });
    keep(elsewhere);
    const asked: string[] = [];
    const proxy = createHttpServer().on('connect', (request, client) => {
      asked.push(`${request.url} ${request.headers['proxy-authorization']}`);
      const target = connect(Number(new URL(elsewhere.url).port), '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        target.pipe(client).pipe(target);
      });
      client.on('error', () => target.destroy()).on('close', () => target.destroy());
    });
    const env = { HTTPS_PROXY: `http://me:p%40ss@127.0.0.1:${await listen(proxy)}` };
    const through = (NO_PROXY: string) =>
      clusterOf(elsewhere.adminKubeconfig(), { server: 'https://api.example.test:6443', env: { ...env, NO_PROXY } });
    const first = through('');
    expect(await first.version()).toBe('v1.36.2');
    await first.close();
    expect(asked).toEqual([`api.example.test:6443 Basic ${Buffer.from('me:p@ss').toString('base64')}`]);
    expect(await failure(through('example.test').version())).toContain('DNS name not found');
    expect(asked).toHaveLength(1);
  });

  it('names an unreachable proxy without its password', async () => {
    const nodes = await freePort();
    const env = { HTTPS_PROXY: `http://me:hunter2@127.0.0.1:${nodes}` };
    const text = await failure(admin({ server: 'https://api.example.test:6443', env }).version());
    expect(text).toContain(
      `cannot reach the API server https://api.example.test:6443: the proxy http://127.0.0.1:${nodes}: connection refused. Check HTTPS_PROXY`,
    );
    expect(text).not.toContain('hunter2');
  });

  it('keeps the path prefix of the server URL', async () => {
    const asked: string[] = [];
    const url = await webServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(200, { 'Content-Type': 'application/json' });
      response.end('{"gitVersion":"v1.30.1"}');
    });
    expect(await admin({ server: `${url}/k8s/clusters/c-1/` }).version()).toBe('v1.30.1');
    expect(asked).toEqual(['/k8s/clusters/c-1/version']);
  });

  it('works over plain HTTP with a token', async () => {
    const plain = keep(await startApiServer({ plainHttp: true, tokens: { [TOKEN]: { user: 'robot', groups: ['system:masters'] } } }));
    expect(await clusterOf(plain.kubeconfigWithToken(TOKEN)).get(ref('x'))).toBeNull();
  });
});

describe('requests', () => {
  it('read long lists page by page', async () => {
    const names = Array.from({ length: 1201 }, (_, index) => `page-${String(index).padStart(4, '0')}`);
    const big = keep(await startApiServer());
    big.put(...names.map((name) => configMap(name)));
    const cluster = clusterOf(big.adminKubeconfig());
    const { items } = await cluster.list(CONFIG_MAPS);
    expect(items.map(({ metadata }) => metadata.name)).toEqual(names);
    expect(big.requests.filter(({ verb }) => verb === 'list')).toHaveLength(3);
  });

  it('restart a list when its continue token expires between two pages', async () => {
    const big = keep(await startApiServer());
    big.put(...Array.from({ length: 501 }, (_, index) => configMap(`page-${index}`)));
    const hold = big.faults.hold({ verb: 'list' });
    const second = big.faults.hold({ verb: 'list' });
    const listing = clusterOf(big.adminKubeconfig()).list(CONFIG_MAPS);
    hold.release();
    await second.arrived;
    big.put(configMap('page-later'));
    big.compact();
    second.release();
    expect((await listing).items).toHaveLength(502);
    expect(big.requests.filter(({ verb }) => verb === 'list').map(({ status }) => status)).toEqual([200, 410, 200, 200]);
  });

  it('discover unknown kinds once', async () => {
    const json = (body: object) => ({ kind: 'answer', status: 200, body: JSON.stringify(body) }) as const;
    const resources = [
      { name: 'widgets/status', kind: 'Widget', namespaced: true },
      { name: 'widgets', kind: 'Widget', namespaced: true },
    ];
    server.faults.add({ path: '/apis/example.com/v1' }, json({ kind: 'APIResourceList', resources }));
    server.faults.add({ resource: 'widgets' }, json({ apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w/1' } }), 2);
    const cluster = admin();
    const widget = { apiVersion: 'example.com/v1', kind: 'Widget', namespace: 'shop', name: 'w/1' };
    const from = server.requests.length;
    await cluster.get(widget);
    await cluster.get(widget);
    expect(server.requests.slice(from).map(({ path }) => path)).toEqual([
      '/apis/example.com/v1',
      '/apis/example.com/v1/namespaces/shop/widgets/w%2F1',
      '/apis/example.com/v1/namespaces/shop/widgets/w%2F1',
    ]);
  });

  it('are aborted by close', async () => {
    const cluster = admin();
    const { resourceVersion } = await cluster.list(CONFIG_MAPS);
    const watching = collect(cluster.watch(CONFIG_MAPS, { resourceVersion }));
    await expect.poll(() => server.requests.some(({ verb, status }) => verb === 'watch' && status === 200)).toBe(true);
    await cluster.close();
    expect(await watching).toEqual([]);
  });
});

describe('a watch', () => {
  const streaming = (chunks: readonly (string | Buffer)[], end: 'close' | 'cut') =>
    webServer((_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' });
      const next = (index: number): void => {
        const chunk = chunks[index];
        if (chunk !== undefined) response.write(chunk, () => setImmediate(next, index + 1));
        else if (end === 'close') response.end();
        else response.destroy();
      };
      next(0);
    });
  const event = (name: string) => `${JSON.stringify({ type: 'ADDED', object: configMap(name, { a: 'ä€😀' }) })}\n`;

  it('is parsed wherever the stream is split', async () => {
    const bytes = Buffer.from(event('a') + event('b'));
    const url = await streaming(
      Array.from(bytes, (byte) => Buffer.from([byte])),
      'close',
    );
    const events = await collect(admin({ server: url }).watch(CONFIG_MAPS, { resourceVersion: '1' }));
    expect(events.map(({ object }) => [object.metadata.name, object.data])).toEqual([
      ['a', { a: 'ä€😀' }],
      ['b', { a: 'ä€😀' }],
    ]);
  });

  it('ends when the connection breaks, even within a line', async () => {
    const url = await streaming([event('a'), '{"type":"ADDED","obj'], 'cut');
    expect(await collect(admin({ server: url }).watch(CONFIG_MAPS, { resourceVersion: '1' }))).toHaveLength(1);
  });

  it('fails on a line that is not an event', async () => {
    const url = await streaming([event('a'), '<html>\n'], 'close');
    expect(await failure(collect(admin({ server: url }).watch(CONFIG_MAPS, { resourceVersion: '1' })))).toBe(
      'cannot watch ConfigMaps in namespace "default": a line of the watch is not JSON. Check the proxies and load balancers between the local host and the API server. [CLUSTER_ERROR]',
    );
  });

  it('fails on an ERROR event', async () => {
    const status = { kind: 'Status', code: 500, message: 'etcd is gone' };
    const url = await streaming([`${JSON.stringify({ type: 'ERROR', object: status })}\n`], 'close');
    expect(await failure(collect(admin({ server: url }).watch(CONFIG_MAPS, {})))).toBe(
      'cannot watch ConfigMaps in namespace "default": etcd is gone [CLUSTER_ERROR]',
    );
  });

  it('without a resourceVersion starts with the existing objects', async () => {
    const own = keep(await startApiServer());
    own.put(configMap('existing'));
    const cluster = clusterOf(own.adminKubeconfig());
    expect(await take(1, (signal) => cluster.watch(CONFIG_MAPS, { signal }))).toMatchObject([
      { type: 'ADDED', object: { metadata: { name: 'existing' } } },
    ]);
  });

  it('closes its connection when its reader stops', async () => {
    const own = keep(await startApiServer());
    own.put(configMap('existing'));
    const cluster = clusterOf(own.adminKubeconfig());
    for await (const _ of cluster.watch(CONFIG_MAPS, {})) break;
    await expect.poll(() => own.openWatches).toBe(0);
  });
});

it('errors in the kubeconfig itself are reported', async () => {
  expect(() => kubeCluster({ kubeconfig: { path: join(folder, 'none.conf') } })).toThrow(
    `cannot read the kubeconfig ${join(folder, 'none.conf')}: no such file or directory. Check the path, or pass another file with --kubeconfig. [KUBECONFIG_FILE_UNREADABLE]`,
  );
  expect(() => admin({ context: 'other' })).toThrow(
    'the kubeconfig has no context "other". Existing contexts: "kubernetes-admin@kubernetes". [KUBECONFIG_INVALID]',
  );
});

it('tokens appear in no error message', async () => {
  const logged: string[] = [];
  for (const text of [kubeconfig({}, { token: 'tok-secret' }), kubeconfig({}, { username: 'u', password: 'pw-secret' })]) {
    const cluster = clusterOf(text);
    for (const work of [() => cluster.get(ref('x')), () => cluster.create(configMap('x')), () => collect(cluster.watch(CONFIG_MAPS, {}))]) {
      const error: unknown = await work().catch((thrown: unknown) => thrown);
      logged.push(String(error), JSON.stringify(error));
    }
  }
  expect(logged.join('\n')).not.toMatch(/tok-secret|pw-secret|cHctc2VjcmV0/);
  expect(logged.join('\n')).toContain('Unauthorized');
});
