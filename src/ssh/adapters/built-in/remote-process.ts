import { Readable } from 'node:stream';
import type { NodeSSH, SSHExecCommandOptions, SSHExecCommandResponse } from 'node-ssh';
import type ssh2 from 'ssh2';
import { untilAborted } from '../../../base/abort.ts';
import { printable } from '../../../base/text/printable.ts';
import { hostCommandNotFound, hostConnectionLost, hostNoShell } from '../../../host/host-problems.ts';
import type { RunOptions, RunResult } from '../../../host/transport.ts';
import type { SshTarget } from '../../target.ts';
import { type CommandRun, commandRun } from '../client/command-run.ts';
import type { SessionOutcome } from '../client/host-connection.ts';
import type { SshConnection } from './connection.ts';

export interface RemoteRun {
  readonly target: SshTarget;
  /** Already validated. */
  readonly argv: readonly [string, ...string[]];
  readonly options: RunOptions;
}

/**
 * Runs one command in its own session.
 * @throws AppError HOST_TIMEOUT, HOST_CONNECTION_LOST, HOST_OUTPUT_TOO_LARGE, HOST_COMMAND_NOT_FOUND; the
 *   signal's reason
 */
export async function runRemote(connection: SshConnection, run: RemoteRun): Promise<SessionOutcome> {
  const { target, argv, options } = run;
  const onLost = (listener: (error: unknown) => void): (() => void) => connection.onLost((why) => listener(why()));
  const command = commandRun(target.name, argv, { ...options, onLost });
  const session = startSession(connection.ssh, command.command, command.stdin, {
    onStdout: command.takeStdout,
    onStderr: command.takeStderr,
  });
  void session.ended.then(command.end);
  try {
    const channel = await untilAborted(session.opened, command.stop);
    if (channel instanceof Error) {
      if (connection.lost !== null) throw connection.lost;
      return { kind: 'refused', cause: channel };
    }
    const exit = await untilAborted(session.ended, command.stop);
    return { kind: 'ended', result: readResult(command, exit, run) };
  } catch (error) {
    if (command.stop.aborted) await stopRemote(connection, session, command);
    throw error;
  } finally {
    command.release();
  }
}

interface Session {
  /** An Error: the reason why the host opened no session. */
  readonly opened: Promise<ssh2.ClientChannel | Error>;
  /** The exit status that the server reported; null when it reported none. */
  readonly ended: Promise<Pick<SSHExecCommandResponse, 'code' | 'signal'> | null>;
}

/**
 * Starts a command in a new session. Never throws: a connection that just ended is a regular result.
 *
 * The end of standard input is sent as EOF, while the stream that node-ssh pipes into the channel stays open:
 * ssh2 closes a channel as soon as both directions have ended, and some servers send no exit status to a
 * closed channel.
 */
function startSession(
  ssh: NodeSSH,
  command: string,
  stdin: string,
  listeners: Pick<SSHExecCommandOptions, 'onStdout' | 'onStderr'> = {},
): Session {
  let resolveOpened: (channel: ssh2.ClientChannel | Error) => void = () => undefined;
  const opened = new Promise<ssh2.ClientChannel | Error>((resolve) => {
    resolveOpened = resolve;
  });
  let stderrClosed: Promise<unknown> = Promise.resolve();
  const onChannel = (channel: ssh2.ClientChannel): void => {
    // Unread standard input is not an error.
    channel.on('error', () => undefined);
    channel.stderr.on('error', () => undefined);
    stderrClosed = new Promise((resolve) => channel.stderr.once('close', resolve));
    channel.write(stdin, () => channel.eof());
    resolveOpened(channel);
  };
  const open = new Readable({ read: () => undefined });
  const ended = ssh.execCommand(command, { ...listeners, onChannel, stdin: open, noTrim: true }).then(
    async ({ code, signal }) => {
      // Exit status and end of stdout may arrive before the last data of stderr.
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

function readResult({ stdout, stderr }: CommandRun, exit: Awaited<Session['ended']>, { target, argv: [command] }: RemoteRun): RunResult {
  const { name: host, user } = target;
  if (stderr.note === 'missing') throw hostCommandNotFound({ host, command });
  if (exit === null) throw hostConnectionLost({ host, why: `${command} exited without an exit status` });
  if (stdout.note === null)
    throw hostNoShell({ host, user, reported: printable(`${stdout.outputBeforeMarker()} ${stderr.outputBeforeMarker()}`) });
  return { exitCode: exit.code, signal: exit.signal, stdout: stdout.content(), stderr: stderr.content() };
}

async function stopRemote(connection: SshConnection, { opened }: Session, command: CommandRun): Promise<void> {
  if (connection.lost !== null) return;
  void opened.then((channel) => channel instanceof Error || discardOutput(channel, command.takeStderr));
  await command.kill((kill) => startSession(connection.ssh, kill, '').ended);
  void opened.then((channel) => channel instanceof Error || channel.close());
}

/** node-ssh keeps all output of a command: without its listeners, further output is dropped. stderr has the process id. */
function discardOutput(channel: ssh2.ClientChannel, takeStderr: (chunk: Buffer) => void): void {
  channel.removeAllListeners('data').resume();
  channel.stderr.removeAllListeners('data').on('data', takeStderr);
}
