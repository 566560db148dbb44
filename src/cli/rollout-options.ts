import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import { type Amount, parseAmount } from '../fleet/amount.ts';
import type { RulesRequest } from '../fleet/use-cases/fleet-rules.ts';
import type { CommandOptions } from './command.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';
import { flagNumber, flagText, parseSelector } from './request-parts.ts';

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
    rollout
      .addOption(
        typeof canary !== 'string'
          ? canary
          : new Option(
              '--canary <hosts>',
              'number or percentage of hosts to change first; the other hosts are changed only after these succeeded; 0: no canary',
            ).default(canary, canary),
      )
      .option(
        '--max-unavailable <hosts>',
        `maximum number or percentage of hosts changed at once, with those that are down already; does not limit how many hosts are inspected at once; alias: --serial (default: ${maxUnavailable})`,
      )
      .addOption(new Option('--serial <hosts>', 'same as --max-unavailable').hideHelp())
      .option(
        '--max-fail <hosts>',
        'maximum number of hosts that may fail, or percentage of the selected hosts; when more hosts fail, the run stops; 100%: no limit (default: a limit that grows with the run: 10% of the hosts changed so far, at least 1 and at most 10 hosts)',
      ),
  );
}

/**
 * `--canary` of `plan` and `apply`.
 * @param defaultText of the help
 */
export function canaryOption(defaultText = '1'): Option {
  return new Option(
    '--canary <hosts>',
    `canaries, changed before all other hosts; if one fails, no other host is changed: number, percentage, host, group, or label such as pool=edge; a number or percentage takes workers first, in file order; 0: none (default: ${defaultText})`,
  );
}

/** `addRolloutOptions` for a command with `--host` in place of a fleet file. */
export function addHostRolloutOptions(command: Command, canary: '0' | '1' = '0'): Command {
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
  const canary = flagText(options, 'canary');
  const isNamed = namesCanary && canary !== undefined && /[^0-9%.-]/.test(canary);
  if (options.serial !== undefined && options.maxUnavailable !== undefined)
    throw usageError('--serial is the same as --max-unavailable', 'Pass one of the two');
  return {
    parallel: parallelOf(options),
    canary: (isNamed ? null : amountOf(options, 'canary')) ?? undefined,
    ...(isNamed ? { canaryHosts: canary.includes('=') ? parseSelector(canary, '--canary') : canary } : {}),
    maxUnavailable: amountOf(options, options.serial === undefined ? 'maxUnavailable' : 'serial'),
    maxFail: amountOf(options, 'maxFail'),
  };
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
  if (amount === null)
    throw usageError(`${flag} ${text} is neither a number of ${noun} nor a percentage`, `For example: ${flag} 5 or ${flag} 10%`);
  if ((name === 'maxUnavailable' || name === 'serial') && ('hosts' in amount ? amount.hosts : amount.percent) === 0)
    throw usageError(`${flag} must be at least 1, not 0`, `Pass a number of ${noun} such as 5, or a percentage such as 10%`);
  return amount;
}
