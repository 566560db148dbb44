/** Longer names cannot be a misspelt field or option. */
const MAX_LENGTH = 64;

/**
 * The first candidate within the fewest typing errors (insertions, deletions, replacements, transpositions),
 * ignoring case: one error up to four letters, two up to twelve, three beyond; null: none.
 * @param maxDistance lowers the number of allowed errors
 */
export function closestName(name: string, candidates: Iterable<string>, maxDistance = 3): string | null {
  if (name.length > MAX_LENGTH) return null;
  const limit = Math.min(maxDistance, name.length <= 4 ? 1 : name.length <= 12 ? 2 : 3);
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(beforeLast, j - 2) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(at(last, j - 1) + cost, at(last, j) + 1, at(row, j - 1) + 1, swap));
    }
    [beforeLast, last] = [last, row];
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
