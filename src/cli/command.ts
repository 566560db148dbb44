import type { Command } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import type { PhaseLists } from '../kubeadm/workflows/phase-lists.ts';
import type { Services } from './output/services.ts';

/** Runs a command by its typed request and gives the exit code. It imports the use case itself, so that help is quick. */
export type Run<Request> = (services: CommandServices, request: Request) => Promise<ExitCode>;

/** The options of a command line as commander gives them, by name. Only the definitions of commands read them. */
export type CommandOptions = Readonly<Record<string, unknown>>;

/** Services for commands, and a way to run other command lines. */
export interface CommandServices extends Services {
  runCommand(argv: readonly string[], replaced?: Partial<Pick<Services, 'output' | 'reporter'>>): Promise<ExitCode>;
}

/**
 * Defines how a command is run.
 * @param readRequest creates the request from the arguments and options; throws AppError USAGE for invalid
 * ones
 */
export type On = <Request>(
  command: Command,
  readRequest: (args: readonly string[], options: CommandOptions) => Request,
  run: Run<Request>,
) => Command;

/** A command right below the program. Its options and subcommands are defined on use, so that help is quick. */
export interface CommandEntry {
  readonly name: string;
  readonly description: string;
  readonly load: () => Promise<(command: Command, on: On, phases: PhaseLists) => void>;
  /** The command, or a subcommand, has phases. */
  readonly hasPhases?: true;
}
