import { joinLines } from '../base/text/styled.ts';
import { renderTable } from '../base/text/table.ts';
import type { JsonPathFormat } from './output/jsonpath-format.ts';
import type { Output } from './output/services.ts';
import { renderDocument } from './output/show-document.ts';
import { withCellStates } from './output/state-words.ts';

/** Format of a table: `wide` adds columns, `name` prints TYPE/NAME of each row. */
export type TableFormat = 'text' | 'wide' | 'name' | 'json' | 'yaml' | JsonPathFormat;

/** `-o` and `--no-headers`. */
export interface TableRequest {
  readonly format: TableFormat;
  readonly headers: boolean;
}

export interface TableRow {
  /** TYPE/NAME, as arguments accept it. */
  readonly name: string;
  readonly cells: readonly string[];
  /** Cells of the columns of `wide`. */
  readonly wide?: readonly string[] | undefined;
}

/** A result that is printed as a table or as a document. */
export interface Table {
  readonly columns: readonly string[];
  /** Additional columns of `-o wide`. */
  readonly wide?: readonly string[] | undefined;
  readonly rows: readonly TableRow[];
  /** Line that replaces a table without rows. Default: the header alone. */
  readonly empty?: string;
  /** Lines below the table. */
  readonly notes?: readonly string[];
  readonly document: () => object;
}

/** Prints a table in the requested format, on standard output. */
export function showTable(output: Pick<Output, 'stdout'>, table: Table, { format, headers }: TableRequest): void {
  const { rows, empty, notes = [], document } = table;
  if (format === 'name') output.stdout(joinLines(rows.map(({ name }) => name)));
  else if (format !== 'text' && format !== 'wide') output.stdout(renderDocument(document(), format));
  else if (rows.length === 0 && empty !== undefined) output.stdout(`${empty}\n`);
  else output.stdout(joinLines([...tableLines(table, { format, headers }).map(withCellStates), ...notes]));
}

/** The lines of a table as text. */
function tableLines(table: Pick<Table, 'columns' | 'wide' | 'rows'>, request: TableRequest): readonly string[] {
  return renderTable(tableCells(table, request));
}

/** The header, if it is requested, and the rows. */
export function tableCells(
  { columns, wide = [], rows }: Pick<Table, 'columns' | 'wide' | 'rows'>,
  { format, headers }: TableRequest,
): readonly (readonly string[])[] {
  const isWide = format === 'wide';
  const header = headers ? [[...columns, ...(isWide ? wide : [])]] : [];
  return [...header, ...rows.map((row) => [...row.cells, ...(isWide ? (row.wide ?? []) : [])])];
}
