/** `=` only in an option: `a=b` as a command name is an assignment. */
const BARE = /^(?:[A-Za-z0-9_@%+:,./-]+|-[A-Za-z0-9_@%+:,./=-]+)$/;
const RESERVED = new Set(
  '! { } [[ ]] case coproc do done elif else esac fi for function if in namespace select then time until while'.split(' '),
);

/**
 * Quotes a word for POSIX sh, also as a command name, in single quotes if it has a special character.
 * @throws RangeError for a NUL, which no process argument can contain
 * @see POSIX.1-2024 Shell Command Language, 2.2 Quoting and 2.4 Reserved Words
 */
export function quoteShell(word: string): string {
  if (word.includes('\0')) throw new RangeError('a command argument contains a NUL character');
  if (BARE.test(word) && !RESERVED.has(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
