import type { Command } from 'commander';
import type { CommandServices } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { pathOf } from '../../src/cli/refused-line.ts';
import type { ProgramName } from '../../src/cli/services.ts';
import { PHASE_LISTS } from '../../src/kubeadm/workflows/phase-lists.ts';

/** The help of one command. */
export interface CommandHelp {
  /** Without the program name: `fleet plan`; empty for the program. */
  readonly path: string;
  readonly command: Command;
  /** As printed. */
  readonly text: string;
}

/** The help of all commands. @param columns the environment variable COLUMNS */
export async function allHelp(columns?: string, programName: ProgramName = 'kubeletadm'): Promise<readonly CommandHelp[]> {
  const printed: string[] = [];
  const output = { stdout: (text: string) => void printed.push(text), stderr: (text: string) => void printed.push(text) };
  const services = { env: columns === undefined ? {} : { COLUMNS: columns }, output, programName } as unknown as CommandServices;
  const loadPhases = async () => PHASE_LISTS;
  const program = await buildProgram(services, {
    argv: ['completion'],
    exit: () => undefined,
    version: '0.0.0-test',
    commands: COMMANDS,
    loadPhases,
  });
  const visit = (command: Command): readonly CommandHelp[] => {
    printed.length = 0;
    command.outputHelp();
    return [{ path: pathOf(command), command, text: printed.join('') }, ...command.commands.flatMap(visit)];
  };
  return visit(program);
}
