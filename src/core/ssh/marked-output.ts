const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);

/** One output stream of a remote program, without what the login shell wrote before the program's mark, and what comes after its end. */
export interface MarkedOutput {
  /** Takes a chunk; gives what is known to be the program's now. */
  push(chunk: Buffer): Buffer;
  /** What stands behind the mark on its line; null while the mark has not come. */
  readonly note: string | null;
  /** What stands behind `<mark> end` on its line; null while that has not come. */
  readonly end: string | null;
  /** Bytes taken so far, noise included. */
  readonly size: number;
  /** What came after the mark, and before the end where that is told. */
  content(): Buffer;
  /** What came before it. */
  noise(): string;
}

export interface MarkedOutputOptions {
  /** The program's end is in the stream, `<mark> end …`: what may be its beginning is given when it is not. */
  readonly tellsEnd?: boolean;
  /** There is nothing before the program's own, and no mark. */
  readonly startsAtOnce?: boolean;
}

/** A login shell that says more than this before the mark is heard no further than for the mark. */
const MAX_NOISE_BYTES = 64 * 1024;
const HEAD_BYTES = 1024;
const TAIL_BYTES = 4096;

/**
 * Collects the output of a command and drops what the login shell said before its mark. Takes no more memory than twice the content, into however small
 * pieces a host cuts it.
 */
export function markedOutput(mark: string, { tellsEnd = false, startsAtOnce = false }: MarkedOutputOptions = {}): MarkedOutput {
  let before: Buffer = EMPTY;
  let head: Buffer | null = null;
  let note: string | null = startsAtOnce ? '' : null;
  let size = 0;
  let content: Buffer = EMPTY;
  let used = 0;
  let given = 0;
  let end: string | null = null;
  const endMark = Buffer.from(`${mark} end`);
  const keep = (chunk: Buffer): Buffer => {
    if (used + chunk.length > content.length) {
      const larger = Buffer.allocUnsafe(Math.max(4096, 2 * (used + chunk.length)));
      content.copy(larger, 0, 0, used);
      content = larger;
    }
    chunk.copy(content, used);
    used += chunk.length;
    return give();
  };
  /** Up to the end, or to what may become its line. */
  const give = (): Buffer => {
    const from = given;
    if (!tellsEnd) {
      given = used;
      return content.subarray(from, used);
    }
    const at = content.subarray(0, used).indexOf(endMark, from);
    const lineEnd = at < 0 ? -1 : content.subarray(0, used).indexOf(NEWLINE, at + endMark.length);
    given = at < 0 ? used - begunAt(content.subarray(from, used), endMark) : at;
    if (lineEnd >= 0) {
      end = content.toString('latin1', at + endMark.length, lineEnd).trim();
      used = at;
    }
    return content.subarray(from, given);
  };
  return {
    push: (chunk) => {
      size += chunk.length;
      if (end !== null) return EMPTY;
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
    get end() {
      return end;
    },
    get size() {
      return size;
    },
    content: () => content.subarray(0, used),
    noise: () => (head ?? before).toString('utf8'),
  };
}

/** How many of the last bytes are the first of the mark. */
function begunAt(bytes: Buffer, mark: Buffer): number {
  const first = mark[0] ?? 0;
  for (let at = bytes.indexOf(first, Math.max(0, bytes.length - mark.length + 1)); at >= 0; at = bytes.indexOf(first, at + 1))
    if (bytes.compare(mark, 0, bytes.length - at, at) === 0) return bytes.length - at;
  return 0;
}
