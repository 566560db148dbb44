import { Command } from 'commander';
import { type ExitCode, formatProblem, type Problem } from '../core/errors.ts';
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
    .exitOverride()
    .configureOutput({
      writeOut: (text) => services.output.stdout(text),
      writeErr: (text) => services.output.stderr(text),
      outputError: (text, write) => write(`${formatProblem(usageProblem(text))}\n`),
    });
  addVerbosity(program);
  // Completion is made of the whole tree.
  const all = argv.includes('completion');
  for (const { name, description, load } of COMMANDS) {
    const command = program.command(name).description(description);
    if (all || argv.includes(name)) (await load())(command, on);
  }
  return program;
}

/** What commander says of a line it does not understand: `error: unknown command 'tokn'`, perhaps `(Did you mean token?)` in the next line. */
function usageProblem(text: string): Problem {
  const said = text.trimEnd().replace(/^error: /, '');
  const at = said.endsWith(')') ? said.lastIndexOf('(Did you mean ') : -1;
  const message = (at < 0 ? said : said.slice(0, at).trimEnd()).replace(/\.$/, '');
  return { code: 'USAGE', message, mend: at < 0 ? '--help shows what there is' : said.slice(at + 1, -1) };
}
