import { randomBytes } from 'node:crypto';
import type ssh2 from 'ssh2';
import { onAbort, untilAborted } from '../../core/abort.ts';
import type { AppError } from '../../core/errors.ts';
import { hostCommandNotFound, hostConnectionLost, hostNoShell, hostOutputTooLarge, hostTimeout } from '../../core/problems/host.ts';
import { type MarkedOutput, markedOutput } from '../../core/ssh/marked-output.ts';
import { renderKillCommand, renderRemoteCommand } from '../../core/ssh/remote-command.ts';
import type { SshTarget } from '../../core/ssh/target.ts';
import { printable } from '../../core/text/printable.ts';
import type { RunOptions, RunResult } from '../../ports/transport.ts';
import type { SshConnection } from './connection.ts';
import { startCommand } from './session-channels.ts';

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
/** For those who take long commands at all: what Linux takes as one argument, with room for the login shell's. */
const MAX_COMMAND_BYTES = 100_000;
/** For finding out what to kill, and again for killing it. */
const STOP_TIMEOUT_MS = 1000;

export interface RemoteRun {
  readonly target: SshTarget;
  /** Already checked. */
  readonly argv: readonly [string, ...string[]];
  readonly options: RunOptions;
}

/** `refused`: the host opened no session for it, and nothing ran. */
export type RemoteOutcome = { readonly kind: 'ended'; readonly result: RunResult } | { readonly kind: 'refused'; readonly cause: Error };

/**
 * Runs one command in a session of its own, on a connection that is not lost.
 * @throws AppError HOST_TIMEOUT, HOST_CONNECTION_LOST, HOST_OUTPUT_TOO_LARGE, HOST_COMMAND_NOT_FOUND; the signal's reason
 */
export async function runRemote(connection: SshConnection, run: RemoteRun): Promise<RemoteOutcome> {
  const { target, argv, options } = run;
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const host = target.name;
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(hostTimeout({ host, what: `${argv[0]} did not end`, timeoutMs })), timeoutMs);
  const forgetSignal = onAbort(options.signal, (reason) => stop.abort(reason));
  const forgetLoss = connection.onLost((why) => stop.abort(why()));
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
    forgetSignal();
    forgetLoss();
  }
}

interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

interface RemoteProcess extends Session {
  /** Comes as soon as the program runs; null when it ended before. */
  readonly processId: Promise<string | null>;
  readonly stdout: MarkedOutput;
  readonly stderr: MarkedOutput;
}

function startRemote(connection: SshConnection, { target, argv, options }: RemoteRun, stop: AbortController): RemoteProcess {
  const { maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES } = options;
  const mark = `kubeletadm-${randomBytes(12).toString('hex')}`;
  const { command, stdinPrefix, includesInput } = renderRemoteCommand(argv, mark, {
    ...(options.stdinMayShow && options.stdin !== undefined ? { input: options.stdin } : {}),
    ...(connection.takesLongCommands ? { maxCommandBytes: MAX_COMMAND_BYTES } : {}),
  });
  const stdout = markedOutput(mark);
  const stderr = markedOutput(mark);
  let tellProcessId: (id: string | null) => void = () => undefined;
  const processId = new Promise<string | null>((resolve) => {
    tellProcessId = resolve;
  });
  const take = (stream: 'stdout' | 'stderr', output: MarkedOutput, listener?: (chunk: Uint8Array) => void) => (chunk: Buffer) => {
    // Who stops a command that has only just started still wants to know its process id.
    if (stop.signal.aborted && output.note !== null) return;
    try {
      const content = output.push(chunk);
      if (output.size > maxOutputBytes) stop.abort(hostOutputTooLarge({ host: target.name, command: argv[0], stream, maxOutputBytes }));
      else if (content.length > 0 && !stop.signal.aborted) listener?.(content);
    } catch (error) {
      stop.abort(error);
    }
    if (stderr.note !== null) tellProcessId(stderr.note);
  };
  const input = { command, stdin: `${stdinPrefix}${includesInput ? '' : (options.stdin ?? '')}` };
  const session = execute(connection, input, { stdout: take('stdout', stdout, options.onStdout), stderr: take('stderr', stderr) });
  void session.ended.then(() => tellProcessId(null));
  return { ...session, processId, stdout, stderr };
}

interface Session {
  /** An Error: there is none, for this reason. */
  readonly opened: Promise<ssh2.ClientChannel | Error>;
  /** What the server says of the command's end; null when it says nothing. */
  readonly ended: Promise<Exit | null>;
}

interface Listeners {
  readonly stdout: (chunk: Buffer) => void;
  readonly stderr: (chunk: Buffer) => void;
}

/** Never throws: a connection that just ended is an outcome like others. */
function execute(connection: SshConnection, { command, stdin }: { command: string; stdin: string }, listeners: Listeners): Session {
  const { client, channels } = connection;
  const started = channels.open().then(
    (channel) => {
      const ended = listen(channel, listeners);
      const opened = startCommand(client, channel, command, stdin).then((refusal) => {
        if (refusal === null) return channel;
        channel.close();
        return refusal;
      });
      // Lost on the way, it is never answered.
      return { opened: Promise.race([opened, ended.then(() => channel)]), ended };
    },
    (error: unknown) => ({
      opened: Promise.resolve(error instanceof Error ? error : new Error(String(error))),
      ended: Promise.resolve(null),
    }),
  );
  return { opened: started.then(({ opened }) => opened), ended: started.then(({ ended }) => ended) };
}

/** The end is when both streams have closed: the exit status comes before the last output. */
function listen(channel: ssh2.ClientChannel, listeners: Listeners): Promise<Exit | null> {
  return new Promise((resolve) => {
    let exit: Exit | null = null;
    let open = 2;
    const onClose = (): void => {
      if (--open === 0) resolve(exit);
    };
    channel.on('exit', (code: number | null, signal?: string) => {
      exit = { code, signal: signal ?? null };
    });
    channel.on('data', listeners.stdout);
    channel.stderr.on('data', listeners.stderr);
    channel.on('close', onClose);
    channel.stderr.on('close', onClose);
    // What was not read of stdin when the program ended is no failure.
    channel.on('error', () => undefined);
    channel.stderr.on('error', () => undefined);
  });
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
  return hostNoShell({ host, user, said: printable(`${stdout.noise()} ${stderr.noise()}`) });
}

/**
 * Stops a command nobody waits for any more: closing its channel alone would let it run on. Bounded, and silent about failures: the command
 * may have ended, or may not be this user's to stop.
 */
async function stopRemote(connection: SshConnection, { opened, processId }: RemoteProcess): Promise<void> {
  if (connection.lost !== null) return;
  const id = await within(STOP_TIMEOUT_MS, processId);
  if (id !== null && /^[0-9]+$/.test(id)) await within(STOP_TIMEOUT_MS, runToEnd(connection, renderKillCommand(id)));
  void opened.then((channel) => channel instanceof Error || channel.close());
}

async function runToEnd(connection: SshConnection, command: string): Promise<null> {
  await execute(connection, { command, stdin: '' }, { stdout: () => undefined, stderr: () => undefined }).ended;
  return null;
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
