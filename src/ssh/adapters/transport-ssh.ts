import { setMaxListeners } from 'node:events';
import { untilAborted } from '../../base/abort.ts';
import { printable } from '../../base/text/printable.ts';
import type { Secret } from '../../base/text/secret.ts';
import { checkArgv } from '../../host/argv.ts';
import { hostConnectionLost, hostUnreachable } from '../../host/host-problems.ts';
import type { RunOptions, RunResult, Transport } from '../../host/transport.ts';
import { sessions } from '../sessions.ts';
import type { SshTarget } from '../target.ts';
import { type ConnectOptions, openConnection, type SshConnection } from './built-in/connection.ts';
import type { HostKeyPolicy } from './built-in/host-key-check.ts';
import { type AskPassphrase, type Identities, identities } from './built-in/identities.ts';
import { type JumpHosts, jumpHosts } from './built-in/jump-hosts.ts';
import { type RemoteRun, runRemote } from './built-in/remote-process.ts';
import { openChannel } from './built-in/stream.ts';

export interface SshTransportOptions extends HostKeyPolicy {
  /** What all hosts share; one for the process. Default: one of its own. */
  readonly shared?: SshShared;
  /** Of the user on the host, not of jump hosts. Tried after all keys. */
  readonly password?: Secret;
  readonly askPassphrase?: AskPassphrase;
  /** Commands at a time on the connection; the host may make it fewer. Default 8: OpenSSH's MaxSessions is 10, and stopping a command needs one. */
  readonly maxSessions?: number;
}

/** Private keys, agents and connections to jump hosts: read, asked for and made once for all hosts. */
export interface SshShared {
  readonly identities: Identities;
  readonly jumpHosts: JumpHosts;
}

/** Makes what the transports of a process share. */
export function sshShared(): SshShared {
  return { identities: identities(), jumpHosts: jumpHosts() };
}

const DEFAULT_MAX_SESSIONS = 8;

/**
 * Runs commands on a host over SSH. It connects at the first command and again after the connection was lost; all commands use the one
 * connection. The time-out of a command begins when it starts, that of connecting is the target's `connectTimeoutMs`.
 *
 * Output of the login shell (motd, profile) before the command is dropped; what a logout script would add can't come, as the shell is replaced.
 */
export function sshTransport(target: SshTarget, options: SshTransportOptions): Transport {
  const shared = options.shared ?? sshShared();
  const connectOptions: ConnectOptions = { ...options, identities: shared.identities };
  const places = sessions(options.maxSessions ?? DEFAULT_MAX_SESSIONS);
  let opening: Promise<SshConnection> | null = null;
  const closing = new AbortController();
  let running = 0;

  const connect = (): Promise<SshConnection> => {
    if (opening !== null) return opening;
    const mine = open(target, connectOptions, shared.jumpHosts, closing.signal);
    const forget = (): void => {
      if (opening === mine) opening = null;
    };
    opening = mine;
    mine.then((connection) => connection.onLost(forget), forget);
    return mine;
  };

  const runInPlace = async (run: RemoteRun): Promise<RunResult> => {
    const { signal } = run.options;
    let mayReconnect = true;
    for (;;) {
      const current = connect();
      const connection = await untilAborted(current, signal);
      await places.acquire(signal);
      try {
        closing.signal.throwIfAborted();
        // Lost while the command waited for its place: nothing ran yet, so a new connection will do, once.
        if (connection.lost !== null) {
          if (opening === current) opening = null;
          if (!mayReconnect) throw connection.lost;
          mayReconnect = false;
          continue;
        }
        const outcome = await runInSession(connection, run);
        if (outcome !== null) return outcome;
      } finally {
        places.release();
      }
    }
  };

  /** Null: the host opened no session, and there will be fewer commands at a time from now on. */
  const runInSession = async (connection: SshConnection, run: RemoteRun): Promise<RunResult | null> => {
    // OpenSSH refuses a session that is requested together with the close of the one before, and opens it a moment later.
    for (let attempt = 0; ; attempt++) {
      const outcome = await runRemote(connection, run);
      if (outcome.kind === 'ended') return outcome.result;
      if (places.shrink()) return null;
      if (attempt > 0) throw noSession(target, outcome.cause);
    }
  };

  return {
    name: target.name,
    run: async (argv, runOptions: RunOptions = {}) => {
      const checked = checkArgv(argv, target.name);
      runOptions.signal?.throwIfAborted();
      // One signal stops commands on many hosts, and that is no leak.
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
      return openChannel(target.name, await untilAborted(connect(), signal), address, signal);
    },
    close: async () => {
      // An error is made for those who hear of it: most transports are closed when all is done.
      closing.abort(running > 0 ? closed(target) : CLOSED);
      const connection = await opening?.catch(() => null);
      await connection?.end();
    },
  };
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
  return hostConnectionLost({ host: target.name, why: 'it was closed' });
}

function noSession(target: SshTarget, cause: Error): Error {
  const why = `the SSH server opens no session: ${printable(cause.message)}`;
  const hint = 'Check MaxSessions and ForceCommand in its sshd_config, and its journal';
  return hostUnreachable({ host: target.name, address: target.hostName, why, hint, cause });
}
