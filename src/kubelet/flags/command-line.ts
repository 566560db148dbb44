import type { Arg } from '../../base/arg.ts';
import type { Catalogue, FlagEntry, Minor } from '../catalogue.ts';

export interface FlagOptions {
  readonly catalogue: Catalogue;
  readonly minor: Minor;
}

/** `index`: the word it begins at. */
export interface CommandLineFlag extends Arg {
  readonly index: number;
}

export interface CommandLine {
  /** Flags in the order given, under the names the catalogue has for them; a flag without a value is `true`. */
  readonly flags: readonly CommandLineFlag[];
  /** Words that are no flags and no values: the kubelet does not start with one. */
  readonly others: readonly string[];
}

/** Flags that take no value from the next word. */
const WITHOUT_VALUE: ReadonlySet<string> = new Set(['bool', 'version']);

/**
 * Reads the words of a kubelet's command line as the kubelet does: `--name=value`, `--name value`, `--name` of booleans, `-v4`; `_` counts as `-`.
 * @param words without the program itself
 * @see github.com/spf13/pflag; k8s.io/component-base/cli/flag (word separators)
 */
export function parseCommandLine(words: readonly string[], options: FlagOptions): CommandLine {
  const flags: CommandLineFlag[] = [];
  const others: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word === '--') return { flags, others: [...others, ...words.slice(at + 1)] };
    const { name, value } = splitFlag(word);
    if (name === '') {
      others.push(word);
      continue;
    }
    const entry = findFlag(name, options);
    const index = at;
    const given = value ?? (takesNextWord(entry, words[at + 1]) ? words[++at] : undefined);
    flags.push({ name: entry?.flag ?? name, value: given ?? 'true', index });
  }
  return { flags, others };
}

function splitFlag(word: string): { readonly name: string; readonly value?: string } {
  const long = /^--([^=]+)(?:=([\s\S]*))?$/.exec(word) ?? /^-([^-=])(?:=?([\s\S]+))?$/.exec(word);
  if (long === null) return { name: '' };
  return { name: long[1] as string, ...(long[2] === undefined ? {} : { value: long[2] }) };
}

/** Nothing is known of a flag that is in no catalogue: a word that looks like a value is taken for its value. */
function takesNextWord(entry: FlagEntry | undefined, next: string | undefined): boolean {
  if (next === undefined) return false;
  return entry === undefined ? !next.startsWith('-') : !WITHOUT_VALUE.has(entry.type);
}

/**
 * The flag a way of writing means: dashes in front and a value do not count, `_` is `-`, `v` is a shorthand.
 * @param minor of flags that are written alike, the one this minor has
 * @returns undefined when no minor has it
 */
export function findFlag(name: string, { catalogue, minor }: FlagOptions): FlagEntry | undefined {
  const desired = flagKey(name);
  const written = name.replace(/^-+|=[\s\S]*$/g, '');
  const isMeant = ({ flag, shorthand }: FlagEntry): boolean =>
    flagKey(flag) === desired || (shorthand !== undefined && shorthand === desired);
  const found = [...catalogue.flags.values()].filter(isMeant);
  return found.find(({ flag }) => catalogue.flag(flag, minor) !== null) ?? found.find(({ flag }) => flag === written) ?? found.at(-1);
}

/** The name of a flag as the kubelet compares it. */
export function flagKey(name: string): string {
  return name
    .replace(/^-+/, '')
    .replace(/=[\s\S]*$/, '')
    .replaceAll('_', '-');
}
