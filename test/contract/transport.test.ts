import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { Secret } from '../../src/base/text/secret.ts';
import { localTransport } from '../../src/host/adapters/transport-local.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { opensshTransport } from '../../src/ssh/adapters/transport-openssh.ts';
import { sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import { requirement } from '../support/requirement.ts';
import { startSshServer } from '../support/ssh-server.ts';
import { sshTargetFor } from '../support/ssh-target.ts';
import { sshdMissing, startSshd } from '../support/sshd.ts';
import { type TransportWorld, transportContract } from './transport.ts';

transportContract('local', async () => ({ open: () => localTransport(), stop: async () => undefined }));

async function sshdWorld(config: readonly string[]): Promise<TransportWorld> {
  const sshd = await startSshd({ config });
  const target = sshTargetFor({
    port: sshd.port,
    user: sshd.user,
    directory: sshd.directory,
    known: [sshd.hostKey('ed25519')],
    identityFiles: [sshd.identityFile],
  });
  return { open: () => sshTransport(target, { hostKeys: knownHostsStore() }), dropConnections: sshd.dropConnections, stop: sshd.stop };
}

/** The same server through the system's ssh. */
async function opensshWorld(config: readonly string[]): Promise<TransportWorld> {
  const sshd = await startSshd({ config });
  const target = sshTargetFor({
    port: sshd.port,
    user: sshd.user,
    directory: sshd.directory,
    known: [sshd.hostKey('ed25519')],
    identityFiles: [sshd.identityFile],
  });
  return { open: () => opensshTransport(target, { configFile: 'none' }), dropConnections: sshd.dropConnections, stop: sshd.stop };
}

if (sshdMissing === null) {
  transportContract("the system's ssh", () => opensshWorld([]));
  transportContract("the system's ssh with a noisy shell and few sessions", () =>
    opensshWorld([
      'MaxSessions 3',
      'ForceCommand echo "Welcome!"; echo "of the day" >&2; printf "no newline"; eval "$SSH_ORIGINAL_COMMAND"',
    ]),
  );
  transportContract('SSH to OpenSSH', () => sshdWorld([]));
  // One session at a time, and a profile that writes to both streams before each command.
  transportContract('SSH to OpenSSH with a noisy shell and few sessions', () =>
    sshdWorld(['MaxSessions 3', 'ForceCommand echo "Welcome!"; echo "of the day" >&2; printf "no newline"; eval "$SSH_ORIGINAL_COMMAND"']),
  );
} else {
  describe.skipIf(requirement('SSH to OpenSSH', sshdMissing))('transport SSH to OpenSSH', () => it('is not tested', () => undefined));
}

transportContract('SSH to a server in this process, by password, with a noisy login shell', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'kubeletadm-login-'));
  const shell = join(directory, 'login-shell');
  writeFileSync(shell, '#!/bin/sh\necho "motd"; echo "profile: warning" >&2\nexec /bin/sh -c "$1"\n');
  chmodSync(shell, 0o755);
  const server = await startSshServer({ loginShell: [shell] });
  const target = sshTargetFor({ port: server.port, directory, known: [server.hostKey] });
  return {
    open: () => sshTransport(target, { hostKeys: knownHostsStore(), password: new Secret('secret') }),
    dropConnections: server.dropConnections,
    stop: async () => {
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
});
