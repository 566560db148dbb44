import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { NodeSSH } from 'node-ssh';
import type ssh2 from 'ssh2';
import { onAbort, untilAborted } from '../../../base/abort.ts';
import type { AppError } from '../../../base/errors.ts';
import { printable } from '../../../base/text/printable.ts';
import { hostCommandNotFound, hostConnectionLost, hostNoShell, hostOutputTooLarge, hostTimeout } from '../../../host/host-problems.ts';
import type { RunOptions, RunResult } from '../../../host/transport.ts';
import { type MarkedOutput, markedOutput } from '../../marked-output.ts';
import { renderKillCommand, renderRemoteCommand } from '../../remote-command.ts';
import type { SshTarget } from '../../target.ts';
import type { SshConnection } from './connection.ts';

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
/** For learning the process id of a command, and again for killing it. */
const STOP_TIMEOUT_MS = 1000;

export interface RemoteRun {
  readonly target: SshTarget;
  /** Already checked. */
  readonly argv: readonly [string, ...string[]];
  readonly options: RunOptions;
}

/** `refused`: the host opened no session for the command, and nothing ran. */
export type RemoteOutcome = { readonly kind: 'ended'; readonly result: RunResult } | { readonly kind: 'refused'; readonly cause: Error };

/**
 * Runs one command in a session of its own.
 * @throws AppError HOST_TIMEOUT, HOST_CONNECTION_LOST, HOST_OUTPUT_TOO_LARGE, HOST_COMMAND_NOT_FOUND; the signal's reason
 */
export async function runRemote(connection: SshConnection, run: RemoteRun): Promise<RemoteOutcome> {
  const { target, argv, options } = run;
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const host = target.name;
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(hostTimeout({ host, what: `${argv[0]} did not end`, timeoutMs })), timeoutMs);
  const removeSignalListener = onAbort(options.signal, (reason) => stop.abort(reason));
  const removeLossListener = connection.onLost((why) => stop.abort(why()));
  const remote = startRemote(connection, run, stop);
  try {
    const channel = await untilAborted(remote.opened, stop.signal);
    if (channel instanceof Error) {
      if (connection.lost !== null) throw connection.lost;
      return { kind: 'refused', cause: channel };
    }
    const exit = await untilAborted(remote.ended, stop.signal);
    return { kind: 'ended', result: readResult(remote, exit, run) };
  } catch (error) {
    if (stop.signal.aborted) await stopRemote(connection, remote);
    throw error;
  } finally {
    clearTimeout(timer);
    removeSignalListener();
    removeLossListener();
  }
}

interface RemoteProcess extends Session {
  /** Resolves as soon as the program runs; with null when it ended before. */
  readonly processId: Promise<string | null>;
  readonly stdout: MarkedOutput;
  readonly stderr: MarkedOutput;
}

function startRemote({ ssh }: SshConnection, { target, argv, options }: RemoteRun, stop: AbortController): RemoteProcess {
  const { maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES } = options;
  const mark = `kubeletadm-${randomUUID()}`;
  const { command, stdinPrefix } = renderRemoteCommand(argv, mark);
  const stdout = markedOutput(mark);
  const stderr = markedOutput(mark);
  let resolveProcessId: (id: string | null) => void = () => undefined;
  const processId = new Promise<string | null>((resolve) => {
    resolveProcessId = resolve;
  });
  const take = (stream: 'stdout' | 'stderr', output: MarkedOutput, listener?: (chunk: Uint8Array) => void) => (chunk: Buffer) => {
    // A command that is stopped right after its start still has to report its process id.
    if (stop.signal.aborted && output.note !== null) return;
    try {
      const content = output.push(chunk);
      if (output.size > maxOutputBytes) stop.abort(hostOutputTooLarge({ host: target.name, command: argv[0], stream, maxOutputBytes }));
      else if (content.length > 0 && !stop.signal.aborted) listener?.(content);
    } catch (error) {
      stop.abort(error);
    }
    if (stderr.note !== null) resolveProcessId(stderr.note);
  };
  const session = startSession(ssh, {
    command,
    stdin: `${stdinPrefix}${options.stdin ?? ''}`,
    onStdout: take('stdout', stdout, options.onStdout),
    onStderr: take('stderr', stderr),
  });
  void session.ended.then(() => resolveProcessId(null));
  return { ...session, processId, stdout, stderr };
}

