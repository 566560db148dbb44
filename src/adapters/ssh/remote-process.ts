import { randomUUID } from 'node:crypto';
import { onAbort, untilAborted } from '../../core/abort.ts';
import type { AppError } from '../../core/errors.ts';
import { hostCommandNotFound, hostConnectionLost, hostNoShell, hostOutputTooLarge, hostTimeout } from '../../core/problems/host.ts';
import { type MarkedOutput, markedOutput } from '../../core/ssh/marked-output.ts';
import {
  canBeKept,
  KEPT_SHELL,
  renderKeptLine,
  renderKillCommand,
  renderRemoteCommand,
  type ShellLine,
} from '../../core/ssh/remote-command.ts';
import type { SshTarget } from '../../core/ssh/target.ts';
import { printable } from '../../core/text/printable.ts';
import type { RunOptions, RunResult } from '../../ports/transport.ts';
import type { SshConnection } from './connection.ts';
import { type Exit, type Listeners, type Wire, wire } from './kept-shell.ts';
import { startCommand } from './session-channels.ts';

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
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
 * Runs one command on a connection that is not lost: in the shell kept for that, or in a session of its own.
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
    const line = await untilAborted(remote.opened, stop.signal);
    if (line instanceof Error) {
      if (connection.lost !== null) throw connection.lost;
      const ending = connection.kept.letGo();
      if (ending === null) return { kind: 'refused', cause: line };
      // Where a host allows one session, the shell that waits had it.
      await untilAborted(ending, stop.signal);
      return await runRemote(connection, run);
    }
    const exit = await untilAborted(Promise.race([remote.ended, remote.told]), stop.signal);
    if (isTold(exit)) connection.kept.keep(line);
    else if (exit !== null && hasNotBegun(remote)) return await runRemote(connection, run);
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

/** The line has ended, its shell takes another. */
interface Told extends Exit {
  readonly isTold: true;
}

function isTold(exit: Exit | Told | null): exit is Told {
  return exit !== null && 'isTold' in exit;
}

interface RemoteProcess extends Session {
  /** Comes as soon as the program runs; null when it ended before. */
  readonly processId: Promise<string | null>;
  readonly told: Promise<Told>;
  /** In a shell that was there. */
  readonly isNext: boolean;
  readonly stdout: MarkedOutput;
  readonly stderr: MarkedOutput;
}

/** The shell had gone away while it waited, and read nothing. */
function hasNotBegun({ isNext, stderr }: RemoteProcess): boolean {
  return isNext && stderr.note === null;
}

function startRemote(connection: SshConnection, { target, argv, options }: RemoteRun, stop: AbortController): RemoteProcess {
  const { maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES, mayShareShell = false, stdin = '' } = options;
  const mark = `kubeletadm-${randomUUID()}`;
  const shares = mayShareShell && canBeKept(argv, stdin);
  const shell = shares ? connection.kept.take() : null;
  const stdout = markedOutput(mark, { tellsEnd: shares, startsAtOnce: shell !== null });
  const stderr = markedOutput(mark, { tellsEnd: shares });
  let tellProcessId: (id: string | null) => void = () => undefined;
  const processId = new Promise<string | null>((resolve) => {
    tellProcessId = resolve;
  });
  let tellEnd: (told: Told) => void = () => undefined;
  const told = new Promise<Told>((resolve) => {
    tellEnd = resolve;
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
    if (stdout.end !== null && stderr.end !== null) tellEnd({ code: Number(stderr.end), signal: null, isTold: true });
  };
  const listeners = { stdout: take('stdout', stdout, options.onStdout), stderr: take('stderr', stderr) };
  const session =
    shell !== null
      ? goOn(shell, renderKeptLine({ argv, mark, stdin }, false), listeners)
      : execute(connection, shares ? keptInput({ argv, mark, stdin }) : ownInput(argv, mark, stdin), listeners);
  void session.ended.then(() => tellProcessId(null));
  return { ...session, processId, told, isNext: shell !== null, stdout, stderr };
}

interface Input {
  readonly command: string;
  readonly stdin: string;
  /** Nothing comes after it. */
  readonly ends: boolean;
}

function ownInput(argv: readonly string[], mark: string, stdin: string): Input {
  const { command, stdinPrefix } = renderRemoteCommand(argv, mark);
  return { command, stdin: `${stdinPrefix}${stdin}`, ends: true };
}

function keptInput(line: ShellLine): Input {
  return { command: KEPT_SHELL, stdin: renderKeptLine(line, true), ends: false };
}

interface Session {
  /** An Error: there is none, for this reason. */
  readonly opened: Promise<Wire | Error>;
  /** What the server says of the session's end; null when it says nothing. */
  readonly ended: Promise<Exit | null>;
}

/** Never throws: a connection that just ended is an outcome like others. */
function execute({ client, channels }: SshConnection, input: Input, listeners: Listeners): Session {
  const started = channels.open(input.ends).then(
    (channel) => {
      const line = wire(channel, listeners);
      const opened = startCommand(client, channel, input).then((refusal) => {
        if (refusal === null) return line;
        channel.close();
        return refusal;
      });
      // Lost on the way, it is never answered.
      return { opened: Promise.race([opened, line.ended.then(() => line)]), ended: line.ended };
    },
    (error: unknown) => ({
      opened: Promise.resolve(error instanceof Error ? error : new Error(String(error))),
      ended: Promise.resolve(null),
    }),
  );
  return { opened: started.then(({ opened }) => opened), ended: started.then(({ ended }) => ended) };
}

/** Gives a shell that waits its next line. */
function goOn(shell: Wire, stdin: string, listeners: Listeners): Session {
  shell.listen(listeners);
  shell.channel.write(stdin);
  return { opened: Promise.resolve(shell), ended: shell.ended };
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
  void opened.then((line) => line instanceof Error || line.channel.close());
}

async function runToEnd(connection: SshConnection, command: string): Promise<null> {
  await execute(connection, { command, stdin: '', ends: true }, { stdout: () => undefined, stderr: () => undefined }).ended;
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
