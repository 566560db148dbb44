import type { Command } from 'commander';
import type { CommandServices } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import type { ProgramName } from '../../src/cli/output/services.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { PHASE_LISTS } from '../../src/kubeadm/workflows/phase-lists.ts';

/** The tree of all commands, and the help of each as it is printed. */
export interface WholeProgram {
  readonly program: Command;
  helpOf(command: Command): string;
}

/**
 * @param columns the environment variable COLUMNS; default: unset
 * @param completeHelp as with `--help --all`
 */
export async function wholeProgram(programName: ProgramName, columns?: string, completeHelp = true): Promise<WholeProgram> {
  const printed: string[] = [];
  const output = { stdout: (text: string) => void printed.push(text), stderr: (text: string) => void printed.push(text) };
  const services = { env: columns === undefined ? {} : { COLUMNS: columns }, output, programName } as unknown as CommandServices;
  const loadPhases = async () => PHASE_LISTS;
  const program = await buildProgram(services, {
    argv: null,
    exit: () => undefined,
    version: '',
    commands: COMMANDS,
    completeHelp,
    loadPhases,
  });
  return {
    program,
    helpOf: (command) => {
      printed.length = 0;
      command.outputHelp();
      return printed.join('');
    },
  };
}
