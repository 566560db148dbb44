import type { Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';

/** How Go reads a boolean. @see strconv.ParseBool */
const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/** `help` and `help COMMAND...` as the command line with `--help`; other command lines as they are. */
export function helpAsOption(argv: readonly string[]): readonly string[] {
  return argv[0] === 'help' ? [...argv.slice(1).filter((word) => !/^(?:-h|--help)$/.test(word)), '--help'] : argv;
}

/**
 * A command line as commander reads it, from one as pflag reads it: booleans with a value (`--dry-run=true`, `--force=false`) and short
 * options with an equals sign (`-v=5`) or joined (`-yv=5`). The last value of a boolean wins. An option with a preset takes another value
 * only after an equals sign (`--serve=:8080`). Nothing is changed behind `--` or in values of other options.
 * @throws AppError USAGE when the value of a boolean is neither true nor false
 * @see github.com/spf13/pflag README, Command line flag syntax
 */
export function pflagArguments(args: readonly string[], program: Command): string[] {
  const argv = [...args];
  let command = program;
  const options = new Map<string, Option>();
  const learn = (of: Command): void => {
    for (const option of of.options) for (const name of [option.long, option.short]) if (name) options.set(name, option);
  };
  learn(program);
  let words: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string;
    if (word === '--') return [...words, ...argv.slice(i)];
    if (!word.startsWith('-') || word === '-') {
      const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
      if (next !== undefined) {
        command = next;
        learn(next);
      }
      words.push(word);
      continue;
    }
    const joined = options.get(word.slice(0, 2));
    if (/^-[^-=][^=]/.test(word) && joined !== undefined && !joined.required && !joined.optional) {
      argv.splice(i--, 1, word.slice(0, 2), `-${word.slice(2)}`);
      continue;
    }
    const equals = word.indexOf('=');
    const name = equals < 0 ? word : word.slice(0, equals);
    const option = options.get(name);
    if (option !== undefined && equals < 0) {
      words.push(option.presetArg === undefined ? word : `${word}=${option.presetArg}`);
      if (option.required && i + 1 < argv.length) words.push(argv[++i] as string);
      continue;
    }
    const value = word.slice(equals + 1);
    const takesValue = option !== undefined && (option.required || option.optional);
    if (equals < 0 || (option === undefined && !options.has(negated(name)))) words.push(word);
    else if (takesValue) words.push(...(name.startsWith('--') ? [word] : value === '' ? [name, ''] : [`${name}${value}`]));
    else words = withBoolean(words, { name, option, isOn: readBoolean(name, value) }, options);
  }
  return words;
}

/** Removes earlier values of a boolean. */
function withBoolean(
  words: readonly string[],
  { name, option, isOn }: { readonly name: string; readonly option: Option | undefined; readonly isOn: boolean },
  options: ReadonlyMap<string, Option>,
): string[] {
  const opposite = negated(name);
  const own = new Set([name, opposite, option?.long, option?.short]);
  const others = words.filter((word) => !own.has(word));
  if (isOn) return option === undefined ? others : [...others, name];
  return options.has(opposite) ? [...others, opposite] : others;
}

/** `--no-confirm` for `--confirm`, and the other way round. */
export function negated(name: string): string {
  return name.startsWith('--no-') ? `--${name.slice('--no-'.length)}` : name.replace(/^--/, '--no-');
}

function readBoolean(name: string, value: string): boolean {
  if (TRUE.has(value)) return true;
  if (FALSE.has(value)) return false;
  throw usageError(`${name}=${JSON.stringify(value)} is not a boolean`, `Write ${name}, ${name}=true or ${name}=false`);
}
