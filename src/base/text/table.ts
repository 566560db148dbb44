import { visibleInLine } from './printable.ts';

/**
 * Renders rows with aligned columns, separated by two spaces. Control characters in a cell are escaped before
 * it is measured, because a newline would add a row.
 * @param width maximum line width; the last column is truncated with `…`. null: nothing is truncated
 * @returns lines without trailing spaces
 */
export function renderTable(rows: readonly (readonly string[])[], width: number | null = null): readonly string[] {
  return tableRenderer()(rows).map((line) => cut(line, width));
}

/**
 * Renders a table in parts, as `renderTable`. The columns of a part are at least as wide as those of the parts
 * before, so that rows printed one after the other stay aligned.
 */
export function tableRenderer(): (rows: readonly (readonly string[])[]) => readonly string[] {
  const widths: number[] = [];
  return (rows) => {
    const cells = rows.map((row) => row.map(visibleInLine));
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
