import { setMaxListeners } from 'node:events';
import { untilAborted } from '../../base/abort.ts';
import { printable } from '../../base/text/printable.ts';
import type { Secret } from '../../base/text/secret.ts';
import { checkArgv } from '../../host/argv.ts';
import { hostConnectionLost, hostUnreachable } from '../../host/host-problems.ts';
import type { RunOptions, RunResult, Transport } from '../../host/transport.ts';
import { reopened, sessions } from '../sessions.ts';
import type { SshTarget } from '../target.ts';
import { type ConnectOptions, openConnection, type SshConnection } from './built-in/connection.ts';
import type { HostKeyPolicy } from './built-in/host-key-check.ts';
import { type AskPassphrase, identities } from './built-in/identities.ts';
import { type JumpHosts, jumpHosts } from './built-in/jump-hosts.ts';
import { type RemoteRun, runRemote } from './built-in/remote-process.ts';
import { openChannel } from './built-in/stream.ts';

export interface SshTransportOptions extends HostKeyPolicy {
  /** State shared by all hosts of the process. Default: a separate one. */
  readonly shared?: ReturnType<typeof sshShared>;
  /** Password of the user on the destination host, not on jump hosts. Tried after all keys. */
  readonly password?: Secret | undefined;
  readonly askPassphrase?: AskPassphrase | undefined;
  /**
   * Maximum number of concurrent commands on the connection; the host may allow fewer. Default 8: OpenSSH's
   * MaxSessions is 10, and stopping a command needs one.
   */
  readonly maxSessions?: number;
}

/** Private keys, agents and connections to jump hosts of a process: read, requested and opened once for all hosts. */
export function sshShared() {
  return { identities: identities(), jumpHosts: jumpHosts() };
}

const DEFAULT_MAX_SESSIONS = 8;

/**
 * Runs commands on a host over SSH. Connects with the first command and reconnects after the connection was
 * lost; all commands share one connection. The timeout of a command starts with the command; connecting has
 * the target's `connectTimeoutMs`.
 *
 * Output of the login shell (motd, profile) before the command is dropped; a logout script does not run,
 * because the command replaces the shell.
 */
export function sshTransport(target: SshTarget, options: SshTransportOptions): Transport {
  const shared = options.shared ?? sshShared();
  const connectOptions: ConnectOptions = { ...options, identities: shared.identities };
  const places = sessions(options.maxSessions ?? DEFAULT_MAX_SESSIONS);
  const closing = new AbortController();
  const connections = reopened(() => open(target, connectOptions, shared.jumpHosts, closing.signal));
  let running = 0;

  const runInPlace = async (run: RemoteRun): Promise<RunResult> => {
    const { signal } = run.options;
    let mayReconnect = true;
    for (;;) {
      const current = connections.get();
      const connection = await untilAborted(current, signal);
      await places.acquire(signal);
      try {
        closing.signal.throwIfAborted();
        // The connection was lost while the command was queued: the command did not run, so one new
        // connection is tried.
        if (connection.lost !== null) {
          connections.drop(current);
          if (!mayReconnect) throw connection.lost;
          mayReconnect = false;
          continue;
        }
        const outcome = await runInSession(connection, run, places);
        if (outcome !== null) return outcome;
      } finally {
        places.release();
      }
    }
  };

  return {
    name: target.name,
    run: async (argv, runOptions: RunOptions = {}) => {
      const checked = checkArgv(argv, target.name);
      runOptions.signal?.throwIfAborted();
      // One signal stops commands on many hosts; more listeners than the default maximum are intended.
      if (runOptions.signal) setMaxListeners(0, runOptions.signal);
      if (closing.signal.aborted) throw closed(target);
      running++;
      try {
        return await runInPlace({ target, argv: checked, options: runOptions });
      } finally {
        running--;
      }
    },
    dial: async (address, signal) => {
      if (closing.signal.aborted) throw closed(target);
      return openChannel(target.name, await untilAborted(connections.get(), signal), address, signal);
    },
    close: async () => {
      // Creating the error with its stack is skipped when no command is running, which is the usual case.
      closing.abort(running > 0 ? closed(target) : CLOSED);
      await connections.end();
    },
  };
}

/** Null: the host opened no session, and the limit of concurrent commands was reduced. */
async function runInSession(connection: SshConnection, run: RemoteRun, places: ReturnType<typeof sessions>): Promise<RunResult | null> {
  // OpenSSH rejects a session requested while the previous one is closing, and accepts it shortly after.
  for (let attempt = 0; ; attempt++) {
    const outcome = await runRemote(connection, run);
    if (outcome.kind === 'ended') return outcome.result;
    if (places.shrink()) return null;
    if (attempt > 0) throw noSession(run.target, outcome.cause);
  }
}

async function open(target: SshTarget, options: ConnectOptions, jumps: JumpHosts, signal: AbortSignal): Promise<SshConnection> {
  if (target.proxyJump.length === 0) return openConnection(target, options, { signal });
  const lease = jumps.lease(target.proxyJump, options, target.name);
  try {
    const via = await untilAborted(lease.connection, signal);
    const connection = await openConnection(target, options, { via, signal });
    connection.onLost(lease.release);
    return connection;
  } catch (error) {
    lease.release();
    throw error;
  }
}

const CLOSED = new Error('closed');

function closed(target: SshTarget): Error {
  return hostConnectionLost({ host: target.name, why: 'connection closed' });
}

function noSession(target: SshTarget, cause: Error): Error {
  const why = `the SSH server refused to open a session: ${printable(cause.message)}`;
  const hint = 'Check MaxSessions and ForceCommand in the sshd_config of the host, and the journal of the host';
  return hostUnreachable({ host: target.name, address: target.hostName, why, hint, cause });
}
