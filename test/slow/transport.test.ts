import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'vitest';
import { Secret } from '../../src/base/text/secret.ts';
import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import { opensshWorld, sshdWorld } from '../contract/ssh-worlds.ts';
import { transportContract } from '../contract/transport.ts';
import { requirement } from '../support/requirement.ts';
import { startSshServer } from '../support/ssh-server.ts';
import { sshTargetFor } from '../support/ssh-target.ts';
import { sshdMissing } from '../support/sshd.ts';

/** Few sessions at a time, and a profile that writes to both streams before each command. */
const NOISY = ['MaxSessions 3', 'ForceCommand echo "Welcome!"; echo "of the day" >&2; printf "no newline"; eval "$SSH_ORIGINAL_COMMAND"'];

if (sshdMissing === null) {
  transportContract("the system's ssh with a noisy shell and few sessions", () => opensshWorld(NOISY));
  transportContract('SSH to OpenSSH with a noisy shell and few sessions', () => sshdWorld(NOISY));
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
