const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);

/** One output stream of a remote program, without what the login shell wrote before the program's mark. */
export interface MarkedOutput {
  /** Takes a chunk; gives what of it comes after the mark. */
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

/** Collects the output of a command and drops what the login shell said before its mark. */
export function markedOutput(mark: string): MarkedOutput {
  let before = EMPTY;
  let note: string | null = null;
  let size = 0;
  const chunks: Buffer[] = [];
  const keep = (chunk: Buffer): Buffer => {
    if (chunk.length > 0) chunks.push(chunk);
    return chunk;
  };
  return {
    push: (chunk) => {
      size += chunk.length;
      if (note !== null) return keep(chunk);
      before = Buffer.concat([before, chunk]);
      const at = before.indexOf(mark);
      const end = at < 0 ? -1 : before.indexOf(NEWLINE, at);
      if (end < 0) return EMPTY;
      note = before.toString('latin1', at + mark.length, end).trim();
      const rest = before.subarray(end + 1);
      before = before.subarray(0, at);
      return keep(rest);
    },
    get note() {
      return note;
    },
    get size() {
      return size;
    },
    content: () => Buffer.concat(chunks),
    noise: () => before.toString('utf8'),
  };
}
