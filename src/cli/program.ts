import { type Command, Option } from 'commander';
import { AppError, type ExitCode, isAppError } from '../base/errors.ts';
import type { PhaseLists } from '../kubeadm/workflows/phase-lists.ts';
import type { CommandEntry, CommandOptions, CommandServices, On } from './command.ts';
import { pathOf, StrictCommand } from './command-line-error.ts';
import { columnsOf, DEFAULT_WIDTH, HEADINGS, type HelpLayout, helpOption } from './help-layout.ts';
import { addModuleVerbosity, addVerbosity } from './options.ts';
import { addColour } from './output-options.ts';

interface ProgramOptions {
  /** The command line; null: the tree of all commands, with their options and phases. */
  readonly argv: readonly string[] | null;
  readonly exit: (code: ExitCode) => void;
  readonly version: string;
  readonly commands: readonly CommandEntry[];
  /** Help lists all options, commands and phases. Default: false, and true under the name kubeadm. */
  readonly completeHelp?: boolean | undefined;
  /** Loads the phases of the commands; absent: no command has phases. */
  readonly loadPhases?: (() => Promise<PhaseLists>) | undefined;
}

/**
 * The command tree. Options and subcommands are defined only for the commands that the command line names.
 * @param exit receives the exit code of the command that ran
 * @param commands the top-level commands, in the order of help
 * @param loadPhases called only for help and for the commands below `phase`, because the phases need many modules
 */
export async function buildProgram(
  services: CommandServices,
  { argv, exit, version, commands, completeHelp, loadPhases }: ProgramOptions,
): Promise<Command> {
  const on: On = (command, readRequest, run) =>
    command.action(async (...args: unknown[]) => {
      const own = args.at(-1) as Command;
      const options = own.optsWithGlobals() as CommandOptions;
      try {
        if (typeof options.kubeApiQps === 'number') services.limitRequests(options.kubeApiQps);
        // As in kubeadm the option belongs to the whole command line, not to the command.
        const { rootfs, ...rest } = options;
        const inRoot = services.programName === 'kubeadm' && typeof rootfs === 'string' ? rootfs : undefined;
        const request = readRequest(own.args, inRoot === undefined ? options : rest);
        const rooted = inRoot === undefined ? services : { ...services, ...(await services.inRoot(inRoot)) };
        const ports = options.dryRun === true ? (await import('./dry-run.ts')).readOnly(rooted) : rooted;
        const { notify } = options;
        const work = (withPorts: CommandServices): Promise<ExitCode> => run(withPorts, request);
        if (typeof notify !== 'string') exit(await work(ports));
        else exit(await (await import('./notify.ts')).withNotification(ports, { notify, command: pathOf(own) }, work));
      } catch (error) {
        throw isReading(own, options) ? withoutInterruption(error) : error;
      }
    });
  const layout: Partial<HelpLayout> = { isComplete: completeHelp ?? services.programName === 'kubeadm' };
  const program = new StrictCommand(services.programName)
    .configureHelp(layout)
    .description('Bootstrap and reset nodes like kubeadm, and reconfigure their kubelets, on the local host or over SSH')
    .version(version, '--version', 'version of the program')
    // The text is for the groups of subcommands; the program handles `help` itself.
    .helpCommand('help [command]', 'Show the help of a command')
    .helpCommand(false)
    .addHelpOption(helpOption())
    .exitOverride()
    .showSuggestionAfterError(false)
    .configureOutput({
      writeOut: (text) => services.output.stdout(text),
      writeErr: (text) => services.output.stderr(text),
    });
  const { getOutHelpWidth, getErrHelpWidth } = program.configureOutput();
  program.configureOutput({
    getOutHelpWidth: () => columnsOf(services.env.COLUMNS) ?? getOutHelpWidth?.() ?? DEFAULT_WIDTH,
    getErrHelpWidth: () => columnsOf(services.env.COLUMNS) ?? getErrHelpWidth?.() ?? DEFAULT_WIDTH,
  });
  addVerbosity(program);
  addModuleVerbosity(program);
  if (services.programName !== 'kubeadm') addColour(program);
  if (services.programName === 'kubeadm')
    program.addOption(
      new Option('--rootfs <path>', "root directory of the command, in place of the host's (chroot)").helpGroup(HEADINGS.global),
    );
  const showsPhases = argv === null || argv.some((word) => SHOWS_PHASES.test(word));
  for (const { name, description, load, hasPhases } of commands) {
    const command = program.command(name).description(description);
    if (argv !== null && !argv.includes(name)) continue;
    const define = await load();
    define(command, on, hasPhases === true && showsPhases && loadPhases !== undefined ? await loadPhases() : NO_PHASES);
  }
  return program;
}

/** `phase`, and words that print help; `-h` also among other short options. */
const SHOWS_PHASES = /^(?:phase|help|--help|-[a-gi-z]*h[a-z]*)$/;
const NO_PHASES: PhaseLists = { init: [], join: [], reset: [], 'upgrade apply': [], 'upgrade node': [] };

/** Commands that change nothing, as each with `--dry-run`: an interrupted one has nothing to resume. */
const READING =
  /^(?:plan|plan show|agent|lab|version|completion|status|explain|validate|config .*|node .*|certs (?:check|check-expiration)|csr list|token (?:list|generate)|dynamic (?:status|inspect|history)|fleet (?:plan|plan show|history|status|drift|inventory|validate|schema|exec))$/;

function isReading(command: Command, options: CommandOptions): boolean {
  return options.dryRun === true || (READING.test(pathOf(command)) && options.repair === undefined);
}

/** The same exit code, without the advice to rerun the command. */
function withoutInterruption(error: unknown): unknown {
  if (!isAppError(error) || error.problems.every(({ code }) => code !== 'INTERRUPTED')) return error;
  const { problems, exitCode, detail } = error;
  return new AppError(
    problems.filter(({ code }) => code !== 'INTERRUPTED'),
    { exitCode, cause: error, detail },
  );
}
