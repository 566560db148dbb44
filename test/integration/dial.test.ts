import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, request, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createCa } from '../../lab/api-server/pki.ts';
import type { Host } from '../../src/host/access/host.ts';
import { asRoot } from '../../src/host/as-root.ts';
import { hostOverTransport } from '../../src/host/host-over-transport.ts';
import type { Transport } from '../../src/host/transport.ts';
import { DialingAgent } from '../../src/kube/adapters/dialing-agent.ts';
import type { Dial } from '../../src/kube/dial.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { opensshTransport } from '../../src/ssh/adapters/transport-openssh.ts';
import { sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { freePort, startTcpServer, type TcpServer } from '../support/loopback.ts';
import { requirement } from '../support/requirement.ts';
import { sshTargetFor } from '../support/ssh-target.ts';
import { type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';

const CLIENTS = [
  ['the built-in client', (target: SshTarget): Transport => sshTransport(target, { hostKeys: knownHostsStore() })],
  ["the system's ssh", (target: SshTarget): Transport => opensshTransport(target, { configFile: 'none' })],
] as const;

describe.skipIf(requirement('connections opened from hosts', sshdMissing))('a connection from a host', () => {
  const cleanups: (() => Promise<unknown>)[] = [];
  let directory: string;
  let sshd: Sshd;
  let echo: TcpServer;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kubeletadm-dial-'));
    sshd = await startSshd({ hostKeys: ['ed25519'] });
    echo = await startTcpServer((socket) => socket.pipe(socket));
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  afterAll(async () => {
    await sshd?.stop();
    await echo?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  function hostAt(server: Sshd, client: (target: SshTarget) => Transport): Host {
    const { port, user, identityFile } = server;
    const target = sshTargetFor({ name: 'node', port, user, directory, known: [server.hostKey('ed25519')], identityFiles: [identityFile] });
    const host = hostOverTransport(asRoot(client(target), { become: 'none' }), { nonce: () => '0123456789abcdef' });
    cleanups.push(() => host.close());
    return host;
  }

  it.each(CLIENTS)('carries bytes in both directions, several connections at once: %s', async (_, client) => {
    const host = hostAt(sshd, client);
    const words = ['one', 'two', 'x'.repeat(300_000)];
    const received = words.map(async (word) => {
      const stream = await host.dial?.({ host: '127.0.0.1', port: echo.port });
      stream?.end(word);
      return text(stream as NodeJS.ReadableStream);
    });
    expect(await Promise.all(received)).toEqual(words);
  });

  it.each(CLIENTS)('reports a closed port like a connection from the local host: %s', async (_, client) => {
    const host = hostAt(sshd, client);
    const port = await freePort();
    const failure = (async () => text((await host.dial?.({ host: '127.0.0.1', port })) as NodeJS.ReadableStream))();
    await expect(failure).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it.each(CLIENTS)('notices that a server closed its idle connections: %s', async (_, client) => {
    const host = hostAt(sshd, client);
    const port = await freePort();
    const { certPem: cert, keyPem: key } = await (await createCa('ca')).issueServer(['127.0.0.1']);
    const agent = new DialingAgent(host.dial as Dial, { keepAlive: true, rejectUnauthorized: false });
    cleanups.push(async () => agent.destroy());
    const serve = async (): Promise<Server> => {
      const server = createServer({ cert, key }, (_request, response) => void response.end('ok'));
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
      return server;
    };
    const get = (): Promise<string> =>
      new Promise((resolve, reject) => {
        request({ host: '127.0.0.1', port, agent, timeout: 5_000 }, (response) => text(response).then(resolve, reject))
          .on('timeout', () => reject(new Error('the request got no answer')))
          .on('error', reject)
          .end();
      });
    const first = await serve();
    expect(await Promise.all([get(), get(), get()])).toEqual(['ok', 'ok', 'ok']);
    first.closeAllConnections();
    await new Promise((resolve) => first.close(resolve));
    await expect.poll(() => Object.values(agent.freeSockets).flat().length, { timeout: 5_000 }).toBe(0);
    await expect(get()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    const second = await serve();
    cleanups.push(
      async () => second.closeAllConnections(),
      async () => second.close(),
    );
    expect(await get()).toBe('ok');
  });

  it('reports a host that does not allow forwarding', async () => {
    const strict = await startSshd({ hostKeys: ['ed25519'], config: ['AllowTcpForwarding no'] });
    cleanups.push(strict.stop);
    const host = hostAt(strict, CLIENTS[0][1]);
    const failure = (async () => text((await host.dial?.({ host: '127.0.0.1', port: echo.port })) as NodeJS.ReadableStream))();
    await expect(failure).rejects.toMatchObject({ code: 'HOST_FORWARD_REFUSED', message: expect.stringContaining('AllowTcpForwarding') });
  });
});
