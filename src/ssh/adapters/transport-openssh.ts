import { setMaxListeners } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { untilAborted } from '../../base/abort.ts';
import { checkArgv } from '../../host/argv.ts';
import { hostConnectionLost, hostUnreachable, throughJumpHost } from '../../host/host-problems.ts';
import type { RunOptions, Transport } from '../../host/transport.ts';
import { reopened, sessions } from '../sessions.ts';
import { routeKey, type SshTarget } from '../target.ts';
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
  readonly jumps: Map<string, Jump>;
}

interface Jump {
  readonly opening: Promise<Master>;
  readonly closing: AbortController;
  users: number;
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
    jumps: new Map(),
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

const DEFAULT_MAX_SESSIONS = 8;

/**
 * Runs commands on a host with the system's `ssh`, for features that the built-in client lacks: certificates,
 * hardware keys, Kerberos, newer key exchanges, ProxyCommand. One connection, and a short-lived process for
 * each command. Never prompts: passwords and passphrases must be in the agent.
 *
 * `ssh` does not report signals: an exit code above 128 that matches a signal is reported as that signal.
 */
export function opensshTransport(target: SshTarget, options: OpensshTransportOptions = {}): Transport {
  const { shared = opensshShared(), configFile, maxSessions = DEFAULT_MAX_SESSIONS } = options;
  const places = sessions(maxSessions);
  const closing = new AbortController();
  const masters = reopened(() => open(target, shared, configFile, closing.signal));
  return {
    name: target.name,
    run: async (argv, runOptions: RunOptions = {}) => {
      const checked = checkArgv(argv, target.name);
      runOptions.signal?.throwIfAborted();
      // One signal stops commands on many hosts; more listeners than the default maximum are intended.
      if (runOptions.signal) setMaxListeners(0, runOptions.signal);
      let mayReconnect = true;
      for (;;) {
        closing.signal.throwIfAborted();
        const master = await untilAborted(masters.get(), runOptions.signal);
        await places.acquire(runOptions.signal);
        try {
          closing.signal.throwIfAborted();
          const outcome = master.lost === null ? await runSession(master, target, checked, runOptions) : LOST;
          if (outcome.kind === 'ended') return outcome.result;
          if (outcome.kind === 'refused') {
            if (!places.shrink()) throw noSession(target, outcome.why);
            continue;
          }
          // Lost before the command ran: one retry with a new connection.
          if (!mayReconnect)
            throw master.lost ?? hostConnectionLost({ host: target.name, why: 'the connection was closed before the command started' });
          mayReconnect = false;
        } finally {
          places.release();
        }
      }
    },
    dial: async (address, signal) => {
      closing.signal.throwIfAborted();
      return dialThrough(await untilAborted(masters.get(), signal), address, signal);
    },
    close: async () => {
      closing.abort(hostConnectionLost({ host: target.name, why: 'connection closed' }));
      await masters.end();
    },
  };
}

const LOST = { kind: 'gone' } as const;

async function open(target: SshTarget, shared: OpensshShared, configFile: string | undefined, signal: AbortSignal): Promise<Master> {
  const options = { configFile, signal };
  if (target.proxyJump.length === 0) return openMaster(target, { ...options, socket: shared.newSocketPath(), via: null });
  const jump = lease(target.proxyJump, shared, configFile);
  try {
    const via = await untilAborted(jump.opening, signal).catch((error: unknown) => {
      throw throughJumpHost(error, target.name);
    });
    const master = await openMaster(target, { ...options, socket: shared.newSocketPath(), via: via.socket });
    master.onLost(() => release(jump, target.proxyJump, shared));
    return master;
  } catch (error) {
    release(jump, target.proxyJump, shared);
    throw error;
  }
}

function lease(hops: readonly SshTarget[], shared: OpensshShared, configFile: string | undefined): Jump {
  const key = routeKey(hops);
  const present = shared.jumps.get(key);
  if (present !== undefined) {
    present.users++;
    return present;
  }
  const closing = new AbortController();
  const last = hops.at(-1) as SshTarget;
  const opening = open({ ...last, proxyJump: hops.slice(0, -1) }, shared, configFile, closing.signal);
  const jump: Jump = { opening, closing, users: 1 };
  shared.jumps.set(key, jump);
  const forget = (): void => {
    if (shared.jumps.get(key) === jump) shared.jumps.delete(key);
  };
  opening.then((master) => master.onLost(forget), forget);
  return jump;
}

/** The last release closes the connection. */
function release(jump: Jump, hops: readonly SshTarget[], shared: OpensshShared): void {
  if (--jump.users > 0) return;
  const key = routeKey(hops);
  if (shared.jumps.get(key) === jump) shared.jumps.delete(key);
  jump.closing.abort(new Error('the connection to this jump host is no longer needed'));
  void jump.opening.then(
    (master) => master.end(),
    () => undefined,
  );
}

function noSession(target: SshTarget, why: string): Error {
  const hint = 'Check MaxSessions and ForceCommand in the sshd_config of the host, and the journal of the host';
  return hostUnreachable({
    host: target.name,
    address: `${target.hostName}:${target.port}`,
    why: `the SSH server refused to open a session: ${why}`,
    hint,
  });
}
