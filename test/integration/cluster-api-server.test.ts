import { once } from 'node:events';
import { request } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls, type PeerCertificate, type TLSSocket } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { isAppError } from '../../src/base/errors.ts';
import type { InputFiles } from '../../src/base/local-files.ts';
import { Secret } from '../../src/base/text/secret.ts';
import { serveHooks } from '../../src/rollouts/cluster-api/adapters/hook-server.ts';
import { type ExtensionPorts, runExtension } from '../../src/rollouts/cluster-api/run-extension.ts';
import { type CertificateChain, createCertificateChain } from '../support/certificate-chain.ts';
import { canUpdateMachine, HOOKS_API_VERSION } from '../support/cluster-api-objects.ts';
import { fakeCluster } from '../support/fake-cluster.ts';
import { recordingReporter } from '../support/recording-reporter.ts';
import { untilTrue } from '../support/until-true.ts';
import { virtualClock } from '../support/virtual-clock.ts';

const DISCOVERY = `/${HOOKS_API_VERSION}/discovery`;
const REQUEST = JSON.stringify({ apiVersion: HOOKS_API_VERSION, kind: 'DiscoveryRequest' });

interface Call {
  readonly method?: string;
  readonly path?: string;
  readonly body?: string;
  readonly client?: CertificateChain;
}

/** A request as Cluster API sends it: by a verified connection of its own. */
function call(
  port: number,
  { rootPem, intermediatePem }: CertificateChain,
  { method = 'POST', path = DISCOVERY, body = REQUEST, client }: Call = {},
) {
  return new Promise<{ status: number; text: string; fingerprint: string }>((resolve, reject) => {
    const certificate = client === undefined ? {} : { cert: client.certPem + client.intermediatePem, key: client.keyPem };
    const options = {
      host: '127.0.0.1',
      port,
      method,
      path: `${path}?timeout=10s`,
      ca: rootPem + intermediatePem,
      agent: false,
      ...certificate,
    };
    const sent = request(options, (response) => {
      const peer: PeerCertificate = (response.socket as TLSSocket).getPeerCertificate();
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString(), fingerprint: peer.fingerprint256 }),
      );
    });
    sent.on('error', reject);
    sent.end(method === 'GET' ? undefined : body);
  });
}

const stop: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of stop.splice(0)) await end();
});

