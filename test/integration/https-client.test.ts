import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, type Server } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type CertificateAuthority, createCa, type KeyPair } from '../../lab/api-server/pki.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { kubeCluster } from '../../src/kube/adapters/cluster-kube.ts';
import { nodeHttpsClient } from '../../src/kube/adapters/https-client.ts';
import type { Dial } from '../../src/kube/dial.ts';
import type { WebFailureCause } from '../../src/kube/https-client.ts';
import { tokenKubeconfig } from '../../src/kube/kubeconfig-render.ts';
import { createCertificateChain } from '../support/certificate-chain.ts';
import { freePort, listenOnLoopback, startTcpServer, type TcpServer } from '../support/loopback.ts';
import { socksProxy } from '../support/socks-proxy.ts';

let ca: CertificateAuthority;
let serving: KeyPair;
const open: { close(): Promise<void> | void }[] = [];
beforeAll(async () => {
  ca = await createCa();
  serving = await ca.issueServer(['127.0.0.1', 'api.example.test', '::1'], { commonName: 'kube-apiserver' });
});
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

const TRUST = () => ({ kind: 'ca', pem: ca.certPem }) as const;
const keyPair = (): TlsOptions => ({ cert: serving.certPem, key: serving.keyPem });

async function listen(server: Server): Promise<number> {
  const port = await listenOnLoopback(server);
  open.push({ close: () => void server.close() });
  return port;
}

async function tcp(serve: Parameters<typeof startTcpServer>[0]): Promise<number> {
  const server: TcpServer = await startTcpServer(serve);
  open.push({ close: server.stop });
  return server.port;
}

async function failureAt(port: number): Promise<WebFailureCause | string> {
  const answer = await nodeHttpsClient({}).get({ url: `https://127.0.0.1:${port}/`, trust: TRUST(), timeoutMs: 5_000 });
  return answer.kind === 'failed' ? answer.issue : `answered ${answer.status}`;
}

