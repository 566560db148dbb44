import { Command, type ErrorOptions, type Help } from 'commander';
import { type AppError, usageError } from '../base/errors.ts';
import { closestName } from '../base/text/closest-name.ts';
import { HelpLayout } from './help-layout.ts';

/** A command line that cannot be parsed, with the command that refused it. `describeCommandLineError` makes the message. */
export class CommandLineError extends Error {
  readonly command: Command;
  /** commander's code, e.g. `commander.unknownOption`. */
  readonly code: string;

  constructor(command: Command, code: string, message: string) {
    super(message);
    this.name = 'CommandLineError';
    this.command = command;
    this.code = code;
  }
}

/** A command whose errors, and those of its subcommands, are thrown as `CommandLineError`: commander prints none itself. */
export class StrictCommand extends Command {
  override createCommand(name?: string): Command {
    return new StrictCommand(name);
  }

  override createHelp(): Help {
    return Object.assign(new HelpLayout(), this.configureHelp());
  }

  override error(message: string, options?: ErrorOptions): never {
    throw new CommandLineError(this, options?.code ?? '', message.replace(/^error: /, ''));
  }
}

/** A suggestion that differs in more letters would mislead. */
const MAX_DISTANCE = 2;
/** Maximum number of commands listed for an option. */
const MAX_NAMED = 3;

/** @see kubectl 1.36 --help, without the names that kubeletadm has as well */
const KUBECTL: ReadonlySet<string> = new Set(
  (
    'annotate attach autoscale cordon cp create debug delete describe edit events exec expose get label logs ' +
    'patch port-forward proxy replace rollout run scale set taint top wait'
  ).split(' '),
);

/**
 * The message for a command line that was rejected: the error, the command, and the correct form.
 * @param program the command tree with all its subcommands and options, for the commands an option belongs to
 * @returns USAGE, exit code 2. Values of unknown options are omitted, because they may be secrets
 */
export function describeCommandLineError({ command, code, message }: CommandLineError, program: Command): AppError {
  const path = pathOf(command);
  const help = `See ${['kubeletadm', path, '--help'].filter(Boolean).join(' ')}`;
  switch (code) {
    case 'commander.unknownCommand':
      return unknownCommand(command, { path, help, program });
    case 'commander.excessArguments': {
      const file = command.args.find((arg) => /\/|\.(?:ya?ml|json|ini|conf)$/.test(arg));
      if (file !== undefined && hasOption(command, '--file'))
        return usageError(`${path}: the fleet file ${file} must be passed with -f`, `Run kubeletadm ${path} -f ${file}`);
      const subcommands = command.commands.map((each) => each.name());
      const [host = ''] = command.args;
      // Further arguments of a command that has some may be secrets.
      const isHost = command.registeredArguments.length === 0 && hasOption(command, '--host') && HOST_NAME.test(host);
      if (isHost && closestName(host, subcommands, MAX_DISTANCE) === null)
        return usageError(`${path}: unexpected argument ${host}`, `If this is a host, run kubeletadm ${path} --host ${host}`);
      if (subcommands.length > 0) return unknownCommand(command, { path, help, program });
      break;
    }
    case 'commander.unknownOption':
      return unknownOption(command, (/^unknown option '([^'=]*)/.exec(message)?.[1] ?? '').trim(), { path, help, program });
  }
  return usageError(
    `${path === '' ? '' : `${path}: `}${reworded(message)}`,
    code === 'commander.excessArguments' && hasOption(command, '--limit') ? `Select hosts with --limit or --selector. ${help}` : help,
  );
}

const HOST_NAME = /^(?:[\w.-]+@)?[\w.:[\]-]+$/;

