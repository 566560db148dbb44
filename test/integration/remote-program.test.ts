import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer as createHttpServer, type Server } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Secret, SensitiveText } from '../../src/base/text/secret.ts';
import type { Host } from '../../src/host/access/host.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { Operation } from '../../src/host/operation/operation.ts';
import { renderOperations, renderQueries, shellLoader } from '../../src/host/remote-program.ts';
import { createCertificateChain } from '../support/certificate-chain.ts';
import { type ShellOptions, shellTransport } from '../support/shell-transport.ts';
import { findProgram, onlyPrograms, SHELLS } from '../support/shells.ts';

const nonce = (): string => randomBytes(8).toString('hex');
const write = (path: string, content: string | SensitiveText = 'x\n', mode = 0o644): Operation => ({
  kind: 'write-file',
  path,
  content,
  mode,
  owner: 'root:root',
});

/** The required programs, in addition to the HTTP client; all in coreutils. */
const BASE_PROGRAMS = ['sh', 'id', 'cat', 'stat', 'readlink', 'ls', 'tr', 'sed', 'grep', 'head', 'timeout', 'true'];
const CLIENTS = ['curl', 'bash', 'wget', 'python3'].map((name) => ({
  name,
  missing: findProgram(name) === null,
  options: (directory: string): ShellOptions => ({ shell: ['/bin/sh'], env: { PATH: onlyPrograms(directory, [...BASE_PROGRAMS, name]) } }),
}));
const BUSYBOX = SHELLS.filter(({ name }) => name === 'busybox').map((shell) => ({
  name: 'busybox wget',
  missing: shell.missing !== null,
  options: (directory: string): ShellOptions => {
    mkdirSync(directory);
    return shell.options(directory);
  },
}));

// dash and busybox use pipes.
describe.each(SHELLS.filter(({ name }) => name === 'bash as sh' || name === 'mksh'))(
  'the standard input of a command in $name',
  (shell) => {
    it.skipIf(shell.missing !== null || process.getuid?.() !== 0)('needs no space in /tmp', async () => {
      const host = hostOverTransport(shellTransport({ ...shell.options(''), env: { PATH: process.env.PATH ?? '' } }), { nonce });
      const { it: found } = await host.query({
        it: { kind: 'command', argv: ['readlink', '/proc/self/fd/0'], stdin: `${'a'.repeat(1023)}\n`.repeat(200) },
      });
      expect(found).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^\/run\//) });
    });
  },
);

