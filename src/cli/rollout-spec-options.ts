import { usageError } from '../base/errors.ts';
import type { JsonObject } from '../base/json.ts';
import { present } from '../base/present.ts';
import { formatAmount } from '../fleet/amount.ts';
import { AGENT_NAMESPACE } from '../kube/agent-namespace.ts';
import { subdomain } from '../kube/name-rules.ts';
import type { CommandOptions } from './command.ts';
import { optionName } from './dynamic-rollout-options.ts';
import { flagText } from './option-values.ts';
import { allowedImpact, flagDuration, kubeconfigRequest, nodeChoice, outputRequest, runRequest, verbosityOf } from './request-parts.ts';
import type { AssignRolloutRequest, CreateRequest, RolloutRequest } from './rollout.ts';
import { amountOf, namedCanary } from './rollout-options.ts';

/** The name of a rollout, and the cluster. @throws AppError USAGE (exit code 2) */
export function rolloutRequest(args: readonly string[], options: CommandOptions): RolloutRequest {
  const [argument = ''] = args;
  const name = argument.replace(/^(?:kcr|kubeletconfigrollouts?(?:\.kubeletadm\.dev)?)\//i, '');
  const [wrong] = subdomain(name);
  if (wrong !== undefined)
    throw usageError(`${argument} is not a name of a rollout: ${wrong}`, 'List the rollouts: kubeletadm rollout list');
  return { name, cluster: kubeconfigRequest(options), verbosity: verbosityOf(options) };
}

/** `--canary LABEL`; undefined: a number, or none. */
export function canariesOf(options: CommandOptions): CreateRequest['canaries'] {
  const canaries = namedCanary(options);
  if (canaries === undefined || 'matches' in canaries) return canaries;
  throw usageError(
    `--canary ${canaries.join(',')}: a rollout selects canaries by number or label`,
    `For example: --canary kubernetes.io/hostname=${canaries[0] ?? ''}`,
  );
}

/** Options of `dynamic assign` that have no field in a rollout. */
const NOT_IN_ROLLOUTS: readonly string[] =
  'allowPodLoss skipValidation force ignoreWindow backend report serve reason exitCode showOrigin'.split(' ');

/**
 * `dynamic assign --selector L --rollout NAME`.
 * @throws AppError USAGE (exit code 2) for options that a rollout cannot have
 */
export function assignRolloutRequest(
  args: readonly string[],
  options: CommandOptions,
  assigned: AssignRolloutRequest['assigned'],
): AssignRolloutRequest {
  const choice = nodeChoice(args, options);
  if (choice?.kind !== 'selector')
    throw usageError('--rollout requires --selector', 'A rollout selects its nodes by label, also those that join later');
  const other = NOT_IN_ROLLOUTS.find((name) => options[name] !== undefined && options[name] !== false);
  if (other !== undefined)
    throw usageError(
      `${optionName(other)} cannot be combined with --rollout`,
      'Omit one of the two, or create the object with kubeletadm rollout create',
    );
  const isGood = options.wait === 'good';
  const canaries = canariesOf(options);
  const spec = specOf(
    {
      ...options,
      until: isGood ? 'good' : undefined,
      progressDeadline: options.timeout ?? (isGood ? '15m' : '3m'),
      maxUnavailable: options.maxUnavailable ?? '10%',
      allow: options.drain === false ? undefined : 'unsafe',
    },
    canaries !== undefined,
  );
  const name = flagText(options, 'rollout') ?? '';
  return {
    ...rolloutRequest([name], options),
    ...{
      assigned,
      selector: choice.selector,
      spec,
      canaries,
      gates: flagText(options, 'gates'),
      namespace: AGENT_NAMESPACE,
      run: runRequest(options),
    },
    waits: options.wait !== 'none',
    format: outputRequest(options).format,
  };
}

const MAX_FAILURES = 100;

/** The fields of `spec` that options set. @throws AppError USAGE (exit code 2) */
export function specOf(options: CommandOptions, namesCanary: boolean): JsonObject {
  const amount = (name: 'canary' | 'maxUnavailable'): number | string | undefined => {
    const value = amountOf(options, name, 'nodes');
    return value === null ? undefined : 'hosts' in value ? value.hosts : formatAmount(value);
  };
  const seconds = (name: 'minReady' | 'progressDeadline' | 'drainTimeout' | 'settle'): number | undefined => {
    const flag = optionName(name);
    const ms = flagDuration(options, name, { flag, example: `Pass for example ${flag} 5m` });
    return ms === undefined ? undefined : Math.ceil(ms / 1000);
  };
  const maxFail = amountOf(options, 'maxFail', 'nodes');
  if (maxFail !== null && (!('hosts' in maxFail) || maxFail.hosts > MAX_FAILURES))
    throw usageError(
      `--max-fail ${formatAmount(maxFail)}: a rollout has a number from 0 to ${MAX_FAILURES}`,
      'Pass for example --max-fail 2',
    );
  const count = namesCanary ? undefined : amount('canary');
  const drain = present({
    force: options.forceDrain === true ? true : undefined,
    timeoutSeconds: flagText(options, 'drainTimeout') === DEFAULTS.drainTimeout ? undefined : seconds('drainTimeout'),
    settleSeconds: flagText(options, 'settle') === DEFAULTS.settle ? undefined : seconds('settle'),
  });
  const strategy = present({
    canary: count === undefined ? undefined : { count },
    topologyKey: options.order === undefined ? undefined : 'topology.kubernetes.io/zone',
    topologyOrder: options.order === 'spread' ? 'Spread' : undefined,
    maxUnavailable: amount('maxUnavailable'),
    maxFailures: maxFail?.hosts,
    minReadySeconds: seconds('minReady'),
    until: capital(flagText(options, 'until')),
    allow: allowedImpact(options),
    drain: Object.keys(drain).length === 0 ? undefined : drain,
  });
  return present({
    strategy: Object.keys(strategy).length === 0 ? undefined : strategy,
    paused: options.paused === true ? true : undefined,
    progressDeadlineSeconds: seconds('progressDeadline'),
    onFailure: capital(flagText(options, 'onFailure')),
    deletionPolicy: capital(flagText(options, 'deletionPolicy')),
  }) as JsonObject;
}

/** Of options, as of the API. */
const DEFAULTS = { drainTimeout: '10m', settle: '2m' } as const;

/** Words of options as values of the API: `stop` becomes `Stop`. */
function capital(text: string | undefined): string | undefined {
  return text === undefined ? undefined : `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
