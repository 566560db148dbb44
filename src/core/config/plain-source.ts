import type { Position, Problem } from '../errors.ts';
import { readPlainYaml } from './plain-yaml.ts';
import type { Source } from './source.ts';

/** What a text may hold, so that reading it takes bounded time and memory. */
export interface SourceLimits {
  readonly characters: number;
  readonly nodes: number;
  /** The general reader takes up to ten microseconds for a character: less than `characters`. */
  readonly anyCharacters: number;
  /** More than such a text can have without aliases. */
  readonly anyNodes: number;
  /** How to mend a text beyond the limits. */
  readonly mend: string;
}

/** Of one configuration document: objects above this can be stored by no API server. */
export const CONFIG_LIMITS: SourceLimits = {
  characters: 1024 * 1024,
  nodes: 200_000,
  anyCharacters: 64 * 1024,
  anyNodes: 40_000,
  mend: 'A KubeletConfiguration has a few kilobytes: check that this is the right file',
};
export const MAX_DEPTH = 200;

/**
 * `parseSource` for the texts that most configuration files are, without the general reader: see `readPlainYaml`.
 * @returns null when the text is not plain and `parseAnySource` has to be asked. Codes: CONFIG_TOO_LARGE, CONFIG_NOT_TEXT
 */
export function parsePlainSource(text: string, file: string, limits: SourceLimits = CONFIG_LIMITS): Source | null {
  const refused = refuseText(text, file, limits);
  if (refused !== null) return { documents: [], problems: [refused] };
  const roots = readPlainYaml(text, { depth: MAX_DEPTH, nodes: limits.nodes });
  if (roots === null) return null;
  const positionAt = positionsIn(text, file);
  return { documents: roots.map((root, index) => ({ file, index, root, positionAt })), problems: [] };
}

/** What no YAML file may hold (YAML 1.1, 5.1 Character Set), and what decoding puts in place of bytes that are not UTF-8. */
const NOT_TEXT = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffd-\uffff]/;

function whyNotText(char: string): string {
  if (char === '\0') return 'the file holds a NUL byte: it is binary or UTF-16';
  return char === '\ufffd'
    ? 'the file is not valid UTF-8'
    : `the file holds a control character (0x${char.charCodeAt(0).toString(16).padStart(2, '0')})`;
}

function refuseText(text: string, file: string, limits: SourceLimits): Problem | null {
  const position = { file, line: 1, column: 1 };
  if (text.length > limits.characters) {
    const message = `the file has ${text.length} characters, more than ${limits.characters}`;
    return { code: 'CONFIG_TOO_LARGE', message, mend: limits.mend, position };
  }
  const bad = NOT_TEXT.exec(text);
  if (!bad) return null;
  const before = text.slice(0, bad.index).split('\n');
  const mend = 'Save it as UTF-8';
  return {
    code: 'CONFIG_NOT_TEXT',
    message: whyNotText(bad[0]),
    mend,
    position: { file, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 },
  };
}

/** Where the lines begin is only looked for when a place is asked for. */
function positionsIn(text: string, file: string): (offset: number) => Position {
  let starts: readonly number[] | null = null;
  return (offset) => {
    starts ??= lineStarts(text);
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return { file, line: low + 1, column: offset - (starts[low] as number) + 1 };
  };
}

function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}
