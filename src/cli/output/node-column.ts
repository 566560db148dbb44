import { namesText } from '../../base/text/name-ranges.ts';

/**
 * The column NODE, which every table of hosts has if a Node has another name than its host, and no table has otherwise.
 * @param all the hosts of the table with their Nodes; absent or null: unknown
 */
export function nodeColumn(all: readonly { readonly host: string; readonly node?: string | null | undefined }[]): {
  readonly header: readonly string[];
  /** The cells of the row of a host, or of several hosts that share a row. */
  cells(...hosts: readonly string[]): readonly string[];
} {
  const nodes = new Map(all.map(({ host, node }) => [host, node ?? null]));
  if (all.every(({ host, node }) => node === undefined || node === null || node === host)) return { header: [], cells: () => [] };
  return { header: ['NODE'], cells: (...hosts) => [namesText(hosts.map((host) => nodes.get(host) ?? '-'))] };
}