describe('http fact', () => {
  let top = '';
  let server: Server;
  let base = '';

  beforeAll(async () => {
    top = mkdtempSync(join(tmpdir(), 'http-question-'));
    server = createHttpServer((request, response) => {
      if (request.url === '/hang') return;
      if (request.url === '/healthz') response.end('ok');
      else if (request.url === '/lines?a=1&b=2') response.end('[+]ping ok\n\n[-]log failed\n');
      else if (request.url === '/500') response.writeHead(500).end('[-]syncloop failed');
      else if (request.url === '/empty') response.end();
      else response.writeHead(404, { 'content-type': 'text/plain' }).end('404 page not found\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '::', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
    rmSync(top, { recursive: true, force: true });
  });

  /** With a proxy set that must not be used. */
  const hostWith = ({ shell, env }: ShellOptions): Host =>
    hostOverTransport(shellTransport({ shell, env: { ...env, http_proxy: 'http://127.0.0.1:1' } }), { nonce });
  const get = (path: string, timeoutSeconds = 30) =>
    ({ kind: 'http', url: path.startsWith('http') ? path : `${base}${path}`, timeoutSeconds }) as const;

  describe.each([...CLIENTS, ...BUSYBOX])('through $name', ({ name, missing, options }) => {
    it.skipIf(missing)('returns status and body', async () => {
      const host = hostWith(options(join(top, `${name}-good`)));
      const answers = await host.query({
        ok: get('/healthz'),
        lines: get('/lines?a=1&b=2'),
        empty: get('/empty'),
        ipv6: get(`${base.replace('127.0.0.1', '[::1]')}/healthz`),
      });
      expect(answers.ok).toEqual({ status: 200, body: 'ok' });
      expect(answers.lines).toMatchObject({ status: 200, body: expect.stringContaining('[+]ping ok\n\n[-]log failed') });
      expect(answers.empty).toEqual({ status: 200, body: '' });
      expect(answers.ipv6).toEqual({ status: 200, body: 'ok' });
    });

    it.skipIf(missing)('distinguishes a server error from no answer', async () => {
      const host = hostWith(options(join(top, `${name}-bad`)));
      const answers = await host.query({ notFound: get('/nothing'), failing: get('/500'), refused: get('http://127.0.0.1:1/healthz') });
      if (name === 'wget') {
        // GNU wget reports only that the server answered with an error.
        expect([answers.notFound, answers.failing]).toEqual([
          { error: expect.stringContaining('wget') },
          { error: expect.stringContaining('wget') },
        ]);
      } else if (name === 'busybox wget') {
        expect([answers.notFound, answers.failing]).toMatchObject([{ status: 404 }, { status: 500 }]);
      } else {
        expect(answers.notFound).toMatchObject({ status: 404, body: expect.stringContaining('404 page not found') });
        expect(answers.failing).toEqual({ status: 500, body: '[-]syncloop failed' });
      }
      expect(answers.refused).toEqual({ error: expect.stringMatching(/refused|connect|no response|wget/i) });
    });
  });

  it('the host repeats the request while the connection is refused, and takes every answer', async () => {
    const host = hostWith({ shell: ['/bin/sh'], env: { PATH: process.env.PATH ?? '' } });
    expect((await host.query({ failing: { ...get('/500'), attempts: 1_000 } })).failing).toMatchObject({ status: 500 });
    const late = createHttpServer((_, response) => void response.end('ok'));
    const port = await new Promise<number>((resolve) => {
      const free = createHttpServer().listen(0, '127.0.0.1', () => {
        const { port: own } = free.address() as AddressInfo;
        free.close(() => resolve(own));
      });
    });
    const url = `http://127.0.0.1:${port}/healthz`;
    const asked = host.query({ late: { kind: 'http', url, timeoutSeconds: 5, attempts: 1_000 } });
    const refused = await host.query({ late: { kind: 'http', url, timeoutSeconds: 5, attempts: 2 } });
    expect(refused.late).toHaveProperty('error');
    late.listen(port, '127.0.0.1');
    expect((await asked).late).toEqual({ status: 200, body: 'ok' });
    late.close();
  });

  it('stops at its timeout', async () => {
    const present = [...CLIENTS, ...BUSYBOX].filter(({ missing }) => !missing);
    const started = performance.now();
    const answers = await Promise.all(
      present.map(({ name, options }) => hostWith(options(join(top, `${name}-slow`))).query({ it: get('/hang', 1) })),
    );
    expect(answers).toEqual(present.map(() => ({ it: { error: expect.any(String) } })));
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  const withPrograms = (directory: string, programs: readonly string[]): Host =>
    hostWith({ shell: ['/bin/sh'], env: { PATH: onlyPrograms(join(top, directory), [...BASE_PROGRAMS, ...programs]) } });

  describe('over TLS, with any CA', () => {
    let secure: HttpsServer;
    let at = '';
    beforeAll(async () => {
      const { certPem, keyPem } = await createCertificateChain();
      secure = createHttpsServer({ cert: certPem, key: keyPem }, (request, response) => {
        if (request.url === '/livez') response.end('ok');
        else response.writeHead(500).end('[-]etcd failed: reason withheld\n');
      });
      await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve));
      at = `https://127.0.0.1:${(secure.address() as AddressInfo).port}`;
    });
    afterAll(() => {
      secure.closeAllConnections();
      secure.close();
    });

    it.each(['curl', 'openssl', 'wget', 'python3'].map((name) => [name, findProgram(name) === null] as const))(
      'through %s',
      async (name, missing) => {
        if (missing) return;
        const host = hostWith({ shell: ['/bin/sh'], env: { PATH: onlyPrograms(join(top, `${name}-tls`), [...BASE_PROGRAMS, name]) } });
        const answers = await host.query({
          ok: get(`${at}/livez`),
          failing: get(`${at}/readyz`),
          refused: get('https://127.0.0.1:1/livez'),
        });
        expect(answers.ok).toEqual({ status: 200, body: 'ok' });
        if (name === 'wget') expect(answers.failing).toEqual({ error: expect.stringContaining('wget') });
        else expect(answers.failing).toMatchObject({ status: 500, body: expect.stringContaining('[-]etcd failed') });
        expect(answers.refused).toEqual({ error: expect.stringMatching(/refused|connect|no response|wget/i) });
      },
    );
  });

  it('prefers curl', async () => {
    const { it: answer } = await withPrograms('all', ['curl', 'bash', 'wget', 'python3']).query({ it: get('http://0.0.0.0:1/') });
    expect(answer).toEqual({ error: expect.stringMatching(/^curl: \(7\)/) });
  });

  it('reports a host without any HTTP client', async () => {
    const { it: answer } = await withPrograms('none', []).query({ it: get('/healthz') });
    expect(answer).toEqual({ error: 'the host has neither curl, bash, wget nor python3' });
  });
});

describe('renderQueries and renderOperations', () => {
  it('pass secrets only over stdin, never in an argv', () => {
    const operation = write('/s', new SensitiveText([new Secret('hush')]));
    expect(shellLoader('n').join(' ')).not.toContain('hush');
    expect(
      Buffer.from(renderOperations([operation], { nonce: 'n', temporaryId: 't', rootDir: null })).includes(
        Buffer.from('hush').toString('base64'),
      ),
    ).toBe(true);
  });

  it('quote paths and commands', () => {
    const program = renderQueries(
      [
        { kind: 'file', path: "/it's" },
        { kind: 'command', argv: ['echo', '$x'] },
      ],
      { nonce: 'n', rootDir: '/a b' },
    );
    expect(program).toContain("R='/a b'");
    expect(program).toContain("q_file 0 1 '/it'\\''s'");
    expect(program).toContain("( echo '$x' ) </dev/null");
  });
});
