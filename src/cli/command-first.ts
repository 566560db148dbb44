import type { Command, Option } from 'commander';
import { ancestorsOf, commandsBelow } from './command-line-error.ts';
import { negated } from './pflag-arguments.ts';

/** A command line as one command of the program reads it. */
interface Reading {
  /** The words that name the command. */
  readonly path: readonly string[];
  readonly rest: readonly string[];
  readonly unknownOptions: number;
}

/**
 * Moves the words of the command to the front of a command line: `--kubeconfig F token create` becomes `token create --kubeconfig F`,
 * because commander finds a command only before options that belong to it. The order of options and arguments is kept. An option takes the
 * next word as its value if the named command defines it so, or, for an option that the command lacks, if any other command does.
 * @param program the command tree, with at least the commands that the words name
 * @see github.com/spf13/cobra command.go, Find and stripFlags: options are skipped while the command is searched
 */
export function commandFirst(argv: readonly string[], program: Command): readonly string[] {
  const words = new Set(argv);
  const named = [program, ...commandsBelow(program, (command) => words.has(command.name()))];
  const ofAny = optionsOf([program, ...commandsBelow(program)]);
  const readings = named.map((command) => readAs(command, argv, ofAny)).filter((reading) => reading !== null);
  const best = readings.toSorted((a, b) => Math.sign(a.unknownOptions) - Math.sign(b.unknownOptions) || b.path.length - a.path.length)[0];
  return best === undefined ? argv : [...best.path, ...best.rest];
}

/** Null: the words name another command. The program has no arguments of its own: its reading starts with any word. */
function readAs(command: Command, argv: readonly string[], ofAny: FindOption): Reading | null {
  const line = ancestorsOf(command).toReversed();
  const names = line.slice(1).map((each) => each.name());
  const own = optionsOf(line);
  const [path, rest, trailing, verbatim]: [string[], string[], string[], string[]] = [[], [], [], []];
  const length = Math.max(names.length, 1);
  let unknownOptions = 0;
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i] as string;
    if (word === '--') {
      verbatim.push(...argv.slice(i));
      break;
    }
    const expected = names[path.length];
    if (word.startsWith('-') && word !== '-') {
      const known = optionIn(word, own);
      if (known === undefined) unknownOptions++;
      const { option, hasValue } = known ?? optionIn(word, ofAny) ?? NO_VALUE;
      const next = argv[i + 1];
      const isAtName = expected !== undefined && expected === next;
      const mayBeValue = option?.optional && !isAtName && expected !== undefined && !next?.startsWith('-');
      // An argument behind the option would become its value.
      if (option?.optional && !hasValue && isAtName) trailing.push(word);
      else rest.push(word);
      if (!hasValue && next !== undefined && (option?.required || mayBeValue)) {
        rest.push(next);
        i++;
      }
    } else if (path.length === length) rest.push(word);
    else if (expected === undefined || expected === word) path.push(word);
    else return null;
  }
  return path.length < names.length ? null : { path, rest: [...rest, ...trailing, ...verbatim], unknownOptions };
}

/** The option of a word, or the last one of `-abc`, and whether its value is in the word; undefined: an option is unknown. */
function optionIn(word: string, find: FindOption): { readonly option: Option | null; readonly hasValue: boolean } | undefined {
  const equals = word.indexOf('=');
  const name = equals < 0 ? word : word.slice(0, equals);
  if (HELP.has(name)) return { option: null, hasValue: false };
  const option = find(name) ?? find(negated(name));
  if (option !== undefined) return { option, hasValue: equals >= 0 };
  const first = name.startsWith('--') || name.length === 2 ? undefined : optionIn(name.slice(0, 2), find);
  if (first === undefined) return undefined;
  return first.option?.required || first.option?.optional ? { option: first.option, hasValue: true } : optionIn(`-${word.slice(2)}`, find);
}

const NO_VALUE = { option: null, hasValue: false } as const;

/** commander does not list them among the options of a command. */
const HELP: ReadonlySet<string> = new Set(['-h', '--help']);

/** Finds an option by its long or short name; those of later commands win. */
type FindOption = (name: string) => Option | undefined;

function optionsOf(commands: readonly Command[]): FindOption {
  const latestFirst = commands.toReversed();
  return (name) => {
    for (const { options } of latestFirst) {
      const found = options.find(({ long, short }) => name === long || name === short);
      if (found !== undefined) return found;
    }
    return undefined;
  };
}
