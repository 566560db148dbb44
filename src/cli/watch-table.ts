import { joinLines } from '../base/text/styled.ts';
import { tableRenderer } from '../base/text/table.ts';
import type { Output } from './output/services.ts';
import { renderDocument } from './output/show-document.ts';
import { type Table, type TableFormat, type TableRequest, type TableRow, tableCells } from './show-table.ts';

/** A row that is printed again when its document changes. */
export interface WatchedRow extends TableRow {
  readonly document: object;
  /** Lines below the row. */
  readonly notes: readonly string[];
}

export interface WatchedTable extends Pick<Table, 'columns' | 'wide' | 'empty'> {
  readonly rows: readonly WatchedRow[];
}

/**
 * Prints a table whose rows change, as `kubectl get --watch`: first all rows, then those whose document differs from the
 * one printed last. The header is printed once. Formats other than tables print each object on its own, the first
 * ones included, so that a template or a parser handles all of them alike.
 * @returns receives the table each time it is read; a row that it no longer has is reported as removed
 */
export function tableWatch(output: Pick<Output, 'stdout'>, request: TableRequest): (table: WatchedTable) => void {
  const { format } = request;
  const show = format === 'text' || format === 'wide' ? rowPrinter(output, { ...request, format }) : objectPrinter(output, format);
  const printed = new Map<string, { readonly row: WatchedRow; readonly state: string }>();
  return (table) => {
    const names = new Set(table.rows.map(({ name }) => name));
    const removed = [...printed.values()].flatMap(({ row }) => (names.has(row.name) ? [] : [row]));
    for (const { name } of removed) printed.delete(name);
    const changed: WatchedRow[] = [];
    for (const row of table.rows) {
      const state = JSON.stringify(row.document);
      if (printed.get(row.name)?.state !== state) changed.push(row);
      printed.set(row.name, { row, state });
    }
    show(table, { changed, removed });
  };
}

interface Changes {
  readonly changed: readonly WatchedRow[];
  readonly removed: readonly WatchedRow[];
}

function rowPrinter(output: Pick<Output, 'stdout'>, request: TableRequest): (table: WatchedTable, changes: Changes) => void {
  const render = tableRenderer();
  let { headers } = request;
  let isFirst = true;
  return (table, { changed, removed }) => {
    if (changed.length + removed.length > 0) {
      const lines = render(tableCells({ ...table, rows: changed }, { ...request, headers }));
      headers = false;
      const notes = [...changed.flatMap((row) => row.notes), ...removed.map(({ name }) => `${name}: deleted, or no longer selected.`)];
      output.stdout(joinLines([...lines, ...notes]));
    } else if (isFirst && table.empty !== undefined) output.stdout(`${table.empty}\n`);
    isFirst = false;
  };
}

function objectPrinter(
  output: Pick<Output, 'stdout'>,
  format: Exclude<TableFormat, 'text' | 'wide'>,
): (table: WatchedTable, changes: Changes) => void {
  let separator = '';
  return (_, { changed, removed }) => {
    for (const row of [...changed, ...removed.map((last) => ({ ...last, document: { ...last.document, removed: true } }))]) {
      output.stdout(format === 'name' ? `${row.name}\n` : `${separator}${renderDocument(row.document, format)}`);
      if (format === 'yaml') separator = '---\n';
    }
  };
}
