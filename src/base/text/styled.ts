import { visible, visibleInLine } from './printable.ts';

/** How a part of a text looks on a terminal that shows colours. */
export type Style = 'bold' | 'red' | 'green' | 'yellow' | 'cyan';

/** Part of a text that has a style. */
export interface StyledPart {
  readonly text: string;
  readonly style: Style;
}

/**
 * Text for a person. It holds no terminal codes: its writer escapes the control characters of every part, which may come from a host, and then adds the
 * codes of the styles.
 */
export type Text = string | readonly (string | StyledPart)[];

/** Gives a part of a text a style. */
export function styled(style: Style, text: string): StyledPart {
  return { style, text };
}

/** Joins lines to a text in which each ends with a newline. A newline inside of a line is data, and shown as `\x0a`: no host can add a line. */
export function joinLines(lines: readonly string[]): string;
export function joinLines(lines: readonly Text[]): Text;
export function joinLines(lines: readonly Text[]): Text {
  if (lines.every((line) => typeof line === 'string')) return lines.map((line) => `${keepTabs(line)}\n`).join('');
  return lines.flatMap((line) => [...partsOf(line).map(inLine), '\n']);
}

/** What a text looks like on a terminal, or in a file where `colour` is false. */
export function renderText(text: Text, colour: boolean): string {
  return partsOf(text)
    .map((part) => (typeof part === 'string' ? visible(part) : paint(part, colour)))
    .join('');
}

function partsOf(text: Text): readonly (string | StyledPart)[] {
  return typeof text === 'string' ? [text] : text;
}

function inLine(part: string | StyledPart): string | StyledPart {
  return typeof part === 'string' ? keepTabs(part) : { ...part, text: keepTabs(part.text) };
}

/** Lines of files that are shown may have tabs; a newline is never part of a line. */
function keepTabs(text: string): string {
  return text.split('\t').map(visibleInLine).join('\t');
}

const CODES: Readonly<Record<Style, number>> = { bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 };

function paint({ text, style }: StyledPart, colour: boolean): string {
  return colour ? `\u001b[${CODES[style]}m${visible(text)}\u001b[0m` : visible(text);
}
