import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import type { RolloutOptions } from '../dynamic/workflows/rollout.ts';
import { hostsOf } from '../fleet/amount.ts';
import type { NodeChoice } from '../fleet/use-cases/named-hosts.ts';
import { type ConfigSource, parseSourceArgument } from '../kubelet/layers/config-source.ts';
import type { CommandOptions } from './command.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';
import { flagText } from './option-values.ts';
import { addNodeSelectionOptions } from './options.ts';
import { nodeChoice } from './request-parts.ts';
import { addGateOptions, addOrderOption, amountOf, namedCanary, orderOf } from './rollout-options.ts';
import { addNotifyOption } from './writing-options.ts';

export interface RolloutTexts {
  readonly fleetNote?: string;
  readonly good?: string;
}

/**
 * Selection of nodes, and the number of nodes changed at once.
 * @param texts.fleetNote end of the text of `--fleet`
 * @param texts.good end of the default of `--min-ready`, for a command with `--wait good`
 */
export function addRollout(command: Command, { fleetNote = '', good = '' }: RolloutTexts = {}): Command {
  addNotifyOption(command);
  addOrderOption(command, 'the order of the arguments, or of the hosts in the fleet file', 'nodes');
  return addOptionGroup(command, HEADINGS.rollout, (rollout) =>
    addGateOptions(addNodeSelectionOptions(rollout, fleetNote))
      .option(
        '--canary <nodes>',
        'canaries, changed first; the others follow only if they succeed: number, percentage, comma-separated Nodes, or hosts or groups of the fleet file, or label of the Nodes such as pool=edge; a number takes workers first (default: 1)',
      )
      .option(
        '--max-unavailable <nodes>',
        'maximum number or percentage of nodes that are being updated or unavailable at once (default: 10%, at least 1)',
      )
      .option(
        '--max-fail <nodes>',
        'maximum number of nodes that may fail, or percentage of the selected nodes; when more nodes fail, or a canary fails, the command stops (default: 0)',
      )
      .option(
        '--min-ready <duration>',
        `time a node must stay healthy before the next nodes are changed (default: 30s; 0s for a single node${good})`,
      )
      .addOption(
        new Option(
          '--on-failure <action>',
          'action when more nodes fail than --max-fail allows, or a gate fails. stop: change no other node. revert: change no other node, and restore the previous assignment of all changed nodes (default: stop)',
        ).choices(['stop', 'revert']),
      ),
  );
}

export function addWait(command: Command, choices: readonly [string, ...string[]], meanings: string): Command {
  return addOptionGroup(command, HEADINGS.rollout, (rollout) =>
    rollout
      .addOption(
        new Option('--wait <state>', `state to wait for on each node. ${meanings}. none: change all nodes at once without waiting`)
          .choices(choices)
          .default(choices[0]),
      )
      .option('--timeout <duration>', `time limit for each node (default: 3m${choices.includes('good') ? '; 15m with --wait good' : ''})`),
  );
}

export function addAssignmentReason(command: Command): Command {
  return addOptionGroup(command, HEADINGS.rollout, (rollout) =>
    rollout.option('--reason <text>', 'reason of the change, recorded on each changed Node with the operator and the time'),
  );
}

export function requireNodeChoice(args: readonly string[], options: CommandOptions): NodeChoice {
  const choice = nodeChoice(args, options);
  if (choice !== undefined) return choice;
  throw usageError(
    'no node was selected',
    'Pass names of nodes, or select nodes with --selector, --group or --limit; kubectl get nodes lists them',
  );
}

/** `--configmap`. @throws AppError USAGE (exit code 2) */
export function readSource(argument: string): ConfigSource {
  const { source, issue } = parseSourceArgument(argument);
  if (source !== null) return source;
  throw usageError(`--configmap ${argument}: ${issue ?? ''}`, 'Pass the ConfigMap that dynamic push prints');
}

/** A percentage of the selected nodes. */
const DEFAULT_UNAVAILABLE = { percent: 10 };

export function readRolloutOptions(options: CommandOptions): RolloutOptions {
  const given = flagText(options, 'wait');
  const wait = given === 'good' || given === 'none' ? given : 'trial';
  const own = ['canary', 'order', 'maxUnavailable', 'maxFail', 'onFailure', 'minReady', 'gates'].find(
    (name) => options[name] !== undefined,
  );
  if (wait === 'none' && own !== undefined)
    throw usageError(
      `${optionName(own)} cannot be combined with --wait none, because the result of the first nodes would not be observed`,
      'Omit one of the two',
    );
  const canaryNodes = namedCanary(options);
  const canary = (canaryNodes === undefined ? amountOf(options, 'canary', 'nodes') : null) ?? { hosts: 1 };
  const maxUnavailable = amountOf(options, 'maxUnavailable', 'nodes') ?? DEFAULT_UNAVAILABLE;
  const maxFail = amountOf(options, 'maxFail', 'nodes') ?? { hosts: 0 };
  return {
    wait,
    onFailure: flagText(options, 'onFailure') === 'revert' ? 'revert' : 'stop',
    timeoutMs: durationOf(options, 'timeout') ?? (wait === 'good' ? 900_000 : 180_000),
    minReadyMs: durationOf(options, 'minReady'),
    rulesFor: (total) => ({
      // A limit is pointless for one node.
      canary: total === 1 ? 0 : hostsOf(canary, total),
      maxUnavailable: wait === 'none' ? Number.POSITIVE_INFINITY : Math.max(1, hostsOf(maxUnavailable, total)),
      maxFail: hostsOf(maxFail, total),
      order: orderOf(options),
      inBatches: true,
    }),
    canaryNodes,
  };
}

function durationOf(options: CommandOptions, name: 'timeout' | 'minReady'): number | null {
  const text = flagText(options, name);
  if (text === undefined) return null;
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds < 0n || (name === 'timeout' && nanoseconds === 0n))
    throw usageError(`${optionName(name)} ${text} is not a valid duration`, 'Use a duration such as 90s or 5m');
  return Number(nanoseconds / 1_000_000n);
}

/** `maxUnavailable` becomes `--max-unavailable`. */
export function optionName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
