import type { Command } from 'commander';
import type { ExitCode } from '../base/errors.ts';
import type { Output, Services } from './services.ts';

/** Runs a command and gives the exit code. Loaded on use, so that help is quick. */
export type Run = (services: CommandServices, args: readonly string[], options: CommandOptions) => Promise<ExitCode>;
export type CommandOptions = Readonly<Record<string, unknown>>;

/** What commands get: the services, and other command lines to run. */
export interface CommandServices extends Services {
  runCommand(argv: readonly string[], output?: Output): Promise<ExitCode>;
}

/** Says which function runs a command. */
export type On = (command: Command, load: () => Promise<Run>) => Command;
