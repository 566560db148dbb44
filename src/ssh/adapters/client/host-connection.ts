import { setMaxListeners } from 'node:events';
import { untilAborted } from '../../../base/abort.ts';
import type { AppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { checkArgv } from '../../../host/argv.ts';
import { hostConnectionLost, hostUnreachable } from '../../../host/host-problems.ts';
import type { RunOptions, RunResult, Transport } from '../../../host/transport.ts';
import type { Dial } from '../../../kube/dial.ts';
import { reopened, sessions } from '../../sessions.ts';
import { addressOf, type SshTarget } from '../../target.ts';

/** A connection to a host, for any number of commands. */
export interface HostConnection {
  /** Why the connection is lost; null while it is usable. */
  readonly lost: AppError | null;
  /** Calls the listener once when the connection is lost or closed. Returns a function that removes the listener. */
  onLost(listener: () => void): () => void;
  /** Closes the connection. */
  end(): Promise<void>;
}

/** `refused`: the host opened no session; `gone`: the connection had ended. In both cases the command did not run. */
export type SessionOutcome =
  | { readonly kind: 'ended'; readonly result: RunResult }
  | { readonly kind: 'refused'; readonly cause: Error }
  | { readonly kind: 'gone' };

interface SshClient<C extends HostConnection> {
  /** Maximum number of concurrent commands on the connection; the host may allow fewer. */
  readonly maxSessions: number | undefined;
  open(signal: AbortSignal): Promise<C>;
  run(connection: C, argv: readonly [string, ...string[]], options: RunOptions): Promise<SessionOutcome>;
  dial(connection: C, ...target: Parameters<Dial>): ReturnType<Dial>;
}

/** OpenSSH's MaxSessions is 10, and stopping a command needs one. */
const DEFAULT_MAX_SESSIONS = 8;

/**
 * Runs the commands on one host. Connects with the first command and reconnects after the connection was lost; all commands
 * share one connection. The timeout of a command starts with the command; connecting has the target's `connectTimeoutMs`.
 */
export function transportOver<C extends HostConnection>(target: SshTarget, client: SshClient<C>): Transport {
  const places = sessions(client.maxSessions ?? DEFAULT_MAX_SESSIONS);
  const closing = new AbortController();
  const connections = reopened(() => client.open(closing.signal));
  let running = 0;

  const runInPlace = async (argv: readonly [string, ...string[]], options: RunOptions): Promise<RunResult> => {
    let mayReconnect = true;
    let mayRetry = true;
    for (;;) {
      const current = connections.get();
      const connection = await untilAborted(current, options.signal);
      await places.acquire(options.signal);
      try {
        closing.signal.throwIfAborted();
        const outcome: SessionOutcome = connection.lost === null ? await client.run(connection, argv, options) : { kind: 'gone' };
        if (outcome.kind === 'ended') return outcome.result;
        if (outcome.kind === 'refused') {
          if (places.shrink()) continue;
          // OpenSSH rejects a session requested while the previous one is closing, and accepts it shortly after.
          if (!mayRetry) throw noSession(target, outcome.cause);
          mayRetry = false;
        } else {
          // The connection was lost before the command ran, so one new connection is tried.
          connections.drop(current);
          if (!mayReconnect) throw connection.lost ?? lost(target, 'the connection was closed before the command started');
          mayReconnect = false;
        }
      } finally {
        places.release();
      }
    }
  };

  return {
    name: target.name,
    run: async (argv, options: RunOptions = {}) => {
      const checked = checkArgv(argv, target.name);
      options.signal?.throwIfAborted();
      // One signal stops commands on many hosts; more listeners than the default maximum are intended.
      if (options.signal) setMaxListeners(0, options.signal);
      if (closing.signal.aborted) throw lost(target, CLOSED.message);
      running++;
      try {
        return await runInPlace(checked, options);
      } finally {
        running--;
      }
    },
    dial: async (address, signal) => {
      if (closing.signal.aborted) throw lost(target, CLOSED.message);
      return client.dial(await untilAborted(connections.get(), signal), address, signal);
    },
    close: async () => {
      // Creating the error with its stack is skipped when no command is running, which is the usual case.
      closing.abort(running > 0 ? lost(target, CLOSED.message) : CLOSED);
      await connections.end();
    },
  };
}

const CLOSED = new Error('connection closed');

function lost({ name }: SshTarget, why: string): AppError {
  return hostConnectionLost({ host: name, why });
}

function noSession(target: SshTarget, cause: Error): AppError {
  const why = `the SSH server refused to open a session: ${printable(cause.message)}`;
  const hint = 'Check MaxSessions and ForceCommand in the sshd_config of the host, and the journal of the host';
  return hostUnreachable({ host: target.name, address: addressOf(target), why, hint, cause });
}
