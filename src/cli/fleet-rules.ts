import { usageError } from '../base/errors.ts';
import { type Amount, hostsOf, parseAmount } from '../fleet/amount.ts';
import type { FleetRules } from '../fleet/fleet.ts';
import type { CommandOptions } from './command.ts';
import { flagText } from './read-options.ts';

/**
 * The rules of a run by `--parallel`, `--canary`, `--serial` and `--max-fail`. Without `--max-fail` the default limit holds.
 * @throws AppError USAGE
 */
export function readRules(options: CommandOptions, { total, dryRun }: { readonly total: number; readonly dryRun: boolean }): FleetRules {
  const parallel = typeof options.parallel === 'number' ? options.parallel : 50;
  const serial = amountOf(options, 'serial');
  if (serial !== null && ('hosts' in serial ? serial.hosts : serial.percent) === 0)
    throw usageError('--serial 0: must be at least 1', 'Leave the option out to change all hosts at once');
  const maxFail = amountOf(options, 'maxFail');
  return {
    parallel,
    maxOpen: Math.max(parallel, MOST_OPEN),
    // With one host there is nobody to be spared.
    canary: total === 1 ? 0 : hostsOf(amountOf(options, 'canary') ?? { hosts: 0 }, total),
    serial: serial === null ? parallel : Math.max(1, hostsOf(serial, total)),
    maxFail: maxFail === null ? null : hostsOf(maxFail, total),
    cautious: maxFail === null && !dryRun,
    dryRun,
  };
}

/** Connections of hosts that wait for their turn are kept up to this number. */
const MOST_OPEN = 200;

function amountOf(options: CommandOptions, name: 'canary' | 'serial' | 'maxFail'): Amount | null {
  const text = flagText(options, name);
  if (text === undefined) return null;
  const amount = parseAmount(text);
  if (amount !== null) return amount;
  const flag = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw usageError(`--${flag} ${text}: neither a number of hosts nor a share of them`, `Write it like --${flag} 5 or --${flag} 10%`);
}
