import { type Command, Option } from 'commander';
import { usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import type { AgentPolicy } from '../dynamic/agent/agent-options.ts';
import { IMPACTS } from '../host/plan/impact.ts';
import type { CommandOptions } from './command.ts';
import { addOptionGroup, HEADINGS } from './help-layout.ts';
import { LISTEN_HELP, listenAddress } from './listen-options.ts';
import { flagChoice, flagText } from './option-values.ts';
import { SECONDS_OF_A_DAY } from './options.ts';

const LISTEN = '127.0.0.1:10246';
const DEFAULTS = { trial: '10m', allow: 'new-pods-only', keep: '5', spread: '10s', listen: LISTEN } as const;

/** Options of `agent`, and of `dynamic enable` for the agent that it installs. */
export function addAgentOptions(command: Command): Command {
  return addOptionGroup(command, HEADINGS.agent, (agent) =>
    agent
      .option(
        '--trial <duration>',
        'time the kubelet must stay healthy before a new configuration becomes the last known good one',
        DEFAULTS.trial,
      )
      .addOption(
        new Option('--allow <class>', 'most disruptive class of change that the agent applies; the classes are explained below')
          .choices([...IMPACTS])
          .default(DEFAULTS.allow),
      )
      .option('--keep <count>', 'number of unused checkpoints (local copies of assigned ConfigMaps) to keep', DEFAULTS.keep)
      .option(
        '--spread <duration>',
        'when the assigned ConfigMap itself is edited, the agent waits for a random time up to this value before it applies the edit',
        DEFAULTS.spread,
      )
      .option('--listen <address:port>', LISTEN_HELP, DEFAULTS.listen),
  );
}

/**
 * The policy of an agent.
 * @throws AppError USAGE (exit code 2)
 */
export function agentPolicy(options: CommandOptions): Omit<AgentPolicy, 'signersFile'> {
  return {
    trialMs: durationOf(options, 'trial'),
    allow: flagChoice(options, 'allow', IMPACTS),
    spareCheckpoints: countOf(options, 'keep'),
    spreadMs: spreadOf(options),
    listen: listenAddress(options, LISTEN),
  };
}

/**
 * The options of an agent that differ from the defaults, as arguments for its command line.
 * @throws AppError (exit code 2) for values that the agent would reject
 */
export function agentArguments(options: CommandOptions): readonly string[] {
  agentPolicy(options);
  return Object.entries(DEFAULTS).flatMap(([name, value]) => {
    const given = flagText(options, name) ?? value;
    return given === value ? [] : [`--${name}=${given}`];
  });
}

/** Listen address; null: none. */
export function agentAddress(options: CommandOptions): string | null {
  return listenAddress(options, LISTEN) === null ? null : (flagText(options, 'listen') ?? LISTEN);
}

/** A duration in milliseconds. @throws AppError (exit code 2) */
function durationOf(options: CommandOptions, name: string): number {
  const text = flagText(options, name) ?? '';
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds < 0n)
    throw usageError(`--${name} ${JSON.stringify(text)} is not a valid duration`, 'Use a duration such as 10m or 90s');
  return Number(nanoseconds / 1_000_000n);
}

/** `--spread` in milliseconds: at most a day. @throws AppError (exit code 2) */
function spreadOf(options: CommandOptions): number {
  const ms = durationOf(options, 'spread');
  if (ms > SECONDS_OF_A_DAY * 1000)
    throw usageError(`--spread ${JSON.stringify(flagText(options, 'spread'))} is more than 24h`, 'Use a duration such as 10m or 90s');
  return ms;
}

/** An integer from 0 to 9999. @throws AppError (exit code 2) */
function countOf(options: CommandOptions, name: string): number {
  const text = flagText(options, name) ?? '';
  if (!/^\d{1,4}$/.test(text))
    throw usageError(`--${name} ${JSON.stringify(text)} is not an integer from 0 to 9999`, `For example: --${name}=5`);
  return Number(text);
}