/** Names of other programs for what a command does. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  bootstrap: ['init'],
  check: ['config validate', 'fleet validate'],
  deploy: ['apply'],
  destroy: ['reset'],
  diff: ['plan'],
  hosts: ['fleet inventory'],
  install: ['init', 'join', 'apply'],
  'join-command': ['token create'],
  lint: ['config validate', 'fleet validate'],
  ls: ['fleet inventory'],
  preview: ['plan'],
  remove: ['reset'],
  revert: ['fleet revert'],
  rollback: ['undo', 'fleet revert', 'dynamic assign'],
  rotate: ['certs renew'],
  undo: ['undo', 'fleet revert'],
  uninstall: ['reset'],
  update: ['upgrade', 'apply'],
  verify: ['config validate', 'fleet validate'],
};

function unknownCommand(command: Command, { path, help, program }: Place): AppError {
  const [name = ''] = command.args;
  const full = [path, name].filter(Boolean).join(' ');
  if (path === '' && KUBECTL.has(name))
    return usageError(`unknown command ${name}: ${name} is a command of kubectl`, `Use kubectl ${name} for cluster objects`);
  const meant = meantCommands(name, command, program);
  return usageError(`unknown command ${full}`, meant.length === 0 ? help : `Did you mean ${orText(meant)}?`);
}

/** The commands that a wrong name may mean: a misspelt subcommand, a name of another program, or a command of another group. */
function meantCommands(name: string, command: Command, program: Command): readonly string[] {
  const all = commandsBelow(program).filter(({ parent }) => parent?.name() !== 'phase');
  const path = pathOf(command);
  const pathsNamed = (of: string): readonly string[] => {
    const paths = [...(SYNONYMS[of] ?? []), ...all.filter((each) => each.name() === of).map(pathOf)];
    if (path === '') return paths;
    const own = new Set(command.commands.map(pathOf));
    const below = paths.flatMap((each) => [each, `${path} ${each}`]).filter((each) => own.has(each));
    return [...paths.filter((each) => each === of && !own.has(each)), ...below];
  };
  const misspelt = (names: readonly string[]): string | null => closestName(name, names, MAX_DISTANCE);
  const subcommands = command.commands.map((each) => each.name());
  const likely = path === '' && pathsNamed(name).length > 0 ? null : misspelt(subcommands);
  if (likely !== null) return [`${path} ${likely}`.trim()];
  const found = pathsNamed(name);
  return found.length > 0 ? found : pathsNamed(misspelt([...Object.keys(SYNONYMS), ...all.map((each) => each.name())]) ?? '');
}

/** `plan, config diff or upgrade diff` */
function orText(names: readonly string[]): string {
  const unique = [...new Set(names)];
  return unique.length === 1 ? (unique[0] ?? '') : `${unique.slice(0, -1).join(', ')} or ${unique.at(-1)}`;
}

interface Place {
  readonly path: string;
  readonly help: string;
  readonly program: Command;
}

function unknownOption(command: Command, flag: string, { path, help, program }: Place): AppError {
  const message = `unknown option ${flag}${path === '' ? '' : ` for ${path}`}`;
  const owners = commandsBelow(program)
    .filter(({ options }) => options.some(({ long, short, hidden }) => !hidden && (long === flag || short === flag)))
    .map(pathOf);
  if ((flag === '--dry-run' || flag === '--check') && command.name() === 'apply')
    return usageError(message, 'To show the changes without applying them, run kubeletadm plan -f FILE');
  const isOfApply = command.name() === 'plan' && owners.some((owner) => owner === 'apply' || owner === 'fleet apply');
  if (isOfApply && flag !== '--dry-run') return usageError(message, `Plan changes no host: pass ${flag} to kubeletadm apply`);
  if (flag === '--host' && hasOption(command, '--limit'))
    return usageError(message, `Select hosts of the fleet file with --limit. ${help}`);
  const hosts = command.registeredArguments.find((argument) => argument.variadic && argument.name() === 'host');
  if (flag === '--host' && hosts) return usageError(message, `Hosts are arguments of this command: kubeletadm ${path} HOST`);
  if (flag === '--dry-run' && command.name() === 'plan') return usageError(message, 'Omit the option: plan only shows the changes');
  if (flag === '-y' || flag === '--yes') {
    const asks = hasOption(command, '--force');
    return usageError(message, asks ? `Did you mean --force?` : `Omit the option: ${path} does not ask`);
  }
  if (flag === '--set' && hasOption(command, '--file'))
    return usageError(message, 'Write the field below kubeletConfiguration in the fleet file, for a host, a group or the baseline');
  if (owners.length > 0) return usageError(`${message}: the option belongs to ${namesOf(owners)}`, help);
  const own = ancestorsOf(command).flatMap(({ options }) =>
    options.flatMap(({ long, hidden }) => (long == null || hidden ? [] : [long.slice(2)])),
  );
  const likely = flag.startsWith('--') ? closestName(flag.slice(2), own, MAX_DISTANCE) : null;
  return usageError(message, likely === null ? help : `Did you mean --${likely}?`);
}

