import { visibleInLine } from './printable.ts';

/**
 * Renders rows with aligned columns, separated by two spaces. Control characters in a cell are escaped before
 * it is measured, because a newline would add a row.
 * @param width maximum line width; the last column is truncated with `…`. null: nothing is truncated
 * @returns lines without trailing spaces
 */
export function renderTable(rows: readonly (readonly string[])[], width: number | null = null): readonly string[] {
  const cells = rows.map((row) => row.map(visibleInLine));
  const widths: number[] = [];
  for (const row of cells)
    for (const [i, cell] of row.entries()) if (i < row.length - 1) widths[i] = Math.max(widths[i] ?? 0, [...cell].length);
  return cells.map((row) => {
    const line = row
      .map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd((widths[i] ?? 0) + cell.length - [...cell].length)))
      .join('  ');
    return cut(line.trimEnd(), width);
  });
}

/** A text of at most `width` characters; a truncated text ends with `…`. */
export function cut(text: string, width: number | null): string {
  if (width === null || text.length <= width) return text;
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, Math.max(width - 1, 0)).join('')}…`;
}

/** Breaks a text at spaces into lines of at most `width` characters; longer words are not broken. */
export function wrapText(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/).filter(Boolean)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}