/** An extension of a pod, with its files in memory. */
async function extension(chain: CertificateChain, clientCaPem?: string) {
  const files = new Map([
    ['tls.crt', chain.certPem + chain.intermediatePem],
    ['tls.key', chain.keyPem],
    ...(clientCaPem === undefined ? [] : ([['ca.crt', clientCaPem]] as const)),
  ]);
  const watchers = new Map<string, () => void>();
  const reporter = recordingReporter();
  const abort = new AbortController();
  const services: ExtensionPorts = {
    env: { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' },
    homeDirectory: '/',
    input: { readText: async (path: string) => files.get(path) ?? '' } as InputFiles,
    clock: virtualClock(),
    signal: abort.signal,
    connectCluster: async () => ({ ...fakeCluster(), close: async () => undefined }),
    watchFile: (path, onChange) => void watchers.set(path, onChange),
    serveHooks,
  };
  const ended = runExtension(
    services,
    {
      cluster: {},
      host: '127.0.0.1',
      port: 0,
      certFile: 'tls.crt',
      keyFile: 'tls.key',
      clientCaFile: clientCaPem === undefined ? undefined : 'ca.crt',
      allow: 'safe',
      namespace: 'kubeletadm-system',
    },
    reporter,
  );
  const failed = ended.then(
    () => null,
    (error: unknown) => error,
  );
  stop.push(async () => {
    abort.abort();
    await failed;
  });
  const portOf = (): number =>
    Number(/port (\d+)$/.exec(reporter.events.find(({ code }) => code === 'SERVER_STARTED')?.message ?? '')?.[1] ?? 0);
  await Promise.race([failed, untilTrue(async () => portOf() > 0)]);
  return { files, watchers, reporter, port: portOf(), ended };
}

it.each(['TCP', 'TLS'])('a client that connects by %s and sends nothing is disconnected', async (protocol) => {
  const chain = await createCertificateChain();
  const certificate = { certPem: chain.certPem + chain.intermediatePem, keyPem: new Secret(chain.keyPem), clientCaPem: null };
  const server = await serveHooks({ host: '127.0.0.1', port: 0, certificate, answer: async () => null, timeoutMs: 50 });
  stop.push(server.close);
  const to = { host: '127.0.0.1', port: server.port };
  const client = protocol === 'TCP' ? connectTcp(to) : connectTls({ ...to, ca: chain.rootPem });
  client.on('error', () => undefined);
  client.resume();
  await once(client, 'close');
});

describe('the server of the Cluster API extension', () => {
  it('answers hooks and probes by HTTPS, and nothing else', async () => {
    const chain = await createCertificateChain();
    const { port } = await extension(chain);
    const ask = async (sent: Call) => {
      const { status, text } = await call(port, chain, sent);
      return [status, text];
    };
    expect(await ask({})).toEqual([200, expect.stringContaining('"kind":"DiscoveryResponse","status":"Success"')]);
    expect(await ask({ method: 'GET', path: '/healthz' })).toEqual([200, 'ok\n']);
    expect(await ask({ method: 'GET' })).toEqual([405, 'method not allowed\n']);
    expect(await ask({ path: '/' })).toEqual([404, 'not found\n']);
    expect(await ask({ body: '{' })).toEqual([400, expect.stringContaining('expected a DiscoveryRequest')]);
    expect(await ask({ body: 'x'.repeat(11 * 1024 * 1024) })).toEqual([413, expect.stringContaining('more than')]);
    expect(await ask({})).toEqual([200, expect.any(String)]);
  });

  it('neither validates each item of an endless list nor logs an endless name', async () => {
    const chain = await createCertificateChain();
    const { port, reporter } = await extension(chain);
    const path = `/${HOOKS_API_VERSION}/canupdatemachine/can-update-machine`;
    const endless = canUpdateMachine({}, { files: Array.from({ length: 2_000 }, () => 1) });
    const { text } = await call(port, chain, { path, body: JSON.stringify(endless) });
    expect(JSON.parse(text)).toMatchObject({ status: 'Success', message: expect.stringMatching(/^not covered: .*<=1000 items/) });
    const named = JSON.stringify(canUpdateMachine({}, {})).replaceAll('"edge-1"', JSON.stringify('x'.repeat(100_000)));
    expect((await call(port, chain, { path, body: named })).status).toBe(200);
    const lines = reporter.events.filter(({ code }) => code === 'HOOK_ANSWERED').map(({ message }) => message.length);
    expect(lines).toHaveLength(2);
    expect(Math.max(...lines)).toBeLessThan(2_000);
  });

  it('serves a renewed certificate without a restart, and keeps the previous one while the files do not match', async () => {
    const [first, second] = await Promise.all([createCertificateChain(), createCertificateChain()]);
    const { port, files, watchers, reporter } = await extension(first);
    const before = await call(port, first);
    files.set('tls.crt', second.certPem + second.intermediatePem);
    watchers.get('tls.crt')?.();
    await untilTrue(async () => reporter.codes().includes('CERTIFICATE_NOT_RELOADED'));
    expect((await call(port, first)).fingerprint).toBe(before.fingerprint);
    files.set('tls.key', second.keyPem);
    watchers.get('tls.key')?.();
    await untilTrue(async () => reporter.codes().includes('CERTIFICATE_RELOADED'));
    const after = await call(port, second);
    expect([after.status, after.fingerprint === before.fingerprint]).toEqual([200, false]);
    expect(JSON.stringify(reporter.events)).not.toContain('PRIVATE KEY');
  });

  it('requires a client certificate of the CA of --client-ca-file, except for probes', async () => {
    const [chain, clients, others] = await Promise.all([createCertificateChain(), createCertificateChain(), createCertificateChain()]);
    const { port } = await extension(chain, clients.rootPem);
    const statuses = [
      await call(port, chain),
      await call(port, chain, { client: others }),
      await call(port, chain, { client: clients }),
      await call(port, chain, { method: 'GET', path: '/healthz' }),
    ].map(({ status }) => status);
    expect(statuses).toEqual([401, 401, 200, 200]);
  });

  it('does not start with a certificate of another key', async () => {
    const [first, second] = await Promise.all([createCertificateChain(), createCertificateChain()]);
    const { ended } = await extension({ ...first, keyPem: second.keyPem });
    const error = await ended.catch((cause: unknown) => cause);
    expect([isAppError(error, 'CLUSTER_API_LISTEN'), isAppError(error) && error.exitCode]).toEqual([true, 2]);
    expect(String(error)).not.toContain('PRIVATE KEY');
  });
});
