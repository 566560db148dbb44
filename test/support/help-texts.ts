import type { Command } from 'commander';
import { wholeProgram } from '../../scripts/reference/whole-program.ts';
import { pathOf } from '../../src/cli/command-line-error.ts';
import type { ProgramName } from '../../src/cli/output/services.ts';

/** The help of one command. */
export interface CommandHelp {
  /** Without the program name: `fleet plan`; empty for the program. */
  readonly path: string;
  readonly command: Command;
  /** As printed. */
  readonly text: string;
}

/**
 * The help of all commands.
 * @param columns the environment variable COLUMNS
 * @param completeHelp as with `--help --all`
 */
export async function allHelp(
  columns?: string,
  programName: ProgramName = 'kubeletadm',
  completeHelp = true,
): Promise<readonly CommandHelp[]> {
  const { program, helpOf } = await wholeProgram(programName, columns, completeHelp);
  const visit = (command: Command): readonly CommandHelp[] => [
    { path: pathOf(command), command, text: helpOf(command) },
    ...command.commands.flatMap(visit),
  ];
  return visit(program);
}
