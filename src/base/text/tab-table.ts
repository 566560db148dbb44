/**
 * Renders rows like Go's tabwriter with kubeadm's settings: columns at least 10 wide, separated by three spaces; the last
 * column has no padding.
 * @returns lines without a final newline
 */
export function renderTabTable(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(10, ...rows.map((row) => (row[i] ?? '').length + 3)));
  return rows.map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join(''));
}
