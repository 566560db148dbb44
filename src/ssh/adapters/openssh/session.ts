import { spawn } from 'node:child_process';
import { Duplex } from 'node:stream';
import { execa } from 'execa';
import { onAbort } from '../../../base/abort.ts';
import { printable } from '../../../base/text/printable.ts';
import { hostCommandNotFound, hostConnectionLost, hostNoShell } from '../../../host/host-problems.ts';
import type { RunOptions } from '../../../host/transport.ts';
import type { Dial } from '../../../kube/dial.ts';
import { controlSocketArguments } from '../../openssh-arguments.ts';
import type { SshTarget } from '../../target.ts';
import { type CommandRun, commandRun } from '../client/command-run.ts';
import type { SessionOutcome } from '../client/host-connection.ts';
import type { Master } from './master.ts';

const KILL_TIMEOUT_MS = 2000;

/**
 * Runs one command through a control socket.
 * @throws AppError HOST_TIMEOUT, HOST_CONNECTION_LOST, HOST_OUTPUT_TOO_LARGE, HOST_COMMAND_NOT_FOUND; the
 *   signal's reason
 */
export async function runSession(
  master: Master,
  target: SshTarget,
  argv: readonly [string, ...string[]],
  options: RunOptions,
): Promise<SessionOutcome> {
  const run = commandRun(target.name, argv, { ...options, onLost: master.onLost, reportsExitCode: true });
  const child = execa('ssh', [...controlSocketArguments(master.socket), 'host', run.command], {
    reject: false,
    buffer: false,
    detached: true,
    input: run.stdin,
  });
  child.stdout.on('data', run.takeStdout);
  child.stderr.on('data', run.takeStderr);
  void child.then(run.end);
  try {
    const stopped = new Promise<never>((_, reject) => onAbort(run.stop, reject));
    const { exitCode } = await Promise.race([child, stopped]);
    run.stop.throwIfAborted();
    const outcome = readOutcome(target, argv[0], run, exitCode ?? null);
    // The loss is noticed here before the ssh process has ended: the next command must use a new connection.
    if (outcome.kind === 'gone' || outcome.kind === 'lost') await master.end();
    if (outcome.kind === 'lost') throw hostConnectionLost({ host: target.name, why: 'ssh exited without an exit status of the command' });
    return outcome;
  } catch (error) {
    if (run.stop.aborted) await stopSession(master, child, run);
    throw error;
  } finally {
    run.release();
  }
}

function readOutcome(
  { name: host, user }: SshTarget,
  command: string,
  { mark, stdout, stderr }: CommandRun,
  exitCode: number | null,
): SessionOutcome | { readonly kind: 'lost' } {
  if (stderr.note === 'missing') throw hostCommandNotFound({ host, command });
  if (stdout.note === null || stderr.note === null) {
    const reported = stderr.outputBeforeMarker();
    if (/session request failed|Session open refused|open failed/i.test(reported)) return { kind: 'refused', cause: new Error(reported) };
    if (exitCode === 255 && /control socket|mux_client|Connection (closed|reset)/i.test(reported)) return { kind: 'gone' };
    throw hostNoShell({ host, user, reported: printable(`${stdout.outputBeforeMarker()} ${reported}`) });
  }
  const content = stderr.content();
  const at = content.lastIndexOf(`\n${mark} end `);
  const end = at < 0 ? null : /^\n\S+ end (\d+)\n/.exec(content.toString('latin1', at));
  if (end === null) return { kind: 'lost' };
  return {
    kind: 'ended',
    result: { ...readCode(Number(end[1])), stdout: stdout.content(), stderr: content.subarray(0, at) },
  };
}

const SIGNALS: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  14: 'SIGALRM',
  15: 'SIGTERM',
};

/**
 * A shell adds 128 to the signal number; a program that exits with such a code itself cannot be
 * distinguished.
 */
function readCode(code: number): { readonly exitCode: number | null; readonly signal: string | null } {
  const signal = SIGNALS[code - 128];
  return signal === undefined ? { exitCode: code, signal: null } : { exitCode: null, signal };
}

/** Stops the remote command and the ssh process that waits for it. */
async function stopSession(
  master: Master,
  child: { kill(signal: NodeJS.Signals): boolean } & PromiseLike<unknown>,
  command: CommandRun,
): Promise<void> {
  const options = { reject: false, stdio: 'ignore', detached: true, timeout: KILL_TIMEOUT_MS } as const;
  if (master.lost === null)
    await command.kill(async (kill) => execa('ssh', [...controlSocketArguments(master.socket), 'host', kill], options));
  child.kill('SIGTERM');
}

/**
 * Opens a TCP connection from the host through a control socket: `ssh -W`, whose stdin and stdout are the
 * connection. A failure of the host to connect arrives with the first use, as the stream's error.
 */
export function dialThrough(master: Master, address: Parameters<Dial>[0], signal?: AbortSignal): Duplex {
  signal?.throwIfAborted();
  const to = `${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
  const child = spawn('ssh', [...controlSocketArguments(master.socket), '-W', to, 'host'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  let reported = '';
  let isReceived = false;
  child.stderr.on('data', (chunk: Buffer) => {
    reported = `${reported}${chunk.toString()}`.slice(-MAX_MESSAGE);
  });
  const stream = new Duplex({
    read: () => void child.stdout.resume(),
    write: (chunk: Buffer, _, done) => child.stdin.write(chunk, () => done()),
    final: (done) => child.stdin.end(() => done()),
    destroy: (error, done) => {
      child.kill('SIGTERM');
      done(error);
    },
  });
  child.stdout.on('data', (chunk: Buffer) => {
    isReceived = true;
    if (!stream.push(chunk)) child.stdout.pause();
  });
  // The destroyed stream reports the failure.
  child.stdin.on('error', () => undefined);
  const forget = onAbort(signal, (reason) => stream.destroy(reason instanceof Error ? reason : new Error('aborted')));
  child.once('error', (error) => stream.destroy(error));
  // The end of stdout alone does not show whether the connection was opened.
  child.once('close', (code) => {
    forget();
    if (!isReceived && code !== 0) stream.destroy(failure(reported));
    else stream.push(null);
  });
  return stream;
}

const MAX_MESSAGE = 2_000;

/** The control socket does not distinguish a refusal of the destination from one of the host. */
function failure(reported: string): Error {
  return Object.assign(new Error(printable(reported.trim().split('\n')[0] ?? '', 300) || 'ssh exited'), { code: 'ECONNREFUSED' });
}
