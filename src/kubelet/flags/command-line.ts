import type { Arg } from '../../base/arg.ts';
import type { FlagEntry, KubeletReader } from '../catalogue/catalogue.ts';

export interface CommandLine {
  /**
   * Flags in the given order, with their names in the catalogue and the index of their first word; a flag
   * without a value is `true`.
   */
  readonly flags: readonly (Arg & { readonly index: number })[];
  /** Words that are neither flags nor values, with which the kubelet does not start. */
  readonly others: readonly string[];
}

/** Flag types that do not take the next word as value. */
const WITHOUT_VALUE: ReadonlySet<string> = new Set(['bool', 'version']);

/**
 * Parses a kubelet's command line as the kubelet does: `--name=value`, `--name value`, `--name` for booleans,
 * `-v4`; `_` is equivalent to `-`.
 * @param words without the program name
 * @see github.com/spf13/pflag; k8s.io/component-base/cli/flag (word separators)
 */
export function parseCommandLine(words: readonly string[], options: KubeletReader): CommandLine {
  const flags: (Arg & { readonly index: number })[] = [];
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

function splitFlag(word: string): { readonly name: string; readonly value?: string | undefined } {
  const long = /^--([^=]+)(?:=([\s\S]*))?$/.exec(word) ?? /^-([^-=])(?:=?([\s\S]+))?$/.exec(word);
  if (long === null) return { name: '' };
  return { name: long[1] as string, value: long[2] };
}

/** A flag outside the catalogue has an unknown type: a next word that looks like a value is used as its value. */
function takesNextWord(entry: FlagEntry | undefined, next: string | undefined): boolean {
  if (next === undefined) return false;
  return entry === undefined ? !next.startsWith('-') : !WITHOUT_VALUE.has(entry.type);
}

/**
 * Finds a flag by its spelling: leading dashes and a value are ignored, `_` equals `-`, `v` is a shorthand.
 * @param minor preferred minor among flags with the same spelling
 * @returns undefined if no minor has the flag
 */
export function findFlag(name: string, { catalogue, minor }: KubeletReader): FlagEntry | undefined {
  const written = name.replace(/^-+|=[\s\S]*$/g, '');
  const found = catalogue.flagsBySpelling.get(flagKey(name)) ?? [];
  return found.find(({ flag }) => catalogue.flag(flag, minor) !== null) ?? found.find(({ flag }) => flag === written) ?? found.at(-1);
}

/** The normalized name of a flag, as the kubelet compares it. */
export function flagKey(name: string): string {
  return name
    .replace(/^-+/, '')
    .replace(/=[\s\S]*$/, '')
    .replaceAll('_', '-');
}
