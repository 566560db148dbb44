import { usageError } from '../../base/errors.ts';
import type { LabelSelector } from '../../kube/label-selector.ts';
import type { RolloutOrder } from '../../maintenance/start-order.ts';
import { type Amount, hostsOf } from '../amount.ts';
import { hostsOfPattern, labelsOfHost, type Selectable } from '../file/select.ts';
import type { FleetRules, HostOutcome } from '../run/fleet.ts';
import type { GatesRequest } from './open-gates.ts';

/** Limits as numbers or percentages of hosts. */
export interface RulesRequest {
  /** Processed at once. */
  readonly parallel: number;
  /** Changed first, before any other. Absent: not given. */
  readonly canary?: Amount | undefined;
  /** The canaries by names or groups, or by label; they replace the number of `canary`. Absent: not named. */
  readonly canaryHosts?: readonly string[] | LabelSelector | undefined;
  /** Absent: the order of the file or the command line. */
  readonly order?: RolloutOrder | undefined;
  /** Changed at once; null: `parallel`. */
  readonly maxUnavailable: Amount | null;
  /** May fail before the rest is skipped; null: the default limit. */
  readonly maxFail: Amount | null;
  /** Absent: the command has no options for gates and windows. */
  readonly gates?: GatesRequest | undefined;
}

export function fleetRules({ parallel, canary = { hosts: 0 }, order, maxUnavailable, maxFail }: RulesRequest, total: number): FleetRules {
  return {
    parallel,
    maxOpen: Math.max(parallel, MOST_OPEN),
    // A limit is pointless for one host.
    canary: total === 1 ? 0 : hostsOf(canary, total),
    order,
    // Without the option, hosts that are down do not delay the others.
    maxUnavailable: maxUnavailable === null ? Number.POSITIVE_INFINITY : Math.max(1, hostsOf(maxUnavailable, total)),
    maxFail: maxFail === null ? null : hostsOf(maxFail, total),
    cautious: maxFail === null,
  };
}

/** Hosts among which canaries are named. */
export interface CanaryChoice {
  /** All selected hosts, including those that are up to date. */
  readonly selected: readonly Selectable[];
  /** The canaries of the saved plan; undefined: the plan has no choice, or no plan is applied. */
  readonly planned?: readonly string[] | undefined;
}

/**
 * The canaries of an `apply`: those of `--canary`, or of the saved plan, otherwise one host, workers before control planes,
 * each in the order of the file. If all named ones are up to date, the next host is the canary.
 * @param hosts to change
 * @throws AppError USAGE (exit code 2) if no selected host has the name, group or label
 */
export function canaryRules(
  { canary, canaryHosts }: RulesRequest,
  hosts: readonly Selectable[],
  { selected, planned }: CanaryChoice,
): Required<Pick<FleetRules, 'canary' | 'canaryOrder'>> {
  const chosen = canaryHosts !== undefined ? namedCanaries(selected, canaryHosts) : canary === undefined ? planned : undefined;
  const named = hosts.flatMap(({ name }) => (chosen?.includes(name) === true ? [name] : []));
  const roles = ['worker', 'control-plane'] as const;
  const others = roles.flatMap((role) => hosts.filter((host) => host.role === role && !named.includes(host.name)));
  const count = chosen?.length === 0 ? 0 : named.length > 0 ? named.length : hostsOf(canary ?? { hosts: 1 }, hosts.length);
  return { canary: hosts.length <= 1 ? 0 : count, canaryOrder: [...named, ...others.map(({ name }) => name)] };
}

/** @throws AppError USAGE (exit code 2) if no host has the name, group or label */
export function namedCanaries(
  hosts: readonly Selectable[],
  wanted: NonNullable<RulesRequest['canaryHosts']>,
  hint = 'List hosts, groups and labels: kubeletadm fleet inventory -o wide',
): readonly string[] {
  const find = (text: string, matching: readonly Selectable[]): readonly string[] => {
    if (matching.length > 0) return matching.map(({ name }) => name);
    throw usageError(`--canary ${text}: no host of the run has this name, Node, group or label`, hint);
  };
  if ('matches' in wanted)
    return find(
      wanted.text,
      hosts.filter((host) => wanted.matches(labelsOfHost(host))),
    );
  return wanted.flatMap((text) => find(text, hostsOfPattern(hosts, text)));
}

export function plannedCanaries(
  { canary, canaryOrder }: ReturnType<typeof canaryRules>,
  outcomes: readonly Pick<HostOutcome, 'host' | 'status' | 'plan'>[],
): readonly string[] {
  const pending = outcomes.filter(({ status }) => status === 'pending');
  const up = pending.filter(({ plan }) => plan?.isDown !== true);
  const names = new Set((up.length > 0 ? up : pending).map(({ host }) => host));
  return pending.length <= 1 ? [] : canaryOrder.filter((name) => names.has(name)).slice(0, canary);
}

/** Maximum number of open connections, including those of queued hosts. */
const MOST_OPEN = 200;
