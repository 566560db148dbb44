import { untilAborted } from '../../../base/abort.ts';
import { throughJumpHost } from '../../../host/host-problems.ts';
import { routeKey, type SshTarget } from '../../target.ts';
import type { HostConnection } from './host-connection.ts';

/** Logs in to a host or a jump host, through the connection to the jump host before it. */
type Login<C> = (target: SshTarget, via: C | null, signal: AbortSignal | undefined) => Promise<C>;

export type JumpHosts<C extends HostConnection> = ReturnType<typeof jumpHosts<C>>;

/**
 * Creates the process-wide connections to jump hosts: each is shared by all hosts behind it and closed with
 * the last of them.
 */
export function jumpHosts<C extends HostConnection>() {
  const jumps = new Map<string, { readonly opening: Promise<C>; readonly closing: AbortController; connection: C | null; users: number }>();

  /** A reference to the connection to the last of these hops. */
  const lease = (hops: readonly SshTarget[], login: Login<C>) => {
    const key = routeKey(hops);
    const present = jumps.get(key);
    const jump = present !== undefined && !present.connection?.lost ? present : open(key, hops, login);
    jump.users++;
    const release = (): void => {
      if (--jump.users > 0) return;
      if (jumps.get(key) === jump) jumps.delete(key);
      jump.closing.abort(new Error('the connection to this jump host is no longer needed'));
      void jump.opening.then(
        (connection) => connection.end(),
        () => undefined,
      );
    };
    return { opening: jump.opening, release };
  };

  const open = (key: string, hops: readonly SshTarget[], login: Login<C>) => {
    const closing = new AbortController();
    const last = { ...(hops.at(-1) as SshTarget), proxyJump: hops.slice(0, -1) };
    const opening = connect(last, login, closing.signal);
    const jump = { opening, closing, connection: null as C | null, users: 0 };
    jumps.set(key, jump);
    const forget = (): void => {
      if (jumps.get(key) === jump) jumps.delete(key);
    };
    opening.then((connection) => {
      jump.connection = connection;
      connection.onLost(forget);
    }, forget);
    return jump;
  };

  /** Connects to a host through its jump hosts, whose errors name the host. */
  const connect = async (target: SshTarget, login: Login<C>, signal?: AbortSignal): Promise<C> => {
    if (target.proxyJump.length === 0) return login(target, null, signal);
    const { opening, release } = lease(target.proxyJump, login);
    try {
      const via = await untilAborted(
        opening.catch((error: unknown) => Promise.reject(throughJumpHost(error, target.name))),
        signal,
      );
      const connection = await login(target, via, signal);
      connection.onLost(release);
      return connection;
    } catch (error) {
      release();
      throw error;
    }
  };

  return { connect };
}
