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
