/** `n2` before `n10`. The first collator of a program costs 8 ms, which a run on one host does not need. */
export function sortedNames(names: readonly string[]): readonly string[] {
  return names.length < 2 ? names : names.toSorted(new Intl.Collator('en', { numeric: true }).compare);
}

/** Neighbours in display order that differ in one number become a range in fleet file syntax, `edge-[001:020]`. */
export function nameRanges(names: readonly string[]): readonly string[] {
  const ranges: Range[] = [];
  for (const name of names) {
    const [, head = '', digits, tail = ''] = /^(.*?)([0-9]{1,9})([^0-9]*)$/s.exec(name) ?? [];
    const last = ranges.at(-1);
    if (digits === undefined) ranges.push({ head: name, first: null, last: '', tail: '' });
    else if (last !== undefined && last.first !== null && last.head === head && last.tail === tail && follows(last.last, digits))
      last.last = digits;
    else ranges.push({ head, first: digits, last: digits, tail });
  }
  return ranges.flatMap(textsOf);
}

const MOST_NAMES = 12;

/** A shortened list of host names; long lists are truncated. */
export function namesText(names: readonly string[]): string {
  const ranges = nameRanges(names);
  return ranges.length <= MOST_NAMES ? ranges.join(', ') : `${ranges.slice(0, MOST_NAMES).join(', ')}, …`;
}

/** The first names of a list, and the number of the others: `n1, n2 and 3 more`. */
export function firstNames(names: readonly string[], most: number): string {
  return `${names.slice(0, most).join(', ')}${names.length > most ? ` and ${names.length - most} more` : ''}`;
}

interface Range {
  readonly head: string;
  readonly first: string | null;
  last: string;
  readonly tail: string;
}

function follows(before: string, after: string): boolean {
  return Number(after) === Number(before) + 1 && after === String(Number(after)).padStart(before.length, '0');
}

function textsOf({ head, first, last, tail }: Range): readonly string[] {
  if (first === null) return [head];
  if (first === last) return [`${head}${first}${tail}`];
  if (Number(last) === Number(first) + 1) return [`${head}${first}${tail}`, `${head}${last}${tail}`];
  return [`${head}[${first}:${last}]${tail}`];
}
