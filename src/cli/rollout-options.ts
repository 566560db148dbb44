import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import { parseIp } from '../base/text/ip.ts';
import { quoteShell } from '../base/text/shell-quote.ts';
import { type Amount, parseAmount } from '../fleet/amount.ts';
import type { RulesRequest } from '../fleet/use-cases/fleet-rules.ts';
import type { GatesRequest } from '../fleet/use-cases/open-gates.ts';
import type { RolloutOrder } from '../maintenance/start-order.ts';
import type { CommandOptions } from './command.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';
import { flagNumber, flagText } from './option-values.ts';
import { parseSelector } from './request-parts.ts';

/** Number of hosts that are processed at once without `--parallel`. */
export const DEFAULT_PARALLEL = 50;

/**
 * `--canary`, `--max-unavailable` and `--max-fail`: for commands that change many hosts.
 * @param defaults.canary the default of `--canary`
 * @param defaults.maxUnavailable the default of `--max-unavailable`, in the words of the help
 */
export function addRolloutOptions(
  command: Command,
  { canary, maxUnavailable }: { readonly canary: Option | '0' | '1'; readonly maxUnavailable: string },
): Command {
  return addOptionGroup(command, HEADINGS.rollout, (rollout) =>
    addGateOptions(rollout)
      .addOption(
        typeof canary !== 'string'
          ? canary
          : new Option(
              '--canary <hosts>',
              'number or percentage of hosts to change first; the other hosts are changed only after these succeeded; 0: no canary',
            ).default(canary, canary),
      )
      .addOption(maxUnavailableOption(maxUnavailable))
      .addOption(SERIAL)
      .option(
        '--max-fail <hosts>',
        'maximum number of hosts that may fail, or percentage of the selected hosts; when more hosts fail, the run stops; 100%: no limit (default: a limit that grows with the run: 10% of the hosts changed so far, at least 1 and at most 10 hosts)',
      ),
  );
}

/** `--max-unavailable`; `SERIAL` is its alias. */
export function maxUnavailableOption(defaultText: string): Option {
  return new Option(
    '--max-unavailable <hosts>',
    `maximum number or percentage of hosts changed at once, with those that are down already; inspections are not limited; alias: --serial (default: ${defaultText})`,
  );
}

export const SERIAL = new Option('--serial <hosts>', 'same as --max-unavailable').hideHelp();

/** `--gates` and `--ignore-window`. */
export function addGateOptions(command: Command): Command {
  return command
    .addOption(gatesOption())
    .option('--ignore-window', 'start batches also outside of the maintenance windows; recorded with the run');
}

export function gatesOption(note = 'apply and plan then ignore those of the fleet file'): Option {
  return new Option(
    '--gates <file>',
    `file (kind: Rollout) with gates that must pass between batches, and with maintenance windows; ${note}`,
  );
}

/** The values of `addGateOptions`. */
export function gatesRequest(options: CommandOptions): GatesRequest {
  return { file: flagText(options, 'gates'), ignoresWindow: options.ignoreWindow === true };
}

/**
 * `--canary` of `plan` and `apply`.
 * @param defaultText of the help
 */
export function canaryOption(defaultText = '1', numberText = 'takes workers first'): Option {
  return new Option(
    '--canary <hosts>',
    `canaries, changed first; the others follow only if they succeed: number, percentage, comma-separated hosts or groups, or label such as pool=edge; a number ${numberText}; 0: none (default: ${defaultText})`,
  );
}

/**
 * `--order` of a command that changes hosts or Nodes.
 * @param defaultText of the help
 */
export function addOrderOption(command: Command, defaultText = 'that of the fleet file', noun: 'hosts' | 'nodes' = 'hosts'): Command {
  const text = `order after the canaries. zone: one zone after the other (label topology.kubernetes.io/zone of the Nodes), unknown zones last. spread: ${noun} of different zones together (default: ${defaultText})`;
  return addOptionGroup(command, HEADINGS.rollout, (rollout) => rollout.addOption(new Option('--order <order>', text).choices(ORDERS)));
}

export const ORDERS: readonly [RolloutOrder, ...RolloutOrder[]] = ['zone', 'spread'];

/** `--order`. */
export function orderOf(options: CommandOptions): RolloutOrder | undefined {
  return ORDERS.find((order) => order === options.order);
}

/** `addRolloutOptions` for a command with `--host` in place of a fleet file. */
export function addHostRolloutOptions(command: Command, canary: Option | '0' | '1' = '0'): Command {
  return addRolloutOptions(command, { canary, maxUnavailable: String(DEFAULT_PARALLEL) });
}

/** `--parallel`. */
export function parallelOf(options: CommandOptions): number {
  return flagNumber(options, 'parallel', DEFAULT_PARALLEL);
}

/**
 * `--parallel`, `--canary`, `--max-unavailable` and `--max-fail`, as far as the command has them.
 * @param given.namesCanary `--canary` also accepts names and labels
 * @throws AppError USAGE (exit code 2)
 */
export function rulesRequest(options: CommandOptions, { namesCanary = false }: { readonly namesCanary?: boolean } = {}): RulesRequest {
  const canaryHosts = namesCanary ? namedCanary(options) : undefined;
  if (options.serial !== undefined && options.maxUnavailable !== undefined)
    throw usageError('--serial is the same as --max-unavailable', 'Pass one of the two');
  return {
    parallel: parallelOf(options),
    canary: (canaryHosts === undefined ? amountOf(options, 'canary') : null) ?? undefined,
    canaryHosts,
    ...(options.order === undefined ? {} : { order: orderOf(options) }),
    maxUnavailable: amountOf(options, options.serial === undefined ? 'maxUnavailable' : 'serial'),
    maxFail: amountOf(options, 'maxFail'),
    gates: gatesRequest(options),
  };
}

/**
 * The canaries that `--canary` names, as a list of names or a label selector; undefined: a number, or no canary is given.
 * @throws AppError USAGE (exit code 2)
 */
export function namedCanary(options: CommandOptions): RulesRequest['canaryHosts'] {
  const text = flagText(options, 'canary');
  if (text === undefined || (!/[^0-9%.-]/.test(text) && parseIp(text) === null)) return undefined;
  if (text.includes('=')) return parseSelector(text, '--canary');
  const names = text.split(',').filter((name) => name !== '');
  if (names.length > 0 && !names.some((name) => name.startsWith('!'))) return names;
  throw usageError(
    `--canary ${text} does not name the canaries`,
    'For example: --canary edge-1,edge-2, --canary pool=edge or --canary 10%',
  );
}

/**
 * The value of an option with a number or a percentage.
 * @returns null without the option
 * @throws AppError USAGE (exit code 2), also for a limit of hosts changed at once that is 0
 */
export function amountOf(
  options: CommandOptions,
  name: 'canary' | 'maxUnavailable' | 'serial' | 'maxFail',
  noun: 'hosts' | 'nodes' = 'hosts',
): Amount | null {
  const text = flagText(options, name);
  if (text === undefined) return null;
  const flag = `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const amount = parseAmount(text);
  const least = name === 'maxUnavailable' || name === 'serial' ? 1 : 0;
  if (amount !== null && ('hosts' in amount ? amount.hosts : amount.percent) >= least) return amount;
  throw usageError(
    `${flag} ${quoteShell(text)} must be a number of ${noun} (${least} or more) or a percentage (${least}% to 100%)`,
    `For example: ${flag} 5 or ${flag} 10%`,
  );
}
