import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Transport } from '../../host/transport.ts';
import type { SshTarget } from '../target.ts';
import { transportOver } from './client/host-connection.ts';
import { type JumpHosts, jumpHosts } from './client/jump-hosts.ts';
import { type Master, openMaster } from './openssh/master.ts';
import { dialThrough, runSession } from './openssh/session.ts';

export interface OpensshTransportOptions {
  /** Replaces ~/.ssh/config and /etc/ssh/ssh_config. */
  readonly configFile?: string | undefined;
  /** State shared by all hosts of the process. Default: a separate one. */
  readonly shared?: OpensshShared;
  /** Maximum number of concurrent commands on the connection; the host may allow fewer. Default 8. */
  readonly maxSessions?: number;
}

/** Connections of the system's ssh to jump hosts, one each, and the directory of all control sockets. */
interface OpensshShared {
  newSocketPath(): string;
  readonly jumps: JumpHosts<Master>;
}

/**
 * Creates the state shared by all transports of a process.
 * @param runtimeDirectory the user's runtime directory; a directory for sockets is created in it and removed
 *   at exit. Default: the directory for temporary files
 */
export function opensshShared(runtimeDirectory?: string): OpensshShared {
  let directory: string | null = null;
  let count = 0;
  return {
    jumps: jumpHosts(),
    newSocketPath: () => {
      if (directory === null) {
        // Socket paths are limited to 108 bytes, including the temporary suffix that ssh adds.
        directory = mkdtempSync(join(runtimeDirectory || tmpdir(), 'kubeletadm-'));
        made.push(directory);
        if (made.length === 1) process.once('exit', removeMade);
      }
      return join(directory, `c${++count}`);
    },
  };
}

const made: string[] = [];

function removeMade(): void {
  for (const directory of made) rmSync(directory, { recursive: true, force: true });
}

/**
 * Runs commands on a host with the system's `ssh`, for features that the built-in client lacks: certificates,
 * hardware keys, Kerberos, newer key exchanges, ProxyCommand. One connection, and a short-lived process for
 * each command. Never prompts: passwords and passphrases must be in the agent.
 *
 * `ssh` does not report signals: an exit code above 128 that matches a signal is reported as that signal.
 */
export function opensshTransport(target: SshTarget, options: OpensshTransportOptions = {}): Transport {
  const { shared = opensshShared(), configFile, maxSessions } = options;
  const login = (hop: SshTarget, via: Master | null, signal: AbortSignal | undefined): Promise<Master> =>
    openMaster(hop, { configFile, signal, socket: shared.newSocketPath(), via: via?.socket ?? null });
  return transportOver(target, {
    maxSessions,
    open: (signal) => shared.jumps.connect(target, login, signal),
    run: (master, argv, runOptions) => runSession(master, target, argv, runOptions),
    dial: async (master, address, signal) => dialThrough(master, address, signal),
  });
}
