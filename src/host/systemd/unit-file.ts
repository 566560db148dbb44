import { trimTrailing } from '../../base/text/trim-trailing.ts';

/** One assignment of a unit file. The order matters, because an empty value resets a list. */
export interface UnitDirective {
  readonly section: string;
  readonly line: number;
  readonly name: string;
  readonly value: string;
}

/**
 * Parses a unit file or drop-in: comments (`#`, `;`) and empty lines are skipped, continuation lines joined
 * with a space.
 * @see systemd.syntax(7); the test cases were verified with systemd 252
 */
export function parseUnitFile(text: string): readonly UnitDirective[] {
  return readLines(text).directives;
}

/** A line that systemd ignores with a warning in its journal. */
interface IgnoredLine {
  readonly line: number;
  readonly text: string;
}

/**
 * The lines that systemd ignores although they set something: an assignment outside of a section, in another section, or
 * to a name that systemd does not know.
 * @see systemd 252 src/shared/conf-parser.c parse_line, next_assignment
 */
export function ignoredUnitLines(text: string): readonly IgnoredLine[] {
  const { directives, others } = readLines(text);
  const ignored = directives.filter(({ section, name }) => {
    if (/^X-/.test(section) || /^X-/.test(name)) return false;
    return (
      !/^(?:Unit|Service|Install)$/.test(section) || !/^[A-Z][A-Za-z0-9]*$/.test(name) || (IN_SERVICE.test(name) && section !== 'Service')
    );
  });
  return [...ignored.map(({ line, name, value }) => ({ line, text: `${name}=${value}` })), ...others].toSorted((a, b) => a.line - b.line);
}

/** Settings of the section `[Service]` alone that determine a command line. */
const IN_SERVICE = /^(?:Environment|EnvironmentFile|ExecStart)$/;

function readLines(text: string): { readonly directives: readonly UnitDirective[]; readonly others: readonly IgnoredLine[] } {
  const directives: UnitDirective[] = [];
  const others: IgnoredLine[] = [];
  let section = '';
  for (const { text: content, line } of logicalLines(text)) {
    const heading = /^\[(.+)\]$/.exec(content);
    if (heading) {
      section = heading[1] as string;
      continue;
    }
    const equals = content.indexOf('=');
    if (equals > 0) directives.push({ section, line, name: content.slice(0, equals).trim(), value: content.slice(equals + 1).trim() });
    else others.push({ line, text: content });
  }
  return { directives, others };
}

/** Lines with their continuation lines, each with the number of its first line. */
function logicalLines(text: string): readonly IgnoredLine[] {
  const lines: IgnoredLine[] = [];
  let open = '';
  let first = 0;
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (/^\s*[#;]/.test(line)) continue;
    if (open === '') first = index + 1;
    if (continues(line)) {
      open += `${line.slice(0, -1)} `;
      continue;
    }
    const whole = (open + line).trim();
    open = '';
    if (whole !== '') lines.push({ text: whole, line: first });
  }
  return open.trim() === '' ? lines : [...lines, { text: open.trim(), line: first }];
}

/** An odd number of backslashes at the very end continues the line. */
function continues(line: string): boolean {
  return (line.length - trimTrailing(line, '\\').length) % 2 === 1;
}

/** Whether two unit files have the same directives in the same order, ignoring comments and white space. */
export function sameUnitFile(a: string, b: string): boolean {
  const [left, right] = [parseUnitFile(a), parseUnitFile(b)];
  return (
    left.length === right.length &&
    left.every((item, i) => item.section === right[i]?.section && item.name === right[i]?.name && item.value === right[i]?.value)
  );
}

/** Values of a directive; an empty assignment resets the list, as in systemd. */
export function unitValues(directives: readonly UnitDirective[], section: string, name: string): readonly string[] {
  const values = directives.filter((each) => each.section === section && each.name === name).map(({ value }) => value);
  return values.slice(values.lastIndexOf('') + 1);
}
