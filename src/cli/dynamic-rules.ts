import { usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import type { AssignRules } from '../dynamic/rollout.ts';
import { hostsOf, parseAmount } from '../fleet/amount.ts';
import type { CommandOptions } from './command.ts';
import { flagText } from './read-options.ts';

/** How an assignment is to go out, as the command line says it. */
export interface RolloutOptions {
  readonly wait: 'trial' | 'good' | 'none';
  readonly onFailure: 'stop' | 'revert';
  readonly timeoutMs: number;
  /** Null: half a minute with several nodes, none with one. */
  readonly minReadyMs: number | null;
  rulesFor(total: number): AssignRules;
}

const MIN_READY_MS = 30_000;
/** Of all nodes, where nobody says how many. */
const DEFAULT_UNAVAILABLE = '10%';

/** @throws AppError USAGE */
export function readRolloutOptions(options: CommandOptions): RolloutOptions {
  const given = flagText(options, 'wait');
  const wait = given === 'good' || given === 'none' ? given : 'trial';
  const own = ['canary', 'maxUnavailable', 'onFailure', 'minReady'].find((name) => options[name] !== undefined);
  if (wait === 'none' && own !== undefined)
    throw usageError(`${optionName(own)} with --wait none: the result of the first nodes would not be observed`, 'Leave one of them out');
  const [canary, maxUnavailable] = [amountOf(options, 'canary', '1'), amountOf(options, 'maxUnavailable', DEFAULT_UNAVAILABLE)];
  if (maxUnavailable.isZero) throw usageError('--max-unavailable 0: no node would be changed', 'Give at least 1');
  return {
    wait,
    onFailure: flagText(options, 'onFailure') === 'revert' ? 'revert' : 'stop',
    timeoutMs: durationOf(options, 'timeout') ?? (wait === 'good' ? 900_000 : 180_000),
    minReadyMs: durationOf(options, 'minReady'),
    rulesFor: (total) => ({
      // With one node there is nobody to be spared.
      canary: total === 1 ? 0 : canary.of(total),
      maxUnavailable: wait === 'none' ? Number.POSITIVE_INFINITY : Math.max(1, maxUnavailable.of(total)),
      direction: 'out',
    }),
  };
}

/** How long nodes have to be well before they count. Those that are to be good were well through a whole trial. */
export function minReadyOf({ wait, minReadyMs }: RolloutOptions, total: number): number {
  if (minReadyMs !== null) return minReadyMs;
  return total > 1 && wait === 'trial' ? MIN_READY_MS : 0;
}

function amountOf(options: CommandOptions, name: 'canary' | 'maxUnavailable', absent: string) {
  const text = flagText(options, name) ?? absent;
  const amount = parseAmount(text);
  if (amount === null)
    throw usageError(
      `${optionName(name)} ${text}: neither a number of nodes nor a share of them`,
      `Write it like ${optionName(name)} 5 or ${optionName(name)} 10%`,
    );
  return { isZero: ('hosts' in amount ? amount.hosts : amount.percent) === 0, of: (total: number): number => hostsOf(amount, total) };
}

function durationOf(options: CommandOptions, name: 'timeout' | 'minReady'): number | null {
  const text = flagText(options, name);
  if (text === undefined) return null;
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds < 0n || (name === 'timeout' && nanoseconds === 0n))
    throw usageError(`${optionName(name)}: invalid duration "${text}"`, 'Write it like 90s or 5m');
  return Number(nanoseconds / 1_000_000n);
}

function optionName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
