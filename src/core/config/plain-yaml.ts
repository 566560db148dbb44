import { resolvePlainScalar } from '../text/yaml-scalar.ts';
import type { SourceEntry, SourceNode } from './source.ts';

/** What a plain text may hold; beyond that the general reader says what is wrong. */
export interface PlainYamlLimits {
  readonly depth: number;
  readonly nodes: number;
}

/**
 * Reads the YAML that most configuration files are written in, several times faster than a general reader: block mappings and lists with plain
 * names, values in one line (plain, or quoted without escapes), flow collections in one line, and JSON. It gives exactly what the general
 * reader gives, or null for a text that has anything else in it (anchors, tags, block scalars, tabs, CRLF ...) or is wrong.
 * @param text without what no YAML file may hold
 * @returns the root of each document, null where one is empty; or null
 */
export function readPlainYaml(text: string, limits: PlainYamlLimits): readonly (SourceNode | null)[] | null {
  if (/[\t\r\ufeff]/.test(text)) return null;
  try {
    return new PlainYamlReader(text, limits).readDocuments();
  } catch (error) {
    if (error === NOT_PLAIN) return null;
    throw error;
  }
}

/** Ends the reading of a text that is not plain. One object for all: a stack trace would cost more than the reading. */
const NOT_PLAIN = new Error('not plain YAML');

const NAME = /[A-Za-z_][\w./-]*/y;
/** Names that YAML 1.1 takes for booleans and null are among the short ones. */
const LONGEST_WORD = 5;
/** In flow collections, where more characters have a meaning. */
const FLOW_WORD = /[\w][\w.%/+-]*/y;
/** YAML allows 1024 characters before the colon. */
const LONGEST_NAME = 1000;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const QUOTE = 0x22;
const HASH = 0x23;
const APOSTROPHE = 0x27;
const COMMA = 0x2c;
const DASH = 0x2d;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** What a plain value can't begin with: indicators, and the dot of `...`. Dashes are looked at on their own. */
const INDICATORS = new Set([...'?:,[]{}#&*!|>\'"%@`'].map((char) => char.charCodeAt(0)));

/** Goes through the text line by line; the position is shared by all methods. */
class PlainYamlReader {
  readonly #text: string;
  readonly #limits: PlainYamlLimits;
  /** Where the next line begins. */
  #next = 0;
  /** Of the current line: its first character that is no blank, its column, and where the line ends. Column -1: there is no line. */
  #at = 0;
  #column = -1;
  #end = 0;
  /** The current line is `---`. */
  #marker = false;
  #nodes = 0;
  #depth = 0;

  constructor(text: string, limits: PlainYamlLimits) {
    this.#text = text;
    this.#limits = limits;
  }

