import { knownHostsStore } from '../../src/ssh/adapters/known-hosts.ts';
import { opensshTransport } from '../../src/ssh/adapters/transport-openssh.ts';
import { sshTransport } from '../../src/ssh/adapters/transport-ssh.ts';
import { sshTargetFor } from '../support/ssh-target.ts';
import { startSshd } from '../support/sshd.ts';
import type { TransportWorld } from './transport.ts';

/**
 * The built-in client with a server of OpenSSH.
 * @param config lines of its sshd_config
 */
export async function sshdWorld(config: readonly string[]): Promise<TransportWorld> {
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

/** The system's ssh with a server of OpenSSH. */
export async function opensshWorld(config: readonly string[]): Promise<TransportWorld> {
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
