/** One DER element: tag and content. */
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

  /** The content. */
  get bytes(): Uint8Array {
    return this.#source.subarray(this.#start, this.#end);
  }

  /** The element with its tag and length. */
  get whole(): Uint8Array {
    return this.#source.subarray(this.#at, this.#end);
  }
}

export const BOOLEAN = 0x01;
export const OCTET_STRING = 0x04;

/**
 * Splits DER bytes into consecutive elements.
 * @throws Error when the elements do not fill the bytes exactly, or are not valid DER
 * @see ITU-T X.690 clauses 8.1 and 10.1
 */
export function derElements(bytes: Uint8Array): readonly DerElement[] {
  const elements: DerElement[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at] as number;
    if ((tag & 0x1f) === 0x1f) throw new Error('multi-byte tags are not supported');
    const { length, start } = readLength(bytes, at + 1);
    const end = start + length;
    if (end > bytes.length) throw new Error('truncated element');
    elements.push(new DerElement(bytes, { at, start, end }));
    at = end;
  }
  return elements;
}

function readLength(bytes: Uint8Array, at: number): { readonly length: number; readonly start: number } {
  const first = bytes[at];
  if (first === undefined) throw new Error('truncated element');
  if (first < 0x80) return { length: first, start: at + 1 };
  const count = first & 0x7f;
  if (count === 0 || count > 4 || at + count >= bytes.length) throw new Error('invalid length');
  let length = 0;
  for (let i = 1; i <= count; i++) length = length * 256 + (bytes[at + i] as number);
  return { length, start: at + 1 + count };
}

/** An object identifier in dotted notation. */
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
