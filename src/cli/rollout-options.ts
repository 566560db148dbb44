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
 * `--canary`, `--serial` and `--max-fail`: for commands that change many hosts.
 * @param defaults.canary the default of `--canary`
 * @param defaults.serial the default of `--serial`, in the words of the help
 */
export function addRolloutOptions(
  command: Command,
  { canary, serial }: { readonly canary: Option | '0' | '1'; readonly serial: string },
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
        '--serial <hosts>',
        `maximum number or percentage of hosts changed at once; does not limit how many hosts are inspected at once (default: ${serial})`,
      )
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
  return addRolloutOptions(command, { canary, serial: String(DEFAULT_PARALLEL) });
}

/** `--parallel`. */
export function parallelOf(options: CommandOptions): number {
  return flagNumber(options, 'parallel', DEFAULT_PARALLEL);
}

/**
 * `--parallel`, `--canary`, `--serial` and `--max-fail`, as far as the command has them.
 * @param given.namesCanary `--canary` also accepts names and labels
 * @throws AppError USAGE (exit code 2)
 */
export function rulesRequest(options: CommandOptions, { namesCanary = false }: { readonly namesCanary?: boolean } = {}): RulesRequest {
  const canary = flagText(options, 'canary');
  const isNamed = namesCanary && canary !== undefined && /[^0-9%.-]/.test(canary);
  const serial = amountOf(options, 'serial');
  if (serial !== null && ('hosts' in serial ? serial.hosts : serial.percent) === 0)
    throw usageError('--serial must be at least 1, not 0', 'Pass a number of hosts such as 5, or a percentage such as 10%');
  return {
    parallel: parallelOf(options),
    canary: (isNamed ? null : amountOf(options, 'canary')) ?? undefined,
    ...(isNamed ? { canaryHosts: canary.includes('=') ? parseSelector(canary, '--canary') : canary } : {}),
    serial,
    maxFail: amountOf(options, 'maxFail'),
  };
}

function amountOf(options: CommandOptions, name: 'canary' | 'serial' | 'maxFail'): Amount | null {
  const text = flagText(options, name);
  if (text === undefined) return null;
  const amount = parseAmount(text);
  if (amount !== null) return amount;
  const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw usageError(`--${flag} ${text} is neither a number of hosts nor a percentage`, `For example: --${flag} 5 or --${flag} 10%`);
}
