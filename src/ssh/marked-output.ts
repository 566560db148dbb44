const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);

/** One output stream of a remote program, without what the login shell wrote before the program's mark. */
export interface MarkedOutput {
  /** Takes a chunk; returns what of it follows the mark. */
  push(chunk: Buffer): Buffer;
  /** What stands behind the mark on its line; null while the mark has not come. */
  readonly note: string | null;
  /** Bytes taken so far, noise included. */
  readonly size: number;
  /** What came after the mark. */
  content(): Buffer;
  /** What came before it. */
  noise(): string;
}

/** A login shell that says more than this before the mark is heard no further than for the mark. */
const MAX_NOISE_BYTES = 64 * 1024;
const HEAD_BYTES = 1024;
const TAIL_BYTES = 4096;

/**
 * Collects the output of a command and drops what the login shell said before its mark. Takes no more memory than twice the content, into however small
 * pieces a host cuts it.
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
        if (before.length <= MAX_NOISE_BYTES) return EMPTY;
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
    noise: () => (head ?? before).toString('utf8'),
  };
}
