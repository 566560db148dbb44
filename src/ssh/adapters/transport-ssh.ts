import type { Secret } from '../../base/text/secret.ts';
import type { Transport } from '../../host/transport.ts';
import type { SshTarget } from '../target.ts';
import { openConnection, type SshConnection } from './built-in/connection.ts';
import type { HostKeyPolicy } from './built-in/host-key-check.ts';
import { type AskPassphrase, identities } from './built-in/identities.ts';
import { runRemote } from './built-in/remote-process.ts';
import { openChannel } from './built-in/stream.ts';
import { transportOver } from './client/host-connection.ts';
import { jumpHosts } from './client/jump-hosts.ts';

export interface SshTransportOptions extends HostKeyPolicy {
  /** State shared by all hosts of the process. Default: a separate one. */
  readonly shared?: ReturnType<typeof sshShared>;
  /** Password of the user on the destination host, not on jump hosts. Tried after all keys. */
  readonly password?: Secret | undefined;
  readonly askPassphrase?: AskPassphrase | undefined;
  /** Maximum number of concurrent commands on the connection; the host may allow fewer. Default 8. */
  readonly maxSessions?: number;
}

/** Private keys, agents and connections to jump hosts of a process: read, requested and opened once for all hosts. */
export function sshShared() {
  return { identities: identities(), jumps: jumpHosts<SshConnection>() };
}

/**
 * Runs commands on a host over SSH with the built-in client.
 *
 * Output of the login shell (motd, profile) before the command is dropped; a logout script does not run,
 * because the command replaces the shell.
 */
export function sshTransport(target: SshTarget, options: SshTransportOptions): Transport {
  const { identities, jumps } = options.shared ?? sshShared();
  const login = (hop: SshTarget, via: SshConnection | null, signal: AbortSignal | undefined): Promise<SshConnection> =>
    openConnection(hop, { ...options, identities, password: hop === target ? options.password : undefined }, { via, signal });
  return transportOver(target, {
    maxSessions: options.maxSessions,
    open: (signal) => jumps.connect(target, login, signal),
    run: (connection, argv, runOptions) => runRemote(connection, { target, argv, options: runOptions }),
    dial: (connection, address, signal) => openChannel(target.name, connection, address, signal),
  });
}
