import { type Command, CommanderError } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import type { InputFiles } from '../base/local-files.ts';
import type { PhaseLists } from '../kubeadm/workflows/phase-lists.ts';
import type { CommandEntry, CommandServices } from './command.ts';
import { commandFirst } from './command-first.ts';
import { CommandLineError, describeCommandLineError } from './command-line-error.ts';
import { MAX_VERBOSITY } from './options.ts';
import type { Services } from './output/services.ts';
import { colourChoiceOf } from './output-options.ts';
import { helpAsOption, pflagArguments } from './pflag-arguments.ts';
import { buildProgram } from './program.ts';
import { exitCodeAs } from './program-name.ts';

/** The hidden command that the completion scripts of shells run, named as in kubectl and other programs with cobra. */
const COMPLETE = '__complete';

/** A command line, and the program that it is for. */
export interface CommandLine {
  /** Without the interpreter and the script. */
  readonly argv: readonly string[];
  readonly services: Services;
  readonly version: string;
  /** The commands of the program. */
  readonly commands: readonly CommandEntry[];
  /** Loads shell completion; absent: the program has none. */
  readonly loadComplete?: (() => Promise<RunComplete>) | undefined;
  /** Loads the phases of the commands; absent: no command has phases. */
  readonly loadPhases?: (() => Promise<PhaseLists>) | undefined;
}

/** Prints the values for the last word of a command line, see complete.ts. */
type RunComplete = (services: CommandServices, line: { readonly program: Command; readonly words: readonly string[] }) => Promise<ExitCode>;

/**
 * Runs one command line. As kubeadm, every failure has the exit code 1, and a command line without words prints help.
 * @returns the exit code; errors were printed on stderr
 */
export async function runCommands(commandLine: CommandLine): Promise<ExitCode> {
  const { programName } = commandLine.services;
  const isEmpty = programName === 'kubeadm' && commandLine.argv.length === 0;
  return exitCodeAs(programName, await runLine(isEmpty ? { ...commandLine, argv: ['--help'] } : commandLine));
}

async function runLine({ argv: given, ...commandLine }: CommandLine): Promise<ExitCode> {
  const { services, version, commands, loadComplete, loadPhases } = commandLine;
  const completeHelp = isCompleteHelp(given);
  const argv = completeHelp === true ? given.filter((word) => word !== ALL) : given;
  let code: ExitCode = 0;
  const { input, textOf } = withTexts(services.input);
  const ownServices: CommandServices = {
    ...services,
    input,
    commandLine: argv,
    runCommand: (line, replaced) => runCommands({ ...commandLine, argv: line, services: { ...services, ...replaced } }),
  };
  const exit = (result: ExitCode): void => {
    code = result;
  };
  const colour = colourChoiceOf(argv);
  if (colour !== undefined) services.output.setColour?.(colour);
  try {
    if (argv[0] === COMPLETE && loadComplete !== undefined) {
      const words = argv.slice(1);
      const program = await buildProgram(ownServices, { argv: words, exit, version, commands, loadPhases });
      const runComplete = await loadComplete();
      return runComplete(ownServices, { program, words });
    }
    const program = await buildProgram(ownServices, { argv, exit, version, commands, completeHelp, loadPhases });
    const named = commandFirst(argv, program);
    const isCommand = (word: string | undefined): boolean => word === 'help' || program.commands.some((command) => command.name() === word);
    // Options before an unknown command: only the tree of all commands knows which of them take a value.
    const ordered = named[0] === argv[0] || isCommand(named[0]) ? named : commandFirst(argv, await wholeTree(ownServices, commands));
    const line = ordered[0] === 'help' ? commandFirst(helpAsOption(ordered), program) : ordered;
    // For an unknown command before --help commander prints the help of the program: reject the unknown
    // command instead.
    const isUnknown = ordered[0] === 'help' && line[0]?.startsWith('-') === false && !isCommand(line[0]);
    await program.parseAsync(pflagArguments(isUnknown ? line.slice(0, 1) : line, program), { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const shown =
      error instanceof CommandLineError
        ? describeCommandLineError(error, await wholeTree(ownServices, commands))
        : (await import('./file-kind.ts')).nameFileKindsOf(error, textOf);
    const { showProblem } = await import('./output/show-problem.ts');
    return showProblem(shown, services.output, verbosityOf(argv));
  }
}

const ALL = '--all';

/** `--help --all` and `help --all`; undefined: the default of the program. */
function isCompleteHelp(argv: readonly string[]): true | undefined {
  const end = argv.indexOf('--');
  const words = end < 0 ? argv : argv.slice(0, end);
  return words.includes(ALL) && (words[0] === 'help' || words.some((word) => /^(?:-h|--help)$/.test(word))) ? true : undefined;
}

/** An input that keeps the texts it has read: a hint depends on the content of a file. */
function withTexts(input: InputFiles): { readonly input: InputFiles; readonly textOf: (file: string) => string | undefined } {
  const texts = new Map<string, string>();
  const readText = async (path: string): Promise<string> => {
    const text = await input.readText(path);
    texts.set(path, text);
    return text;
  };
  return { input: { ...input, readText }, textOf: (file) => texts.get(file) };
}

/** All commands with their options; the tree of a normal command line is partial. */
function wholeTree(services: CommandServices, commands: readonly CommandEntry[]): Promise<Command> {
  return buildProgram(services, { argv: null, exit: () => undefined, version: '', commands });
}

/** `-v 5`, `-v5`, `--v=5`: needed before and after commander reads it. */
function verbosityOf(argv: readonly string[]): number {
  for (const [i, arg] of argv.entries()) {
    const match = /^(?:-v|--v)(?:=?(\d+))?$/.exec(arg);
    if (!match) continue;
    const level = Number(match[1] ?? argv[i + 1] ?? 0) || 0;
    return level <= MAX_VERBOSITY ? level : 0;
  }
  return 0;
}
