import { escapeUnprintable, escapeUnprintableInLine } from './printable.ts';

/** The style of a part of a text on a terminal with colours. */
export type Style = 'bold' | 'red' | 'green' | 'yellow' | 'cyan';

/** Part of a text with a style. */
export interface StyledPart {
  readonly text: string;
  readonly style: Style;
}

/**
 * Without terminal codes: the writer escapes the control characters of every part, which may originate from a
 * host, and then adds the codes of the styles.
 */
export type Text = string | readonly (string | StyledPart)[];

export function styled(style: Style, text: string): StyledPart {
  return { style, text };
}

/** A newline inside a line is data and is shown as `\x0a`, so that no host can add a line. */
export function joinLines(lines: readonly string[]): string;
export function joinLines(lines: readonly Text[]): Text;
export function joinLines(lines: readonly Text[]): Text {
  if (lines.every((line) => typeof line === 'string')) return lines.map((line) => `${keepTabs(line)}\n`).join('');
  return lines.flatMap((line) => [...partsOf(line).map(inLine), '\n']);
}

/** Renders a text for a terminal, or without styles when `colour` is false. */
export function renderText(text: Text, colour: boolean): string {
  return partsOf(text)
    .map((part) => (typeof part === 'string' ? escapeUnprintable(part) : paint(part, colour)))
    .join('');
}

export function partsOf(text: Text): readonly (string | StyledPart)[] {
  return typeof text === 'string' ? [text] : text;
}

function inLine(part: string | StyledPart): string | StyledPart {
  return typeof part === 'string' ? keepTabs(part) : { ...part, text: keepTabs(part.text) };
}

/** Lines of displayed files may contain tabs; a newline is never part of a line. */
function keepTabs(text: string): string {
  return text.split('\t').map(escapeUnprintableInLine).join('\t');
}

const CODES: Readonly<Record<Style, number>> = { bold: 1, red: 31, green: 32, yellow: 33, cyan: 36 };

function paint({ text, style }: StyledPart, colour: boolean): string {
  return colour ? `\u001b[${CODES[style]}m${escapeUnprintable(text)}\u001b[0m` : escapeUnprintable(text);
}
