import { rm, writeFile } from 'node:fs/promises';
import { execa } from 'execa';
import { onAbort, untilAborted } from '../../../base/abort.ts';
import type { AppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { CONNECT_TIMEOUT_HINT, hostConnectionLost, hostTimeout, hostUnreachable } from '../../../host/host-problems.ts';
import { type OpensshLogin, opensshArguments, readOpensshFailure } from '../../openssh-arguments.ts';
import { addressOf, type SshTarget } from '../../target.ts';
import { startDeadline } from '../client/deadline.ts';
import type { HostConnection } from '../client/host-connection.ts';

/** A connection held by an ssh process; commands use its control socket. */
export interface Master extends HostConnection {
  readonly socket: string;
  onLost(listener: (error: AppError) => void): () => void;
}

const READY = 'kubeletadm: connected';
/** Maximum length of the stderr output that is kept for one login. */
const MAX_MESSAGE = 20_000;
const GRACE_MS = 2000;

/**
 * Logs in with the system's ssh and keeps the connection, in the foreground.
 * @param options.configFile replaces the configuration files of the user and the system
 * @param options.socket a new path for the control socket
 * @param options.via control socket of the connection to the jump host
 * @throws AppError HOST_UNREACHABLE, HOST_TIMEOUT, HOST_KEY_UNKNOWN, HOST_KEY_MISMATCH, HOST_KEY_REVOKED,
 *   HOST_AUTH_FAILED; the signal's reason
 */
export async function openMaster(
  target: SshTarget,
  { signal, ...login }: Pick<OpensshLogin, 'configFile' | 'socket' | 'via'> & { readonly signal: AbortSignal | undefined },
): Promise<Master> {
  signal?.throwIfAborted();
  const { name: host, connectTimeoutMs: timeoutMs, pinnedHostKeys } = target;
  const keysFile = `${login.socket}.keys`;
  if (pinnedHostKeys !== undefined)
    await writeFile(keysFile, pinnedHostKeys.map(({ type, blob }) => `* ${type} ${blob}\n`).join(''), { mode: 0o600, flag: 'wx' });
  const pinnedKeysFile = pinnedHostKeys === undefined ? undefined : keysFile;
  const args = opensshArguments(target, { ...login, localCommand: `echo ${READY}`, pinnedKeysFile });
  // A separate process group, because kubeletadm itself handles Ctrl-C of the terminal.
  const child = execa('ssh', args, { reject: false, buffer: false, stdin: 'ignore', detached: true, forceKillAfterDelay: GRACE_MS });
  let reported = '';
  child.stderr.on('data', (chunk: Buffer) => {
    reported = `${reported}${chunk.toString()}`.slice(-MAX_MESSAGE);
  });
  const kill = (): void => void child.kill('SIGTERM');
  const what = `${addressOf(target)}: ssh login not completed`;
  const deadline = startDeadline(timeoutMs, () => hostTimeout({ host, what, timeoutMs, hint: CONNECT_TIMEOUT_HINT }));
  const forget = onAbort(signal, deadline.abort);
  const ready = new Promise<void>((resolve) => {
    let received = '';
    child.stdout.on('data', (chunk: Buffer) => {
      received = `${received}${chunk.toString()}`.slice(-MAX_MESSAGE);
      if (received.includes(READY)) resolve();
    });
  });
  const failed = child.then(({ cause }) => Promise.reject(cannotConnect(target, reported, cause)));
  try {
    await untilAborted(Promise.race([ready, failed]), deadline.signal);
  } catch (error) {
    kill();
    await rm(keysFile, { force: true });
    throw error;
  } finally {
    deadline.stop();
    forget();
  }
  return establish(target, login.socket, { keysFile, ended: child, kill, reported: () => reported });
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

function establish(
  target: SshTarget,
  socket: string,
  ssh: { readonly keysFile: string; readonly ended: PromiseLike<unknown>; readonly kill: () => void; readonly reported: () => string },
): Master {
  const listeners = new Set<(error: AppError) => void>();
  let lost: AppError | null = null;
  let isEnding = false;
  const gone = ssh.ended.then(async () => {
    const last = printable(ssh.reported().trim().split('\n').at(-1) ?? '');
    lost = hostConnectionLost({ host: target.name, why: isEnding ? 'connection closed' : last || 'ssh exited' });
    for (const listener of listeners) listener(lost);
    listeners.clear();
    await rm(ssh.keysFile, { force: true });
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
      ssh.kill();
      await gone;
    },
  };
}
