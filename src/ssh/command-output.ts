import { hostOutputTooLarge } from '../host/host-problems.ts';
import { type MarkedOutput, markedOutput } from './marked-output.ts';

interface CommandOutputOptions {
  /** Name of the host, for messages. */
  readonly host: string;
  /** Name of the program, for messages. */
  readonly command: string;
  /** The start marker that was passed to `renderRemoteCommand`. */
  readonly mark: string;
  /** Maximum size of stdout and of stderr, each. */
  readonly maxOutputBytes: number;
  /** Aborted with HOST_OUTPUT_TOO_LARGE when a stream exceeds the limit, or with the error that `onStdout` throws. */
  readonly stop: AbortController;
  /** Called with each chunk of stdout after the start marker. */
  readonly onStdout?: ((chunk: Uint8Array) => void) | undefined;
}

/** The output of a command that `renderRemoteCommand` rendered. */
export interface CommandOutput {
  readonly stdout: MarkedOutput;
  readonly stderr: MarkedOutput;
  readonly takeStdout: (chunk: Buffer) => void;
  readonly takeStderr: (chunk: Buffer) => void;
  /** Resolves to the process id when the program has started; to null when the command ends without a start. */
  readonly processId: Promise<string | null>;
  /** No further output follows. */
  readonly end: () => void;
}

/** Collects the output and the process id of a remote command. The process id is needed to stop the command. */
export function commandOutput({ host, command, mark, maxOutputBytes, stop, onStdout }: CommandOutputOptions): CommandOutput {
  const stdout = markedOutput(mark);
  const stderr = markedOutput(mark);
  let resolveProcessId: (id: string | null) => void = () => undefined;
  const processId = new Promise<string | null>((resolve) => {
    resolveProcessId = resolve;
  });
  const take = (stream: 'stdout' | 'stderr', output: MarkedOutput, listener?: (chunk: Uint8Array) => void) => (chunk: Buffer) => {
    // A command stopped immediately after its start must still report its process id.
    if (stop.signal.aborted && output.note !== null) return;
    try {
      const content = output.push(chunk);
      if (output.size > maxOutputBytes) stop.abort(hostOutputTooLarge({ host, command, stream, maxOutputBytes }));
      else if (content.length > 0 && !stop.signal.aborted) listener?.(content);
    } catch (error) {
      stop.abort(error);
    }
    if (stderr.note !== null) resolveProcessId(stderr.note);
  };
  return {
    stdout,
    stderr,
    takeStdout: take('stdout', stdout, onStdout),
    takeStderr: take('stderr', stderr),
    processId,
    end: () => resolveProcessId(null),
  };
}
