/** One member of a range: the whole text, and what stood in each pair of brackets. */
export interface Expanded {
  readonly text: string;
  /** As written out, padded: `001`, `b`. In the order of the brackets. */
  readonly indexes: readonly string[];
}

/** Texts of a pattern, or why it is none. */
export type Expansion = { readonly items: readonly Expanded[] } | { readonly fault: RangeFault };

export interface RangeFault {
  readonly message: string;
  readonly hint: string;
}

/** A fleet has no more hosts: what is beyond is a slip of the pen, such as `[1:99999999]`. */
export const MAX_HOSTS = 100_000;

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
const HINT = 'Write a range like [1:20], [001:200], [1:20:2] or [a:f]; both ends count';

/**
 * Writes out ranges as Ansible does: `edge-[001:200]`, `rack[a:c]-node[1:20:2]`. The last range runs fastest. A begin with leading zeros pads.
 * @returns the text itself, without indexes, when there is no range in it
 * @see ansible/ansible lib/ansible/inventory (expand_hostname_range)
 */
export function expandRanges(pattern: string): Expansion {
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

/** How many of a letter range, or the numbers of a decimal one, both ends included. */
function membersOf(range: string, limit: number): readonly string[] | RangeFault {
  const [, from, to, stepText = '1'] = /^([^:]*):([^:]*)(?::([^:]*))?$/.exec(range) ?? [];
  const fault = (message: string, hint = HINT): RangeFault => ({ message: `[${range.slice(0, 40)}] ${message}`, hint });
  if (from === undefined || to === undefined) return fault('is not a range');
  const step = /^[0-9]{1,9}$/.test(stepText) ? Number(stepText) : 0;
  if (step === 0) return fault('has a step that is no positive number');
  if (/^[A-Za-z]$/.test(from) && /^[A-Za-z]$/.test(to))
    return between(LETTERS.indexOf(from), LETTERS.indexOf(to), { step, limit, fault, write: (at) => LETTERS[at] as string });
  if (!/^[0-9]{0,15}$/.test(from) || !/^[0-9]{1,15}$/.test(to)) return fault('needs two numbers, or two letters');
  const padded = from.length > 1 && from.startsWith('0');
  if (padded && from.length !== to.length) return fault('has ends of different length', `Write [${from}:${to.padStart(from.length, '0')}]`);
  const write = (value: number): string => (padded ? String(value).padStart(from.length, '0') : String(value));
  return between(Number(from), Number(to), { step, limit, fault, write });
}

interface Counting {
  readonly step: number;
  readonly limit: number;
  readonly fault: (message: string, hint?: string) => RangeFault;
  readonly write: (value: number) => string;
}

function between(first: number, last: number, { step, limit, fault, write }: Counting): readonly string[] | RangeFault {
  if (first > last) return fault('ends before it begins', 'Write the smaller end first');
  const count = Math.floor((last - first) / step) + 1;
  if (count > limit) return fault(`gives more than ${MAX_HOSTS} hosts`, 'Check its ends');
  return Array.from({ length: count }, (_, i) => write(first + i * step));
}
