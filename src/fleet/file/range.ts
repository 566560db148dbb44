/** One item of a range: the text, and the value of each pair of brackets. */
export interface Expanded {
  readonly text: string;
  /** Values with padding: `001`, `b`. In the order of the brackets. */
  readonly indexes: readonly string[];
}

interface RangeFault {
  readonly message: string;
  readonly hint: string;
}

/** Maximum number of hosts of a fleet: larger ranges are typos such as `[1:99999999]`. */
export const MAX_HOSTS = 100_000;

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const HINT = 'Use a range such as [1:20], [001:200], [1:20:2] or [a:f]; both ends are included';

/**
 * Expands ranges as Ansible does: `edge-[001:200]`, `rack[a:c]-node[1:20:2]`. The last range varies fastest.
 * Leading zeros of the start pad.
 * @returns the text itself without indexes if it has no range
 * @see ansible/ansible lib/ansible/inventory (expand_hostname_range)
 */
export function expandRanges(pattern: string): { readonly items: readonly Expanded[] } | { readonly fault: RangeFault } {
  if (!/[[\]]/.test(pattern)) return { items: [{ text: pattern, indexes: [] }] };
  const parts = pattern.split(/\[([^[\]]*)\]/);
  const [unmatched] = /[[\]]/.exec(parts.find((part) => /[[\]]/.test(part)) ?? '') ?? [];
  if (unmatched !== undefined) return { fault: { message: `unmatched "${unmatched}"`, hint: HINT } };
  let items: readonly Expanded[] = [{ text: parts[0] as string, indexes: [] }];
  for (let i = 1; i < parts.length; i += 2) {
    const members = membersOf(parts[i] as string, MAX_HOSTS / items.length);
    if (!Array.isArray(members)) return { fault: members as RangeFault };
    const tail = parts[i + 1] as string;
    items = items.flatMap(({ text, indexes }) =>
      (members as readonly string[]).map((member) => ({ text: text + member + tail, indexes: [...indexes, member] })),
    );
  }
  return { items };
}

/** The letters or numbers of a range, both ends included. */
function membersOf(range: string, limit: number): readonly string[] | RangeFault {
  const [, from, to, stepText = '1'] = /^([^:]*):([^:]*)(?::([^:]*))?$/.exec(range) ?? [];
  const fault = (message: string, hint = HINT): RangeFault => ({ message: `[${range.slice(0, 40)}] ${message}`, hint });
  if (from === undefined || to === undefined) return fault('is not a range');
  const step = /^[0-9]{1,9}$/.test(stepText) ? Number(stepText) : 0;
  if (step === 0) return fault('has a step that is not a positive number');
  const between = (first: number, last: number, write: (value: number) => string): readonly string[] | RangeFault => {
    if (first > last) return fault('has an end below its start', 'Put the smaller value first');
    const count = Math.floor((last - first) / step) + 1;
    if (count > limit) return fault(`has more than ${MAX_HOSTS} hosts`, 'Check both ends of the range');
    return Array.from({ length: count }, (_, i) => write(first + i * step));
  };
  if (/^[A-Za-z]$/.test(from) && /^[A-Za-z]$/.test(to))
    return between(LETTERS.indexOf(from), LETTERS.indexOf(to), (at) => LETTERS[at] as string);
  if (!/^[0-9]{0,15}$/.test(from) || !/^[0-9]{1,15}$/.test(to)) return fault('must have two numbers or two letters');
  const padded = from.length > 1 && from.startsWith('0');
  if (padded && from.length !== to.length)
    return fault('has a start and an end with different numbers of digits', `Use [${from}:${to.padStart(from.length, '0')}]`);
  return between(Number(from), Number(to), (value) => (padded ? String(value).padStart(from.length, '0') : String(value)));
}
