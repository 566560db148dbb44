import { formatMinor, type Minor, NEWEST_MINOR } from '../../kubelet/catalogue/catalogue.ts';
import type { Period } from './explanation.ts';

/**
 * Turns `from` entries into periods, each of which ends before the next one begins.
 * @param last the last minor version that has the item
 */
export function periods<E extends { readonly from: Minor }, T>(
  list: readonly E[],
  last: Minor,
  pick: (entry: E) => T,
): readonly Period<T>[] {
  return list.map((entry, index) => {
    const next = list[index + 1];
    const to = next === undefined ? (last >= NEWEST_MINOR ? null : last) : next.from - 1;
    return { from: formatMinor(entry.from), to: to === null ? null : formatMinor(to), value: pick(entry) };
  });
}
