import { Command, type CommanderError } from 'commander';
import { type ExitCode, usageError } from '../core/errors.ts';
import type { Output, Services } from '../ports/services.ts';
import { COMMANDS } from './commands.ts';
import { addVerbosity } from './options.ts';

/** Runs a command and gives the exit code. Loaded on use, so that help is quick. */
export type Run = (services: CommandServices, args: readonly string[], options: CommandOptions) => Promise<ExitCode>;
export type CommandOptions = Readonly<Record<string, unknown>>;

/** What commands get: the services, and other command lines to run. */
export interface CommandServices extends Services {
  runCommand(argv: readonly string[], output?: Output): Promise<ExitCode>;
}

/** Says which function runs a command. */
export type On = (command: Command, load: () => Promise<Run>) => Command;

/**
 * The command tree. Options and subcommands are made only for the commands that the line may mean: those it names.
 * @param argv the command line
 * @param exit gets the code of the command that ran
 */
export async function buildProgram(
  services: CommandServices,
  { argv, exit, version }: { readonly argv: readonly string[]; readonly exit: (code: ExitCode) => void; readonly version: string },
): Promise<Command> {
  const on: On = (command, load) =>
    command.action(async (...args: unknown[]) => {
      const own = args.at(-1) as Command;
      const options = own.optsWithGlobals() as CommandOptions;
      exit(await (await load())(services, own.args, options));
    });
  const program = new Command('kubeletadm')
    .description('Bootstrap, provision and reconfigure kubelets like kubeadm does, on this machine or over SSH')
    .version(version, '--version', 'print the version')
    .helpCommand(false)
    .showHelpAfterError('(--help shows what there is)')
    .exitOverride()
    .configureOutput({ writeOut: (text) => services.output.stdout(text), writeErr: (text) => services.output.stderr(text) });
  addVerbosity(program);
  // Completion is made of the whole tree.
  const all = argv.includes('completion');
  for (const { name, description, load } of COMMANDS) {
    const command = program.command(name).description(description);
    if (all || argv.includes(name)) (await load())(command, on);
  }
  return program;
}

/** Turns what commander throws into ours; null: help or version was printed, all is well. */
export function usageOf(error: CommanderError): ReturnType<typeof usageError> | null {
  if (error.exitCode === 0) return null;
  return usageError(error.message.replace(/^error: /, ''), 'kubeletadm --help shows what there is');
}