  readDocuments(): readonly (SourceNode | null)[] {
    const roots: (SourceNode | null)[] = [];
    this.#nextLine();
    while (this.#column >= 0) {
      // Comments before the first marker belong to its document.
      if (this.#marker) this.#nextLine();
      roots.push(this.#column < 0 || this.#marker ? null : this.#readRoot());
      if (this.#column >= 0 && !this.#marker) throw NOT_PLAIN;
    }
    return roots;
  }

  #readRoot(): SourceNode {
    const first = this.#text.charCodeAt(this.#at);
    if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return this.#readBlock(this.#column);
    // JSON: may go over many lines, and is all there is.
    this.#end = this.#text.length;
    const node = this.#readFlow();
    this.#skipBlanks();
    if (this.#at < this.#end) throw NOT_PLAIN;
    this.#column = -1;
    return node;
  }

  /** Goes to the next line that has something in it. */
  #nextLine(): void {
    const text = this.#text;
    for (let start = this.#next; start < text.length; ) {
      let end = text.indexOf('\n', start);
      if (end < 0) end = text.length;
      let at = start;
      while (text.charCodeAt(at) === SPACE) at++;
      if (at < end && text.charCodeAt(at) !== HASH) {
        this.#next = end + 1;
        this.#setLine(start, at, end);
        return;
      }
      start = end + 1;
    }
    this.#next = text.length;
    this.#column = -1;
    this.#marker = false;
  }

  #setLine(start: number, at: number, end: number): void {
    this.#at = at;
    this.#column = at - start;
    this.#end = end;
    this.#marker = false;
    if (at > start) return;
    if (this.#text.startsWith('...', at)) throw NOT_PLAIN;
    if (!this.#text.startsWith('---', at)) return;
    if (this.#text.slice(at + 3, end).trim() !== '') throw NOT_PLAIN;
    this.#marker = true;
  }

  /** The mapping or list whose first line is the current one. */
  #readBlock(column: number): SourceNode {
    this.#enter();
    const node = this.#isItem() ? this.#readItems(column) : this.#readMembers(column);
    this.#depth--;
    return node;
  }

  #enter(): void {
    if (++this.#depth > this.#limits.depth) throw NOT_PLAIN;
  }

  #count(): void {
    if (++this.#nodes > this.#limits.nodes) throw NOT_PLAIN;
  }

  #isItem(): boolean {
    return this.#text.charCodeAt(this.#at) === DASH && this.#isBlank(this.#at + 1);
  }

  #isBlank(at: number): boolean {
    return at >= this.#end || this.#text.charCodeAt(at) === SPACE;
  }

  #readMembers(column: number): SourceNode {
    this.#count();
    const offset = this.#at;
    const entries: SourceEntry[] = [];
    while (this.#column === column && !this.#marker && !this.#isItem()) {
      const keyOffset = this.#at;
      const key = this.#readName();
      this.#at += key.length;
      if (this.#text.charCodeAt(this.#at) !== COLON || !this.#isBlank(++this.#at)) throw NOT_PLAIN;
      entries.push({ key, keyOffset, value: this.#readValue(column) });
    }
    this.#leave(column);
    return { kind: 'map', entries, offset };
  }

  /** What follows a colon: on the same line, below it further right, or a list below it at the same column. */
  #readValue(column: number): SourceNode {
    this.#skipSpaces();
    if (this.#hasContent()) return this.#readInline(column);
    const offset = this.#at;
    this.#nextLine();
    if (!this.#marker) {
      if (this.#column > column) return this.#readBlock(this.#column);
      if (this.#column === column && this.#isItem()) return this.#readList(column);
    }
    return this.#nothing(offset);
  }

  #readList(column: number): SourceNode {
    this.#enter();
    const node = this.#readItems(column);
    this.#depth--;
    return node;
  }

  #readItems(column: number): SourceNode {
    this.#count();
    const offset = this.#at;
    const items: SourceNode[] = [];
    while (this.#column === column && !this.#marker && this.#isItem()) {
      const dash = this.#at++;
      this.#skipSpaces();
      items.push(this.#readItem(column, column + this.#at - dash));
    }
    if (this.#column > column) throw NOT_PLAIN;
    return { kind: 'list', items, offset };
  }

  /** What follows a dash; `inner` is the column at which a mapping or list on the same line begins. */
  #readItem(column: number, inner: number): SourceNode {
    if (!this.#hasContent()) {
      const offset = this.#at;
      this.#nextLine();
      return this.#column > column && !this.#marker ? this.#readBlock(this.#column) : this.#nothing(offset);
    }
    if (!this.#isItem() && !this.#isMember()) return this.#readInline(column);
    this.#column = inner;
    return this.#readBlock(inner);
  }

  #isMember(): boolean {
    NAME.lastIndex = this.#at;
    return NAME.test(this.#text) && this.#text.charCodeAt(NAME.lastIndex) === COLON && this.#isBlank(NAME.lastIndex + 1);
  }

  /** After the last member: the next line must belong to something further left. */
  #leave(column: number): void {
    if (this.#column > column) throw NOT_PLAIN;
  }

  #readName(): string {
    NAME.lastIndex = this.#at;
    const name = NAME.exec(this.#text)?.[0];
    if (name === undefined || name.length > LONGEST_NAME) throw NOT_PLAIN;
    if (name.length <= LONGEST_WORD && resolvePlainScalar(name).type !== 'string') throw NOT_PLAIN;
    return name;
  }

  #skipSpaces(): void {
    while (this.#text.charCodeAt(this.#at) === SPACE) this.#at++;
  }

  /** Blanks and ends of lines, in JSON. */
  #skipBlanks(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== SPACE && (code !== NEWLINE || this.#at >= this.#end)) return;
      this.#at++;
    }
  }

  /** More than blanks and a comment is left of the line. */
  #hasContent(): boolean {
    return this.#at < this.#end && this.#text.charCodeAt(this.#at) !== HASH;
  }

  #nothing(offset: number): SourceNode {
    this.#count();
    return { kind: 'scalar', scalar: { type: 'null', value: null }, text: '', offset };
  }

  /** A value that ends with the line. What goes on in the next line is not plain. */
  #readInline(column: number): SourceNode {
    const first = this.#text.charCodeAt(this.#at);
    let node: SourceNode;
    if (first === QUOTE || first === APOSTROPHE || first === OPEN_BRACE || first === OPEN_BRACKET) {
      node = first === QUOTE || first === APOSTROPHE ? this.#readQuoted(first) : this.#readFlow();
      const after = this.#at;
      this.#skipSpaces();
      if (this.#at < this.#end && (this.#at === after || this.#text.charCodeAt(this.#at) !== HASH)) throw NOT_PLAIN;
    } else node = this.#readPlain(first);
    this.#nextLine();
    if (this.#column > column) throw NOT_PLAIN;
    return node;
  }

  #readPlain(first: number): SourceNode {
    const text = this.#text;
    const offset = this.#at;
    if (INDICATORS.has(first) || (first === DASH && this.#isBlank(offset + 1))) throw NOT_PLAIN;
    let end = this.#end;
    for (let at = offset; at < end; at++) {
      const code = text.charCodeAt(at);
      if (code === COLON && this.#isBlank(at + 1)) throw NOT_PLAIN;
      if (code === HASH && text.charCodeAt(at - 1) === SPACE) end = at;
    }
    while (text.charCodeAt(end - 1) === SPACE) end--;
    return this.#plain(text.slice(offset, end), offset);
  }

  #plain(text: string, offset: number): SourceNode {
    this.#count();
    const scalar = resolvePlainScalar(text);
    if (scalar.type === 'float' && !Number.isFinite(scalar.value)) throw NOT_PLAIN;
    return { kind: 'scalar', scalar, text, offset };
  }

  #readQuoted(quote: number): SourceNode {
    this.#count();
    const offset = this.#at;
    const text = this.#quotedText(quote);
    return { kind: 'scalar', scalar: { type: 'string', value: text }, text, offset };
  }

  #quotedText(quote: number): string {
    const text = this.#text;
    const from = this.#at + 1;
    for (let at = from; at < this.#end; at++) {
      const code = text.charCodeAt(at);
      if (code === NEWLINE || (code === BACKSLASH && quote === QUOTE)) break;
      if (code !== quote) continue;
      if (quote === APOSTROPHE && text.charCodeAt(at + 1) === APOSTROPHE) break;
      this.#at = at + 1;
      return text.slice(from, at);
    }
    throw NOT_PLAIN;
  }

  #readFlow(): SourceNode {
    const first = this.#text.charCodeAt(this.#at);
    if (first === QUOTE || first === APOSTROPHE) return this.#readQuoted(first);
    if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return this.#readFlowPlain();
    this.#count();
    this.#enter();
    const offset = this.#at++;
    const node: SourceNode =
      first === OPEN_BRACE
        ? { kind: 'map', entries: this.#readFlowEntries(), offset }
        : { kind: 'list', items: this.#readFlowItems(), offset };
    this.#depth--;
    return node;
  }

  #readFlowPlain(): SourceNode {
    const offset = this.#at;
    const negative = this.#text.charCodeAt(offset) === DASH ? 1 : 0;
    FLOW_WORD.lastIndex = offset + negative;
    if (!FLOW_WORD.test(this.#text)) throw NOT_PLAIN;
    this.#at = FLOW_WORD.lastIndex;
    return this.#plain(this.#text.slice(offset, this.#at), offset);
  }

  #readFlowItems(): readonly SourceNode[] {
    const items: SourceNode[] = [];
    if (this.#closes(CLOSE_BRACKET)) return items;
    do {
      this.#skipBlanks();
      items.push(this.#readFlow());
    } while (this.#hasMore(CLOSE_BRACKET));
    return items;
  }

  #readFlowEntries(): readonly SourceEntry[] {
    const entries: SourceEntry[] = [];
    if (this.#closes(CLOSE_BRACE)) return entries;
    do {
      this.#skipBlanks();
      const keyOffset = this.#at;
      const first = this.#text.charCodeAt(keyOffset);
      const quoted = first === QUOTE || first === APOSTROPHE;
      const key = quoted ? this.#quotedText(first) : this.#readName();
      if (key.length > LONGEST_NAME) throw NOT_PLAIN;
      if (!quoted) this.#at += key.length;
      if (this.#text.charCodeAt(this.#at++) !== COLON) throw NOT_PLAIN;
      if (!quoted && !this.#isBlank(this.#at)) throw NOT_PLAIN;
      this.#skipBlanks();
      entries.push({ key, keyOffset, value: this.#readFlow() });
    } while (this.#hasMore(CLOSE_BRACE));
    return entries;
  }

  /** Takes the closing bracket of an empty collection. */
  #closes(bracket: number): boolean {
    this.#skipBlanks();
    if (this.#text.charCodeAt(this.#at) !== bracket || this.#at >= this.#end) return false;
    this.#at++;
    return true;
  }

  /** Takes a comma, or the closing bracket. */
  #hasMore(bracket: number): boolean {
    this.#skipBlanks();
    const code = this.#text.charCodeAt(this.#at++);
    if (this.#at > this.#end || (code !== COMMA && code !== bracket)) throw NOT_PLAIN;
    return code === COMMA;
  }
}
