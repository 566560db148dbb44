import { loadFleet } from './load.ts';
import { expandRanges } from './range.ts';

/** The lines of a host in a fleet file. */
interface HostEntryText {
  /** All hosts that the entry declares. */
  readonly hosts: readonly string[];
  /** The entry as a list of one item, indented from the first column. */
  readonly text: string;
  /** Number of lines above the entry. */
  readonly linesBefore: number;
  /** The number of columns by which the entry is indented in the file. */
  readonly indentation: number;
  /** The text of the file with another text of the entry. */
  replace(text: string): string;
}

/**
 * Finds the entry of a host in the text of a fleet file, with the comments inside it.
 * @returns null: no entry declares the host, for example because it is imported; `flow`: the entry has no lines of its own
 */
export function hostEntryText(file: string, host: string): HostEntryText | 'flow' | null {
  const { fleet, document } = loadFleet(file, '');
  const index = (fleet.hosts ?? []).findIndex(({ name }) => namesOf(name).includes(host));
  const root = document?.root;
  const list = root?.kind === 'map' ? root.entries.find(({ key }) => key === 'hosts')?.value : undefined;
  const offset = list?.kind === 'list' ? list.items[index]?.offset : undefined;
  if (document === null || offset === undefined) return null;
  const lines = file.split(/(?<=\n)/);
  const start = document.positionAt(offset).line - 1;
  const [, dash] = /^( *)- /.exec(lines[start] ?? '') ?? [];
  if (dash === undefined) return 'flow';
  const end = endOfEntry(lines, start, dash.length);
  const unindented = lines.slice(start, end).map((line) => (line.startsWith(dash) ? line.slice(dash.length) : line));
  return {
    hosts: namesOf(fleet.hosts?.[index]?.name ?? ''),
    text: unindented.join(''),
    linesBefore: start,
    indentation: dash.length,
    replace: (text: string) => {
      const isLast = end === lines.length;
      const entry = text.split(/(?<=\n)/).map((line) => (line.trim() === '' ? line : dash + line));
      const isOpen = !isLast && !text.endsWith('\n');
      return [...lines.slice(0, start), ...entry, ...(isOpen ? ['\n'] : []), ...lines.slice(end)].join('');
    },
  };
}

/** The line after the last one of an entry. Comments between two entries belong to the second one. */
function endOfEntry(lines: readonly string[], start: number, indentation: number): number {
  let end = start + 1;
  for (let i = end; i < lines.length; i++) {
    const line = lines[i] ?? '';
    const isDeeper = line.length - line.trimStart().length > indentation && line.trim() !== '';
    if (isDeeper) end = i + 1;
    else if (!/^\s*(#.*)?$/.test(line)) break;
  }
  return end;
}

function namesOf(pattern: string): readonly string[] {
  const expansion = expandRanges(pattern);
  return 'items' in expansion ? expansion.items.map(({ text }) => text) : [];
}