function hasOption({ options }: Command, flag: string): boolean {
  return options.some(({ long }) => long === flag);
}

function namesOf(owners: readonly string[]): string {
  const named = owners.slice(0, MAX_NAMED);
  const more = owners.length - named.length;
  if (more > 0) return `${named.join(', ')} and ${more === 1 ? '1 other command' : `${more} other commands`}`;
  return named.length === 1 ? (named[0] ?? '') : `${named.slice(0, -1).join(', ')} and ${named.at(-1)}`;
}

/** Adds the value and the reason to commander's message. */
function reworded(message: string): string {
  const missing = /^option '(.*)' argument missing$/s.exec(message);
  if (missing) return `option ${missing[1]} needs a value`;
  const value = invalidValue(message);
  if (value !== null) return value;
  const argument = invalidArgument(message);
  if (argument !== null) return argument;
  const surplus = /^too many arguments(?: for '.*')?\. Expected ([0-9]+) arguments? but got ([0-9]+)\.?$/.exec(message);
  if (surplus) return `too many arguments: expected ${surplus[1]}, got ${surplus[2]}`;
  return message.replace(/^missing required argument '(.*)'$/, 'the argument <$1> is missing').replace(/\.$/, '');
}

/** `option '-o <format>' argument 'wide' is invalid. Allowed choices are text, json.` in the order: option, value, reason; null for other messages. */
function invalidValue(message: string): string | null {
  const [start, middle, end] = ["option '", "' argument '", "' is invalid. "] as const;
  const [from, to] = [message.indexOf(middle), message.lastIndexOf(end)];
  if (!message.startsWith(start) || from < 0 || to < from + middle.length) return null;
  const option = message.slice(start.length, from);
  const value = message.slice(from + middle.length, to);
  const reason = message.slice(to + end.length).replace(/\.$/, '');
  const choices = 'Allowed choices are ';
  return reason.startsWith(choices)
    ? `option ${option}: invalid value "${value}", ${choicesText(reason.slice(choices.length))}`
    : `option ${option}: invalid value "${value}": ${reason}`;
}

/** `command-argument value 'x' is invalid for argument 'kind'. Allowed choices are a, b.` in the same order. */
function invalidArgument(message: string): string | null {
  const [start, middle, choices] = ["command-argument value '", "' is invalid for argument '", "'. Allowed choices are "] as const;
  const [to, end] = [message.lastIndexOf(middle), message.lastIndexOf(choices)];
  if (!message.startsWith(start) || to < start.length || end < to) return null;
  const value = message.slice(start.length, to);
  return `invalid ${message.slice(to + middle.length, end)} "${value}", ${choicesText(message.slice(end + choices.length).replace(/\.$/, ''))}`;
}

function choicesText(list: string): string {
  return list.includes(',') ? `must be one of ${list}` : `the only value is "${list}"`;
}

/** The names of a command path, without the program's name: `fleet plan`. */
export function pathOf(command: Command): string {
  return ancestorsOf(command)
    .slice(0, -1)
    .map((each) => each.name())
    .toReversed()
    .join(' ');
}

/** The command and those above it, the program last. */
export function ancestorsOf(command: Command): readonly Command[] {
  return command.parent === null ? [command] : [command, ...ancestorsOf(command.parent)];
}

/** All subcommands, and theirs. @param isSelected false: without the subcommand and those below it */
export function commandsBelow(command: Command, isSelected: (command: Command) => boolean = () => true): readonly Command[] {
  return command.commands.filter(isSelected).flatMap((each) => [each, ...commandsBelow(each, isSelected)]);
}
