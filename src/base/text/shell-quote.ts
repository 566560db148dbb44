const BARE = /^[A-Za-z0-9_@%+:,./-]+$/;
const RESERVED = new Set(
  '! { } [[ ]] case coproc do done elif else esac fi for function if in namespace select then time until while'.split(' '),
);

/**
 * Quotes a word for POSIX sh, so that it reads back as that very text wherever a word may stand, as a command's name too.
 * @returns the word itself where nothing in it is special, else in single quotes
 * @throws RangeError when it holds a NUL, which no argument of a process can
 * @see POSIX.1-2024 Shell Command Language, 2.2 Quoting and 2.4 Reserved Words
 */
export function quoteShell(word: string): string {
  if (word.includes('\0')) throw new RangeError('a word of a command holds a NUL character');
  if (BARE.test(word) && !RESERVED.has(word)) return word;
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
