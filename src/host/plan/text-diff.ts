/** A line of a diff: kept, taken out or put in. */
type Edit = readonly [sign: ' ' | '-' | '+', line: string];

const CONTEXT = 3;

/**
 * A unified diff of two texts, as `diff -u` prints it; empty when they are equal. Text without a final newline is marked as diff does.
 * @param names what stands in the two heading lines
 */
export function unifiedDiff(before: string, after: string, names: { readonly before: string; readonly after: string }): string {
  if (before === after) return '';
  const edits = diffLines(toLines(before), toLines(after));
  const hunks = hunksOf(edits).flatMap((hunk) => renderHunk(edits, hunk));
  return `${[`--- ${names.before}`, `+++ ${names.after}`, ...hunks].join('\n')}\n`;
}

function toLines(text: string): readonly string[] {
  if (text === '') return [];
  const lines = text.split('\n');
  if (lines.at(-1) === '') return lines.slice(0, -1);
  return [...lines.slice(0, -1), `${lines.at(-1)}\n\\ No newline at end of file`];
}

/** Longest common subsequence between the equal head and tail: configuration files are short. */
function diffLines(a: readonly string[], b: readonly string[]): readonly Edit[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = diffMiddle(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return [...a.slice(0, head).map((line): Edit => [' ', line]), ...middle, ...a.slice(a.length - tail).map((line): Edit => [' ', line])];
}

/** Beyond this many cells the table would cost more than the diff is worth: all old lines out, all new ones in. */
const MAX_CELLS = 4_000_000;

function diffMiddle(a: readonly string[], b: readonly string[]): readonly Edit[] {
  if (a.length * b.length > MAX_CELLS) return [...a.map((line): Edit => ['-', line]), ...b.map((line): Edit => ['+', line])];
  const width = b.length + 1;
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      common[at] =
        a[i] === b[j] ? (common[at + width + 1] as number) + 1 : Math.max(common[at + width] as number, common[at + 1] as number);
    }
  }
  const edits: Edit[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      edits.push([' ', a[i++] as string]);
      j++;
    } else if (i < a.length && (j === b.length || (common[(i + 1) * width + j] as number) >= (common[i * width + j + 1] as number)))
      edits.push(['-', a[i++] as string]);
    else edits.push(['+', b[j++] as string]);
  }
  return edits;
}

function hunksOf(edits: readonly Edit[]): readonly (readonly [from: number, to: number])[] {
  const hunks: [number, number][] = [];
  edits.forEach(([sign], at) => {
    if (sign === ' ') return;
    const last = hunks.at(-1);
    if (last && at - CONTEXT <= last[1]) last[1] = Math.min(at + CONTEXT + 1, edits.length);
    else hunks.push([Math.max(at - CONTEXT, 0), Math.min(at + CONTEXT + 1, edits.length)]);
  });
  return hunks;
}

function renderHunk(edits: readonly Edit[], [from, to]: readonly [number, number]): readonly string[] {
  const count = (part: readonly Edit[], sign: '-' | '+'): number => part.filter(([s]) => s === ' ' || s === sign).length;
  const before = edits.slice(0, from);
  const part = edits.slice(from, to);
  const range = (sign: '-' | '+'): string => {
    const length = count(part, sign);
    const start = count(before, sign) + (length === 0 ? 0 : 1);
    return length === 1 ? `${start}` : `${start},${length}`;
  };
  return [`@@ -${range('-')} +${range('+')} @@`, ...part.map(([sign, line]) => `${sign}${line}`)];
}
