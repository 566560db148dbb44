/** One element of DER: its tag and what is in it. */
export class DerElement {
  readonly tag: number;
  readonly #source: Uint8Array;
  readonly #at: number;
  readonly #start: number;
  readonly #end: number;

  constructor(source: Uint8Array, { at, start, end }: { readonly at: number; readonly start: number; readonly end: number }) {
    this.tag = source[at] as number;
    this.#source = source;
    this.#at = at;
    this.#start = start;
    this.#end = end;
  }

  /** What is in it. */
  get bytes(): Uint8Array {
    return this.#source.subarray(this.#start, this.#end);
  }

  /** With its tag and length. */
  get whole(): Uint8Array {
    return this.#source.subarray(this.#at, this.#end);
  }
}

export const BOOLEAN = 0x01;
export const OCTET_STRING = 0x04;

/**
 * The elements in a piece of DER, one after the other.
 * @throws Error when they do not fill it exactly, or have a form DER does not allow
 * @see ITU-T X.690 clauses 8.1 and 10.1
 */
export function derElements(bytes: Uint8Array): readonly DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at] as number;
    if ((tag & 0x1f) === 0x1f) throw new Error('a tag of several bytes');
    const { length, start } = readLength(bytes, at + 1);
    const end = start + length;
    if (end > bytes.length) throw new Error('an element is cut off');
    elements.push(new DerElement(bytes, { at, start, end }));
    at = end;
  }
  return elements;
}

function readLength(bytes: Uint8Array, at: number): { readonly length: number; readonly start: number } {
  const first = bytes[at];
  if (first === undefined) throw new Error('an element is cut off');
  if (first < 0x80) return { length: first, start: at + 1 };
  const count = first & 0x7f;
  if (count === 0 || count > 4 || at + count >= bytes.length) throw new Error('a length of no known form');
  let length = 0;
  for (let i = 1; i <= count; i++) length = length * 256 + (bytes[at + i] as number);
  return { length, start: at + 1 + count };
}

/** An object identifier with dots. */
export function derOid(bytes: Uint8Array): string {
  const numbers: number[] = [];
  let value = 0;
  for (const byte of bytes) {
    value = value * 128 + (byte & 0x7f);
    if ((byte & 0x80) !== 0) continue;
    numbers.push(value);
    value = 0;
  }
  const [first = 0, ...rest] = numbers;
  const root = Math.min(Math.floor(first / 40), 2);
  return [root, first - root * 40, ...rest].join('.');
}
