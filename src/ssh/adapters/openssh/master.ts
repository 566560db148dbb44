import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { onAbort } from '../../../base/abort.ts';
import type { AppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { CONNECT_TIMEOUT_HINT, hostConnectionLost, hostTimeout, hostUnreachable } from '../../../host/host-problems.ts';
import { opensshArguments, readOpensshFailure } from '../../openssh-arguments.ts';
import type { SshTarget } from '../../target.ts';

/** A connection held by an ssh process; commands use its control socket. */
export interface Master {
  readonly socket: string;
  /** Why the connection is lost; null while it is usable. */
  readonly lost: AppError | null;
  /**
   * Calls the listener once when the connection is lost or closed. Returns a function that removes the
   * listener.
   */
  onLost(listener: (error: AppError) => void): () => void;
  /** Closes the connection; resolves when the process has exited. */
  end(): Promise<void>;
}

const READY = 'kubeletadm: connected';
/** Maximum length of the stderr output that is kept for one login. */
const MAX_MESSAGE = 20_000;
const GRACE_MS = 2000;

/**
 * Logs in with the system's ssh and keeps the connection, in the foreground.
 * @param options.configFile replaces the configuration files of the user and the system
 * @param options.directory for control sockets; its path is short
 * @param options.id unique in the directory
 * @param options.via control socket of the connection to the jump host
 * @throws AppError HOST_UNREACHABLE, HOST_TIMEOUT, HOST_KEY_UNKNOWN, HOST_KEY_MISMATCH, HOST_KEY_REVOKED,
 *   HOST_AUTH_FAILED; the signal's reason
 */
export async function openMaster(
  target: SshTarget,
  options: {
    readonly configFile?: string | undefined;
    readonly directory: string;
    readonly id: string;
    readonly via: string | null;
    readonly signal: AbortSignal;
  },
): Promise<Master> {
  const { directory, id, via, configFile, signal } = options;
  signal.throwIfAborted();
  const socket = join(directory, id);
  const keysFile = `${socket}.keys`;
  if (target.pinnedHostKeys !== undefined)
    await writeFile(keysFile, target.pinnedHostKeys.map(({ type, blob }) => `* ${type} ${blob}\n`).join(''), { mode: 0o600, flag: 'wx' });
  const args = opensshArguments(target, {
    socket,
    via,
    localCommand: `echo ${READY}`,
    configFile,
    pinnedKeysFile: target.pinnedHostKeys === undefined ? undefined : keysFile,
  });
  // A separate process group, because kubeletadm itself handles Ctrl-C of the terminal.
  const child = execa('ssh', args, { reject: false, buffer: false, stdin: 'ignore', detached: true, forceKillAfterDelay: GRACE_MS });
  let reported = '';
  child.stderr.on('data', (chunk: Buffer) => {
    reported = `${reported}${chunk.toString()}`.slice(-MAX_MESSAGE);
  });
  const ended = child.then((result) => result);
  const kill = (): void => void child.kill('SIGTERM');
  let forget = (): void => undefined;
  let timer: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      forget = onAbort(signal, reject);
      const { connectTimeoutMs: timeoutMs } = target;
      timer = setTimeout(
        () =>
          reject(
            hostTimeout({
              host: target.name,
              what: `${addressOf(target)}: ssh login not completed`,
              timeoutMs,
              hint: CONNECT_TIMEOUT_HINT,
            }),
          ),
        timeoutMs,
      );
      let received = '';
      child.stdout.on('data', (chunk: Buffer) => {
        received = `${received}${chunk.toString()}`.slice(-MAX_MESSAGE);
        if (received.includes(READY)) resolve();
      });
      void ended.then((result) => reject(cannotConnect(target, reported, result.cause)));
    });
  } catch (error) {
    kill();
    await rm(keysFile, { force: true });
    throw error;
  } finally {
    clearTimeout(timer);
    forget();
  }
  return establish(target, { socket, keysFile, ended, kill, reported: () => reported });
}

function cannotConnect(target: SshTarget, reported: string, cause: unknown): AppError {
  if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')
    return hostUnreachable({
      host: target.name,
      address: addressOf(target),
      why: 'ssh is not installed on the local host',
      hint: 'Install the OpenSSH client',
      cause,
    });
  return readOpensshFailure(target, reported);
}

function addressOf({ hostName, port }: SshTarget): string {
  return hostName.includes(':') ? `[${hostName}]:${port}` : `${hostName}:${port}`;
}

interface Established {
  readonly socket: string;
  readonly keysFile: string;
  readonly ended: Promise<unknown>;
  readonly kill: () => void;
  readonly reported: () => string;
}

function establish(target: SshTarget, { socket, keysFile, ended, kill, reported }: Established): Master {
  const listeners = new Set<(error: AppError) => void>();
  let lost: AppError | null = null;
  let isEnding = false;
  const gone = ended.then(async () => {
    const last = printable(reported().trim().split('\n').at(-1) ?? '');
    lost = hostConnectionLost({ host: target.name, why: isEnding ? 'connection closed' : last || 'ssh exited' });
    for (const listener of listeners) listener(lost);
    listeners.clear();
    await rm(keysFile, { force: true });
  });
  return {
    socket,
    get lost() {
      return lost;
    },
    onLost: (listener) => {
      if (lost !== null) listener(lost);
      else listeners.add(listener);
      return () => listeners.delete(listener);
    },
    end: async () => {
      if (lost === null) isEnding = true;
      kill();
      await gone;
    },
  };
}
