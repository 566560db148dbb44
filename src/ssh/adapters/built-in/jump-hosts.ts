import { untilAborted } from '../../../base/abort.ts';
import { throughJumpHost } from '../../../host/host-problems.ts';
import { routeKey, type SshTarget } from '../../target.ts';
import { type ConnectOptions, openConnection, type SshConnection } from './connection.ts';

/** A share in the connection to a jump host, which may still be in the making. */
export interface Lease {
  readonly connection: Promise<SshConnection>;
  /** Gives it back; the last one to do so ends the connection. */
  release(): void;
}

/** Connections to jump hosts, one each, however many hosts are behind it. */
export interface JumpHosts {
  /**
   * @param hops the nearest first; at least one
   * @param host the host behind: errors are told as its problems
   */
  lease(hops: readonly SshTarget[], options: ConnectOptions, host: string): Lease;
}

interface Entry {
  readonly opening: Promise<SshConnection>;
  /** Ends the attempt to connect. */
  readonly closing: AbortController;
  connection: SshConnection | null;
  users: number;
}

/** The connections to jump hosts of this process: one for all hosts behind it, closed with the last of them. */
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
      entry.closing.abort(new Error('nobody waits for this jump host any more'));
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
      // The password is for the host behind, not for those on the way.
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
