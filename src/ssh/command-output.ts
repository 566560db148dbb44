import { hostOutputTooLarge } from '../host/host-problems.ts';

const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);

/**
 * One output stream of a remote program, without output of the login shell before the program's start marker.
 */
export interface MarkedOutput {
  /** Adds a chunk; returns the part of it after the marker. */
  push(chunk: Buffer): Buffer;
  /** The text after the marker on its line; null before the marker arrives. */
  readonly note: string | null;
  /** Bytes received so far, noise included. */
  readonly size: number;
  /** The output after the marker. */
  content(): Buffer;
  /** The output before the marker. */
  outputBeforeMarker(): string;
}

/** Limit of output kept before the marker; beyond it only the head is kept while the marker is searched. */
const MAX_BYTES_BEFORE_MARKER = 64 * 1024;
const HEAD_BYTES = 1024;
const TAIL_BYTES = 4096;

/**
 * Collects the output of a command and drops output of the login shell before its marker. Uses at most twice
 * the memory of the content, even when it arrives in very small chunks.
 */
export function markedOutput(mark: string): MarkedOutput {
  let before: Buffer = EMPTY;
  let head: Buffer | null = null;
  let note: string | null = null;
  let size = 0;
  let content: Buffer = EMPTY;
  let used = 0;
  const keep = (chunk: Buffer): Buffer => {
    if (used + chunk.length > content.length) {
      const larger = Buffer.allocUnsafe(Math.max(4096, 2 * (used + chunk.length)));
      content.copy(larger, 0, 0, used);
      content = larger;
    }
    chunk.copy(content, used);
    used += chunk.length;
    return chunk;
  };
  return {
    push: (chunk) => {
      size += chunk.length;
      if (note !== null) return keep(chunk);
      before = Buffer.concat([before, chunk]);
      const at = before.indexOf(mark);
      const lineEnd = at < 0 ? -1 : before.indexOf(NEWLINE, at);
      if (lineEnd < 0) {
        if (before.length <= MAX_BYTES_BEFORE_MARKER) return EMPTY;
        head ??= Buffer.from(before.subarray(0, HEAD_BYTES));
        before = Buffer.from(before.subarray(-TAIL_BYTES));
        return EMPTY;
      }
      note = before.toString('latin1', at + mark.length, lineEnd).trim();
      const rest = before.subarray(lineEnd + 1);
      before = before.subarray(0, at);
      return keep(rest);
    },
    get note() {
      return note;
    },
    get size() {
      return size;
    },
    content: () => content.subarray(0, used),
    outputBeforeMarker: () => (head ?? before).toString('utf8'),
  };
}

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
