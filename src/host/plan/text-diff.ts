import { type StructuredPatchHunk, structuredPatch } from 'diff';

const CONTEXT = 3;
/** More differing lines take too long: the diff then removes all old lines and adds all new ones. */
const MAX_EDITS = 500;

/**
 * A unified diff with a final newline, as `diff -u` prints it; empty when the texts are equal.
 * @param context number of equal lines around a difference
 */
export function unifiedDiff(
  before: string,
  after: string,
  names: { readonly before: string; readonly after: string },
  context: number = CONTEXT,
): string {
  if (before === after) return '';
  const options = { context, maxEditLength: MAX_EDITS };
  const patch = structuredPatch('', '', before, after, undefined, undefined, options) ?? replaced(before, after);
  return `${[`--- ${names.before}`, `+++ ${names.after}`, ...patch.hunks.flatMap(renderHunk)].join('\n')}\n`;
}

export type DiffTexts = (before: string, after: string, names: { readonly before: string; readonly after: string }) => string;

/**
 * Compares equal pairs of texts of a plan once: most hosts have the same files.
 * @param most maximum number of diffs kept: files that all differ gain nothing from them
 */
export function diffEqualTextsOnce(most = 1_000): DiffTexts {
  const diffs = new Map<string, string>();
  return (before, after, names) => {
    const key = `${names.before}\0${names.after}\0${before.length}\0${before}${after}`;
    const diff = diffs.get(key) ?? unifiedDiff(before, after, names);
    if (diffs.size >= most) diffs.clear();
    diffs.set(key, diff);
    return diff;
  };
}

/** A patch that removes all lines of one text and adds all lines of another. */
function replaced(before: string, after: string): { readonly hunks: readonly StructuredPatchHunk[] } {
  const [removed, added] = [structuredPatch('', '', before, ''), structuredPatch('', '', '', after)].map(({ hunks }) => hunks[0]);
  if (removed === undefined || added === undefined) return { hunks: [removed ?? added].filter((hunk) => hunk !== undefined) };
  const { oldStart, oldLines } = removed;
  const { newStart, newLines } = added;
  return { hunks: [{ oldStart, oldLines, newStart, newLines, lines: [...removed.lines, ...added.lines] }] };
}

function renderHunk({ oldStart, oldLines, newStart, newLines, lines }: StructuredPatchHunk): readonly string[] {
  return [`@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`, ...lines];
}

/** In GNU diff's format: a length of 1 is omitted, and an empty range starts at the previous line. */
function range(start: number, length: number): string {
  if (length === 1) return `${start}`;
  return `${length === 0 ? start - 1 : start},${length}`;
}