describe('unexpected answers', () => {
  it('an SSH server', async () => {
    expect(await failureAt(await tcp((socket) => void socket.write('SSH-2.0-OpenSSH_9.6\r\n')))).toEqual({
      kind: 'not-tls',
      speaks: 'ssh',
    });
  });

  it('a web server without TLS', async () => {
    const server = createHttpServer((_, response) => void response.end('hello'));
    expect(await failureAt(await listen(server))).toEqual({ kind: 'not-tls', speaks: 'http' });
  });

  it('another protocol whose server speaks first', async () => {
    expect(await failureAt(await tcp((socket) => void socket.write('220 mail.example.com ESMTP\r\n')))).toEqual({
      kind: 'not-tls',
      speaks: null,
    });
  });

  it('a server that closes the connection', async () => {
    expect(await failureAt(await tcp((socket) => void socket.destroy()))).toEqual({ kind: 'closed' });
  });

  it('a server that closes the connection during the handshake', async () => {
    expect(await failureAt(await tcp((socket) => void socket.once('data', () => socket.end())))).toEqual({ kind: 'closed' });
  });

  it('an old TLS version: no downgrade', async () => {
    const server = createTlsServer({ ...keyPair(), minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' });
    expect(await failureAt(await listen(server))).toEqual({ kind: 'tls-version' });
  });

  it('a server without a certificate', async () => {
    expect(await failureAt(await listen(createTlsServer({})))).toMatchObject({ kind: 'tls-handshake' });
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('a server that requires a client certificate, %s', async (version) => {
    const server = createHttpsServer(
      { ...keyPair(), requestCert: true, minVersion: version, maxVersion: version },
      (_, response) => void response.end(),
    );
    expect(await failureAt(await listen(server))).toEqual(
      version === 'TLSv1.2'
        ? { kind: 'tls-handshake', why: expect.stringMatching(/^ERR_SSL_SSL\S*_ALERT_HANDSHAKE_FAILURE$/) }
        : { kind: 'wants-client-certificate' },
    );
  });

  it('TLS without HTTP inside', async () => {
    const server = createTlsServer(keyPair(), (socket) => void socket.end('* OK IMAP4rev1 ready\r\n'));
    expect(await failureAt(await listen(server))).toEqual({ kind: 'not-http' });
  });
});

describe('an intermediate CA', () => {
  it('can be trusted without its issuer, like in Go', async () => {
    const chain = await createCertificateChain();
    const server = createHttpsServer(
      { cert: chain.certPem, key: chain.keyPem },
      (_, response) => void response.end('{"gitVersion":"v1.36.2"}'),
    );
    const url = `https://127.0.0.1:${await listen(server)}`;
    const trusting = (pem: string) => nodeHttpsClient({}).get({ url, trust: { kind: 'ca', pem } });
    expect(await trusting(chain.intermediatePem)).toMatchObject({ kind: 'answer', status: 200 });
    expect(await trusting(chain.rootPem)).toMatchObject({ issue: { kind: 'unknown-authority' } });
    const options = { clusterName: 'c', server: url, caPem: chain.intermediatePem, user: 'u', token: new Secret('x') };
    const cluster = kubeCluster({ kubeconfig: { text: tokenKubeconfig(options).reveal(), file: 'test.conf' } });
    expect(await cluster.version()).toBe('v1.36.2');
    await cluster.close();
  });
});

describe('a single pinned certificate', () => {
  it('is trusted for its key with any purpose, and only its server receives the token', async () => {
    const asked: (string | undefined)[] = [];
    const server = createHttpsServer(keyPair(), (request, response) => {
      asked.push(request.headers.authorization);
      response.end('{}');
    });
    const port = await listen(server);
    const other = await ca.issueServer(['127.0.0.1'], { commonName: 'kube-apiserver' });
    const get = (pem: string) =>
      nodeHttpsClient({ HTTPS_PROXY: 'http://127.0.0.1:9' }).get({
        url: `https://127.0.0.1:${port}/configz`,
        serverName: 'a-name-it-is-not-for',
        trust: { kind: 'certificate', pem },
        bearerToken: new Secret('abc'),
        proxyUrl: null,
      });
    expect(await get(`${serving.certPem}\n${other.certPem}`)).toMatchObject({ kind: 'answer', status: 200 });
    for (const pem of [other.certPem, ca.certPem, `${other.certPem}\n${serving.certPem}`])
      expect(await get(pem)).toMatchObject({ issue: { kind: 'other-certificate', peer: { issuer: expect.any(String) } } });
    const unverified = { url: `https://127.0.0.1:${port}/`, trust: { kind: 'unverified' }, bearerToken: new Secret('abc') } as const;
    expect(await nodeHttpsClient({}).get(unverified)).toMatchObject({ kind: 'failed' });
    expect(asked).toEqual(['Bearer abc']);
  });

  it('its server receives the client certificate in the handshake, from one file with certificate and key', async () => {
    const client = await ca.issueClient({ commonName: 'system:node:n1', organizations: ['system:nodes'] });
    const asked: unknown[] = [];
    const tls = { ...keyPair(), ca: ca.certPem, requestCert: true, rejectUnauthorized: false };
    const server = createHttpsServer(tls, ({ socket, headers }, response) => {
      const { authorized } = socket as TLSSocket;
      asked.push([authorized, (socket as TLSSocket).getPeerCertificate().subject?.CN, headers.authorization]);
      response.end('{}');
    });
    const port = await listen(server);
    const trust = { kind: 'certificate', pem: serving.certPem } as const;
    const get = (certificate: string, key: string) =>
      nodeHttpsClient({}).get({
        url: `https://127.0.0.1:${port}/configz`,
        trust,
        clientCertificate: { certificate, key: new Secret(key) },
        proxyUrl: null,
      });
    // kubelet-client-current.pem contains both, too.
    const both = client.certPem + client.keyPem;
    for (const [certificate, key] of [
      [client.certPem, client.keyPem],
      [both, both],
    ] as const)
      expect(await get(certificate, key)).toMatchObject({ kind: 'answer', status: 200 });
    expect(asked).toEqual([
      [true, 'system:node:n1', undefined],
      [true, 'system:node:n1', undefined],
    ]);
    expect(await get('nonsense', client.keyPem)).toMatchObject({ kind: 'failed' });
  });
});

describe('route', () => {
  it('to an IPv6 address', async () => {
    const server = createHttpsServer(keyPair(), (_, response) => void response.end('{}'));
    const port = await new Promise<number>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '::1', () => resolve((server.address() as { port: number }).port));
    });
    open.push({ close: () => void server.close() });
    const answer = await nodeHttpsClient({}).get({ url: `https://[::1]:${port}/`, trust: TRUST() });
    expect(answer).toMatchObject({ kind: 'answer', status: 200 });
  });

  it("through a proxy, with the server's certificate still verified", async () => {
    const server = createHttpsServer(keyPair(), (_, response) => void response.end('{}'));
    const port = await listen(server);
    const asked: string[] = [];
    const proxy = createHttpServer().on('connect', (request, client) => {
      asked.push(request.url ?? '');
      const target = connect(port, '127.0.0.1', () => {
        client.write('HTTP/1.1 200 OK\r\n\r\n');
        target.pipe(client).pipe(target);
      });
      client.on('error', () => target.destroy()).on('close', () => target.destroy());
    });
    const web = nodeHttpsClient({ HTTPS_PROXY: `http://127.0.0.1:${await listen(proxy)}` });
    expect(await web.get({ url: 'https://api.example.test:6443/', trust: TRUST() })).toMatchObject({ kind: 'answer' });
    expect(await web.get({ url: 'https://other.example.test:6443/', trust: TRUST() })).toMatchObject({ issue: { kind: 'wrong-name' } });
    expect(asked).toEqual(['api.example.test:6443', 'other.example.test:6443']);
  });

  it('over connections that the caller opens, past any proxy', async () => {
    const port = await listen(createHttpsServer(keyPair(), (_, response) => void response.end('{}')));
    const asked: Parameters<Dial>[0][] = [];
    const dial: Dial = async (address) => {
      asked.push(address);
      return connect(port, '127.0.0.1');
    };
    const web = nodeHttpsClient({ HTTPS_PROXY: 'http://127.0.0.1:1' });
    const get = (name: string) => web.get({ url: `https://${name}:6443/version`, trust: TRUST(), dial });
    expect(await get('api.example.test')).toMatchObject({ kind: 'answer', text: '{}' });
    expect(await get('other.example.test')).toMatchObject({ issue: { kind: 'wrong-name' } });
    expect(asked[0]).toEqual({ host: 'api.example.test', port: 6443 });
    const lost = async (): Promise<never> => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }));
    expect(await web.get({ url: 'https://10.0.0.1/', trust: TRUST(), dial: lost })).toEqual({
      kind: 'failed',
      issue: { kind: 'refused' },
    });
  });

  it.each([
    [403, 'ban'],
    [407, 'login'],
    [502, 'failure'],
  ] as const)('a proxy rejects with %d', async (status, kind) => {
    const proxy = createHttpServer().on('connect', (_, client) => client.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`));
    const origin = `127.0.0.1:${await listen(proxy)}`;
    const answer = await nodeHttpsClient({ HTTPS_PROXY: `http://me:hunter2@${origin}` }).get({
      url: 'https://api.example.test/',
      trust: TRUST(),
    });
    expect(answer).toEqual({
      kind: 'failed',
      issue: { kind: 'proxy-refused', proxy: `http://${origin}`, refusal: { why: `with status ${status}`, kind } },
    });
  });

  it('through a SOCKS proxy, which resolves the name and receives the credentials', async () => {
    const port = await listen(createHttpsServer(keyPair(), (_, response) => void response.end('{}')));
    const asked: string[] = [];
    const proxy = await listen(socksProxy({ login: 'me:p@ss', to: { port }, asked }));
    const get = (login: string) =>
      nodeHttpsClient({ HTTPS_PROXY: `socks5://${login}127.0.0.1:${proxy}` }).get({
        url: 'https://api.example.test:6443/',
        trust: TRUST(),
      });
    expect(await get('me:p%40ss@')).toMatchObject({ kind: 'answer', status: 200, text: '{}' });
    expect(asked).toEqual(['api.example.test:6443']);
    const refusal = { why: '(authentication failed)', kind: 'login' };
    const refused = { kind: 'failed', issue: { kind: 'proxy-refused', proxy: `socks5://127.0.0.1:${proxy}`, refusal } };
    expect([await get('me:hunter2@'), await get('')]).toEqual([refused, refused]);
  });

  it.each([
    [2, 'NotAllowed', 'ban'],
    [4, 'HostUnreachable', 'failure'],
    [5, 'ConnectionRefused', 'failure'],
  ] as const)('a SOCKS proxy rejects with %d', async (to, answer, kind) => {
    const proxy = await listen(socksProxy({ to, asked: [] }));
    const issue = await nodeHttpsClient({ HTTPS_PROXY: `socks5h://127.0.0.1:${proxy}` }).get({
      url: 'https://10.0.0.1:6443/',
      trust: TRUST(),
    });
    expect(issue).toMatchObject({ issue: { kind: 'proxy-refused', refusal: { why: `(${answer})`, kind } } });
  });

  it('a SOCKS proxy of another protocol, or one that disconnects', async () => {
    const get = async (greeting: string) => {
      const proxy = await tcp((client) => client.once('data', () => client.end(greeting)));
      return nodeHttpsClient({ HTTPS_PROXY: `socks5://127.0.0.1:${proxy}` }).get({ url: 'https://10.0.0.1:6443/', trust: TRUST() });
    };
    expect(await get('HTTP/1.1 400 Bad Request\r\n')).toMatchObject({ issue: { refusal: { why: '(not a SOCKS 5 proxy)' } } });
    expect(await get('')).toMatchObject({ issue: { kind: 'proxy-unreachable' } });
  });

  it('a proxy that does not exist, and a server that is not a proxy', async () => {
    const port = await freePort();
    const get = (proxy: string) => nodeHttpsClient({ HTTPS_PROXY: proxy }).get({ url: 'https://api.example.test/', trust: TRUST() });
    expect(await get(`127.0.0.1:${port}`)).toEqual({
      kind: 'failed',
      issue: { kind: 'proxy-unreachable', proxy: `http://127.0.0.1:${port}`, why: 'connection refused' },
    });
    expect(await get(`socks5://me:hunter2@127.0.0.1:${port}`)).toEqual({
      kind: 'failed',
      issue: { kind: 'proxy-unreachable', proxy: `socks5://127.0.0.1:${port}`, why: 'connection refused' },
    });
    expect(await get('ftp://me:hunter2@x')).toEqual({
      kind: 'failed',
      issue: { kind: 'proxy-unusable', why: 'HTTPS_PROXY is not a valid proxy URL' },
    });
  });
});
