import { randomUUID } from 'node:crypto';
import { onAbort } from '../../../base/abort.ts';
import { resolveWithin } from '../../../base/adapters/clock-system.ts';
import { hostOutputTooLarge, hostTimeout } from '../../../host/host-problems.ts';
import type { RunOptions } from '../../../host/transport.ts';
import { type MarkedOutput, markedOutput } from '../../marked-output.ts';
import { renderKillCommand, renderRemoteCommand } from '../../remote-command.ts';

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
/** Timeout for the process id of a command, and again for killing it. */
const STOP_TIMEOUT_MS = 2000;

export type CommandRun = ReturnType<typeof commandRun>;

interface CommandRunOptions extends RunOptions {
  /** See `renderRemoteCommand`. */
  readonly reportsExitCode?: boolean;
  /** Calls the listener when the connection is lost. Returns a function that removes the listener. */
  onLost(listener: (error: unknown) => void): () => void;
}

/**
 * One command on a host: as rendered, with its output and its process id, which is needed to stop it. `stop` is aborted at the
 * time limit, by the caller's signal, by the loss of the connection, when a stream exceeds its limit, and with an error that
 * `onStdout` throws.
 * @param host its name, for messages
 */
export function commandRun(host: string, argv: readonly [string, ...string[]], options: CommandRunOptions) {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, maxOutputBytes = DEFAULT_MAX_OUTPUT_BYTES, onStdout, stdin = '' } = options;
  const mark = `kubeletadm-${randomUUID()}`;
  const { command, stdinPrefix } = renderRemoteCommand(argv, mark, options);
  const stop = new AbortController();
  const abort = (reason: unknown): void => stop.abort(reason);
  const timer = setTimeout(() => abort(hostTimeout({ host, what: `${argv[0]} did not finish`, timeoutMs })), timeoutMs);
  const removers = [onAbort(options.signal, abort), options.onLost(abort)];
  const [stdout, stderr] = [markedOutput(mark), markedOutput(mark)];
  let resolveProcessId: (id: string | null) => void = () => undefined;
  const processId = new Promise<string | null>((resolve) => {
    resolveProcessId = resolve;
  });
  const take = (stream: 'stdout' | 'stderr', output: MarkedOutput, listener?: (chunk: Uint8Array) => void) => (chunk: Buffer) => {
    // A command stopped immediately after its start must still report its process id.
    if (stop.signal.aborted && output.note !== null) return;
    try {
      const content = output.push(chunk);
      if (output.size > maxOutputBytes) abort(hostOutputTooLarge({ host, command: argv[0], stream, maxOutputBytes }));
      else if (content.length > 0 && !stop.signal.aborted) listener?.(content);
    } catch (error) {
      abort(error);
    }
    if (stderr.note !== null) resolveProcessId(stderr.note);
  };
  return {
    mark,
    command,
    stdin: `${stdinPrefix}${stdin}`,
    stop: stop.signal,
    stdout,
    stderr,
    takeStdout: take('stdout', stdout, onStdout),
    takeStderr: take('stderr', stderr),
    /** No further output follows. */
    end: (): void => resolveProcessId(null),
    /**
     * Stops a started command: closing its channel alone would leave it running. Has a time limit and ignores failures: the
     * command may have ended, or the user may lack the permission to stop it.
     * @param run runs the given command on the host
     */
    kill: async (run: (command: string) => Promise<unknown>): Promise<void> => {
      const id = await resolveWithin(STOP_TIMEOUT_MS, processId);
      if (id !== null && /^[0-9]+$/.test(id)) await resolveWithin(STOP_TIMEOUT_MS, run(renderKillCommand(id)));
    },
    /** Removes the time limit and all listeners. */
    release: (): void => {
      clearTimeout(timer);
      for (const remove of removers) remove();
    },
  };
}
