import { escapeUnprintableInLine } from './printable.ts';
import { wrapText } from './wrap-line.ts';

/**
 * Aligned columns, separated by two spaces, without trailing spaces. Control characters are escaped first: a
 * newline would add a row.
 * @param width maximum line width; the last column is truncated with `…`. null: nothing is truncated
 */
export function renderTable(rows: readonly (readonly string[])[], width: number | null = null): readonly string[] {
  return tableRenderer()(rows).map((line) => truncate(line, width));
}

/** For parts of a table that are printed one after the other: each keeps at least the widths of those before. */
export function tableRenderer(): (rows: readonly (readonly string[])[]) => readonly string[] {
  const widths: number[] = [];
  return (rows) => {
    const cells = rows.map((row) => row.map(escapeUnprintableInLine));
    for (const row of cells)
      for (const [i, cell] of row.entries()) if (i < row.length - 1) widths[i] = Math.max(widths[i] ?? 0, [...cell].length);
    return cells.map((row) =>
      row
        .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd((widths[i] ?? 0) + cell.length - [...cell].length)))
        .join('  ')
        .trimEnd(),
    );
  };
}

/**
 * Breaks the last columns at spaces if the table is wider than a line: a terminal would break words.
 * @param width maximum line width; undefined, or too narrow for the other columns: nothing is broken
 * @param flexible number of columns at the end that may be broken
 */
export function renderWrappedTable(
  rows: readonly (readonly string[])[],
  { width, flexible }: { readonly width: number | undefined; readonly flexible: number },
): readonly string[] {
  const cells = rows.map((row) => row.map(escapeUnprintableInLine));
  const count = Math.max(0, ...cells.map((row) => row.length));
  const natural = Array.from({ length: count }, (_, i) => Math.max(...cells.map((row) => [...(row[i] ?? '')].length)));
  const fixed = natural.slice(0, count - flexible).reduce((sum, size) => sum + size, 0);
  const limits = width === undefined ? null : shares(natural.slice(count - flexible), width - fixed - SEPARATOR * (count - 1));
  if (limits === null) return renderTable(rows);
  return renderTable(cells.flatMap((row) => brokenRow(row, limits)));
}

const SEPARATOR = 2;
/** A narrower column has too many lines. */
const LEAST_COLUMN = 10;

/** Divides a width between columns: a column that needs less than an equal share leaves the rest to the others. */
function shares(natural: readonly number[], width: number): readonly number[] | null {
  const sizes = [...natural];
  const order = natural.map((size, i) => ({ size, i })).toSorted((a, b) => a.size - b.size);
  let left = width;
  for (const [taken, { size, i }] of order.entries()) {
    const share = Math.floor(left / (order.length - taken));
    if (size > share && share < LEAST_COLUMN) return null;
    sizes[i] = Math.min(size, share);
    left -= sizes[i] ?? 0;
  }
  return sizes;
}

/** A row as several rows; a word that is longer than its column is truncated. */
function brokenRow(row: readonly string[], limits: readonly number[]): readonly (readonly string[])[] {
  const first = row.length - limits.length;
  const columns = row.map((cell, i) => {
    const limit = limits[i - first];
    return limit === undefined ? [cell] : wrapText(cell, limit).map((line) => truncate(line, limit));
  });
  const height = Math.max(1, ...columns.map(({ length }) => length));
  return Array.from({ length: height }, (_, line) => columns.map((lines) => lines[line] ?? ''));
}

/** A text of at most `width` characters; a truncated text ends with `…`. */
export function truncate(text: string, width: number | null): string {
  if (width === null || text.length <= width) return text;
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, Math.max(width - 1, 0)).join('')}…`;
}

/**
 * As Go's tabwriter with kubeadm's settings: columns at least 10 wide, separated by three spaces; without
 * padding at the end.
 */
export function renderTabTable(rows: readonly (readonly string[])[]): readonly string[] {
  const lengthOf = (text = ''): number => [...text].length;
  const widths = (rows[0] ?? []).map((_, i) => Math.max(10, ...rows.map((row) => lengthOf(row[i]) + 3)));
  const padded = (cell: string, i: number): string => cell + ' '.repeat(Math.max(0, (widths[i] ?? 0) - lengthOf(cell)));
  return rows.map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : padded(cell, i))).join(''));
}
