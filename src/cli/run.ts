import { type Command, CommanderError } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import type { CommandServices } from './command.ts';
import { MAX_VERBOSITY } from './options.ts';
import { helpAsOption, pflagArguments } from './pflag-arguments.ts';
import { buildProgram } from './program.ts';
import { describeRefusedLine, RefusedLine } from './refused-line.ts';
import type { Services } from './services.ts';
import { showProblem } from './show-problem.ts';

/**
 * Runs one command line.
 * @param argv without the interpreter and the script
 * @returns the exit code; errors have been said on stderr
 */
export async function runCli(argv: readonly string[], services: Services, version: string): Promise<ExitCode> {
  let code: ExitCode = 0;
  const commands: CommandServices = {
    ...services,
    runCommand: (line, output = services.output) => runCli(line, { ...services, output }, version),
  };
  const exit = (result: ExitCode): void => {
    code = result;
  };
  try {
    const line = helpAsOption(argv);
    const program = await buildProgram(commands, { argv: line, exit, version });
    // Commander prints the help of the program for an unknown command before --help: that command alone is refused by name.
    const isUnknown = argv[0] === 'help' && line.length > 1 && !program.commands.some((command) => command.name() === line[0]);
    await program.parseAsync(pflagArguments(isUnknown ? line.slice(0, 1) : line, program), { from: 'user' });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const shown = error instanceof RefusedLine ? describeRefusedLine(error, await wholeTree(commands)) : error;
    return showProblem(shown, services.output, verbosityOf(argv));
  }
}

/** All commands with their options: that of another line has only those the line names. */
function wholeTree(services: CommandServices): Promise<Command> {
  return buildProgram(services, { argv: ['completion'], exit: () => undefined, version: '' });
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
