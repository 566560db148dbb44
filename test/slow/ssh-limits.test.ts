import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Transport } from '../../src/host/transport.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { type SshTransportOptions, sshShared, sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import type { SshTarget } from '../../src/ssh/target.ts';
import { requirement } from '../support/requirement.ts';
import { sshTargetFor, type TargetInput } from '../support/ssh-target.ts';
import { type Sshd, sshdMissing, startSshd } from '../support/sshd.ts';

// Hosts that limit logins or sessions: the built-in client waits and tries again, which takes seconds.
describe.skipIf(requirement('limits of OpenSSH', sshdMissing))('SSH to OpenSSH with limits', () => {
  const cleanups: (() => Promise<unknown>)[] = [];
  let directory: string;
  let sshd: Sshd;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'kubeletadm-ssh-limits-'));
    sshd = await startSshd();
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  afterAll(async () => {
    await sshd?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  let counter = 0;
  const target = (input: Partial<TargetInput> = {}): SshTarget =>
    sshTargetFor({
      name: `node-${++counter}`,
      port: sshd.port,
      user: sshd.user,
      directory,
      known: [sshd.hostKey('ed25519')],
      identityFiles: [sshd.identityFile],
      ...input,
    });
  const transportTo = (to: SshTarget, options: Partial<SshTransportOptions> = {}): Transport => {
    const transport = sshTransport(to, { hostKeys: knownHostsStore(), ...options });
    cleanups.push(() => transport.close());
    return transport;
  };
  const outputOf = async (transport: Transport, ...argv: string[]): Promise<string> =>
    Buffer.from((await transport.run(argv)).stdout).toString();

  it('waits when the host limits simultaneous logins', async () => {
    const busy = await startSshd({ config: ['MaxStartups 2:100:4'] });
    cleanups.push(busy.stop);
    const input = { port: busy.port, known: [busy.hostKey('ed25519')], identityFiles: [busy.identityFile], connectTimeoutMs: 30_000 };
    const outputs = await Promise.all(Array.from({ length: 16 }, (_, i) => outputOf(transportTo(target(input)), 'echo', String(i))));
    expect(outputs).toEqual(Array.from({ length: 16 }, (_, i) => `${i}\n`));
    expect(busy.log()).toMatch(/drop connection|beginning MaxStartups throttling/);
  });

  it('works with MaxSessions 1 of OpenSSH, which counts an ended session a moment longer', async () => {
    const strict = await startSshd({ config: ['MaxSessions 1'] });
    cleanups.push(strict.stop);
    const transport = transportTo(target({ port: strict.port, known: [strict.hostKey('ed25519')], identityFiles: [strict.identityFile] }));
    for (let i = 0; i < 16; i++) expect(await outputOf(transport, 'echo', String(i))).toBe(`${i}\n`);
    expect(await Promise.all([1, 2, 3].map((i) => outputOf(transport, 'echo', String(i))))).toEqual(['1\n', '2\n', '3\n']);
  });

  it("loses no host behind a jump host with sshd's default limits", async () => {
    const bastion = await startSshd();
    cleanups.push(bastion.stop);
    const hop = target({ port: bastion.port, known: [bastion.hostKey('ed25519')], identityFiles: [bastion.identityFile] });
    const shared = sshShared();
    const transports = Array.from({ length: 40 }, () => transportTo(target({ proxyJump: [hop], connectTimeoutMs: 30_000 }), { shared }));
    const outputs = await Promise.all(transports.map((transport, i) => outputOf(transport, 'echo', String(i))));
    expect(outputs).toEqual(Array.from({ length: 40 }, (_, i) => `${i}\n`));
    expect(bastion.log().match(/Accepted publickey/g)).toHaveLength(1);
  });
});
