import { trimTrailing } from '../../base/text/trim-trailing.ts';

/** One assignment of a unit file. The order matters, because an empty value resets a list. */
export interface UnitDirective {
  readonly section: string;
  readonly name: string;
  readonly value: string;
}

/**
 * Parses a unit file or drop-in: comments (`#`, `;`) and empty lines are skipped, continuation lines joined
 * with a space.
 * @see systemd.syntax(7); the test cases were verified with systemd 252
 */
export function parseUnitFile(text: string): readonly UnitDirective[] {
  const directives: UnitDirective[] = [];
  let section = '';
  for (const line of logicalLines(text)) {
    const heading = /^\[(.+)\]$/.exec(line);
    if (heading) {
      section = heading[1] as string;
      continue;
    }
    const equals = line.indexOf('=');
    if (equals > 0) directives.push({ section, name: line.slice(0, equals).trim(), value: line.slice(equals + 1).trim() });
  }
  return directives;
}

function logicalLines(text: string): readonly string[] {
  const lines: string[] = [];
  let open = '';
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*[#;]/.test(line)) continue;
    if (continues(line)) {
      open += `${line.slice(0, -1)} `;
      continue;
    }
    const whole = (open + line).trim();
    open = '';
    if (whole !== '') lines.push(whole);
  }
  return open.trim() === '' ? lines : [...lines, open.trim()];
}

/**
 * An odd number of backslashes at the very end continues the line; a trailing space or an escaped backslash
 * does not.
 */
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
  let values: string[] = [];
  for (const directive of directives) {
    if (directive.section === section && directive.name === name) values = directive.value === '' ? [] : [...values, directive.value];
  }
  return values;
}
