import { untilAborted } from '../../../base/abort.ts';
import { throughJumpHost } from '../../../host/host-problems.ts';
import { routeKey, type SshTarget } from '../../target.ts';
import { type ConnectOptions, openConnection, type SshConnection } from './connection.ts';

/** A reference to the connection to a jump host, which may still be opening. */
interface Lease {
  readonly connection: Promise<SshConnection>;
  /** Releases the reference; the last release closes the connection. */
  release(): void;
}

/** Connections to jump hosts, one each for any number of hosts behind it. */
export interface JumpHosts {
  /**
   * @param hops at least one, the nearest first
   * @param host the destination host: errors name it
   */
  lease(hops: readonly SshTarget[], options: ConnectOptions, host: string): Lease;
}

interface Entry {
  readonly opening: Promise<SshConnection>;
  readonly closing: AbortController;
  connection: SshConnection | null;
  users: number;
}

/**
 * Creates the process-wide connections to jump hosts: each is shared by all hosts behind it and closed with
 * the last of them.
 */
export function jumpHosts(): JumpHosts {
  const entries = new Map<string, Entry>();

  const acquire = (hops: readonly SshTarget[], options: ConnectOptions): Lease => {
    const key = routeKey(hops);
    const present = entries.get(key);
    const entry = present !== undefined && !present.connection?.lost ? present : connect(hops, options);
    entries.set(key, entry);
    entry.users++;
    const forget = (): void => {
      if (entries.get(key) === entry) entries.delete(key);
    };
    entry.opening.catch(forget);
    const release = once(() => {
      if (--entry.users > 0) return;
      forget();
      entry.closing.abort(new Error('the connection to this jump host is no longer needed'));
      void entry.connection?.end();
    });
    return { connection: entry.opening, release };
  };

  const connect = (hops: readonly SshTarget[], options: ConnectOptions): Entry => {
    const before = hops.length === 1 ? null : acquire(hops.slice(0, -1), options);
    const closing = new AbortController();
    const open = async (): Promise<SshConnection> => {
      try {
        const via = before === null ? null : await untilAborted(before.connection, closing.signal);
        const connection = await openConnection(hops.at(-1) as SshTarget, options, { via, signal: closing.signal });
        connection.onLost(() => before?.release());
        entry.connection = connection;
        return connection;
      } catch (error) {
        before?.release();
        throw error;
      }
    };
    const entry: Entry = { opening: open(), closing, connection: null, users: 0 };
    return entry;
  };

  return {
    lease: (hops, options, host) => {
      // The password is for the destination host, not for jump hosts.
      const { connection, release } = acquire(hops, { ...options, password: undefined });
      return { connection: connection.catch((error: unknown) => Promise.reject(throughJumpHost(error, host))), release };
    },
  };
}

function once(action: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    action();
  };
}