interface SessionInput {
  readonly command: string;
  readonly stdin: string;
  readonly onStdout?: (chunk: Buffer) => void;
  readonly onStderr?: (chunk: Buffer) => void;
}

interface Session {
  /** An Error: the host opened no session, for this reason. */
  readonly opened: Promise<ssh2.ClientChannel | Error>;
  /** What the server reported of the end; null when it reported nothing. */
  readonly ended: Promise<Exit | null>;
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

/**
 * Starts a command in a new session. Never throws: a connection that just ended is an outcome like others.
 *
 * The end of standard input is sent as EOF, and the stream that node-ssh pipes into the channel stays open: ssh2 closes a channel as soon as both of its
 * directions have ended, and to a closed channel some servers send no exit status.
 */
function startSession(ssh: NodeSSH, { command, stdin, ...listeners }: SessionInput): Session {
  let resolveOpened: (channel: ssh2.ClientChannel | Error) => void = () => undefined;
  const opened = new Promise<ssh2.ClientChannel | Error>((resolve) => {
    resolveOpened = resolve;
  });
  let stderrClosed: Promise<unknown> = Promise.resolve();
  const onChannel = (channel: ssh2.ClientChannel): void => {
    // Standard input that the program did not read is no failure.
    channel.on('error', () => undefined);
    channel.stderr.on('error', () => undefined);
    stderrClosed = new Promise((resolve) => channel.stderr.once('close', resolve));
    channel.write(stdin, () => channel.eof());
    resolveOpened(channel);
  };
  const open = new Readable({ read: () => undefined });
  const ended = ssh.execCommand(command, { ...listeners, onChannel, stdin: open, noTrim: true }).then(
    async ({ code, signal }) => {
      // The exit status and the end of stdout may come before the last of stderr.
      await stderrClosed;
      return code === null && signal === null ? null : { code, signal };
    },
    (error: unknown) => {
      resolveOpened(error instanceof Error ? error : new Error(String(error)));
      return null;
    },
  );
  return { opened, ended };
}

function readResult({ stdout, stderr }: RemoteProcess, exit: Exit | null, { target, argv }: RemoteRun): RunResult {
  const failure = readFailure({ target, command: argv[0], exit, stdout, stderr });
  if (failure !== null) throw failure;
  return { exitCode: exit?.code ?? null, signal: exit?.signal ?? null, stdout: stdout.content(), stderr: stderr.content() };
}

interface Ending {
  readonly target: SshTarget;
  readonly command: string;
  readonly exit: Exit | null;
  readonly stdout: MarkedOutput;
  readonly stderr: MarkedOutput;
}

function readFailure({ target: { name: host, user }, command, exit, stdout, stderr }: Ending): AppError | null {
  if (stderr.note === 'missing') return hostCommandNotFound({ host, command });
  if (exit === null) return hostConnectionLost({ host, why: `${command} ended without an exit status` });
  if (stdout.note !== null) return null;
  return hostNoShell({ host, user, reported: printable(`${stdout.noise()} ${stderr.noise()}`) });
}

/**
 * Stops a command whose result is not needed any more: closing its channel alone would leave it running. Bounded, and silent about failures: the
 * command may have ended, or this user may not be allowed to stop it.
 */
async function stopRemote(connection: SshConnection, { opened, processId }: RemoteProcess): Promise<void> {
  if (connection.lost !== null) return;
  const id = await within(STOP_TIMEOUT_MS, processId);
  void opened.then((channel) => channel instanceof Error || discardOutput(channel));
  if (id !== null && /^[0-9]+$/.test(id))
    await within(STOP_TIMEOUT_MS, startSession(connection.ssh, { command: renderKillCommand(id), stdin: '' }).ended);
  void opened.then((channel) => channel instanceof Error || channel.close());
}

/** node-ssh keeps all output of a command: without its listeners, what still comes is dropped. */
function discardOutput(channel: ssh2.ClientChannel): void {
  for (const stream of [channel, channel.stderr]) stream.removeAllListeners('data').resume();
}

async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
