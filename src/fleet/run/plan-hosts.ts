import { settle } from '../../base/errors.ts';
import { inParallel } from '../../base/in-parallel.ts';
import { parseEqualTextsOnce } from '../../host/facts/parse-text.ts';
import { type MemberState, nextStep } from '../../maintenance/next-step.ts';
import type { FleetPorts, FleetResult, FleetRules, HostOutcome } from './fleet.ts';
import type { FleetMember } from './fleet-member.ts';
import { countByStatus, type HostResult, plannedOutcome, unopenedStatus } from './member-results.ts';

/**
 * Plans many hosts in parallel and changes none: stages do not wait for each other. Hosts that claim one Node are refused.
 * @param rules.observesFirst a host ends only when all are planned, so that its result names these claims
 * @throws errors other than AppError, after the hosts in progress have ended
 */
export async function planHosts(
  members: readonly FleetMember[],
  { parallel, maxFail, observesFirst = false }: Pick<FleetRules, 'parallel' | 'maxFail' | 'observesFirst'>,
  { signal, reporterOf, claims, ...ports }: Omit<FleetPorts, 'gates'>,
): Promise<FleetResult> {
  const parseText = parseEqualTextsOnce();
  const looking = new Set<string>();
  const planned = new Map<string, HostResult>();
  const outcomes = new Map<string, HostOutcome>();
  const bugs: unknown[] = [];
  /** Why no other host is planned. */
  const limit = (): string | null => {
    const stateOf = (name: string): MemberState => outcomes.get(name)?.status ?? (planned.has(name) ? 'queued' : 'waiting');
    const states = maxFail === null ? [] : members.map(({ name }) => ({ name, state: stateOf(name) }));
    return nextStep(states, { canary: 0, maxUnavailable: Number.POSITIVE_INFINITY, maxFail, observesFirst }).stopped;
  };
  const report = (): void => {
    const ended = countByStatus([...outcomes.values()]);
    const waiting = observesFirst ? [...planned.keys()].filter((name) => !outcomes.has(name)).length : 0;
    ports.progress?.({ total: members.length, looking: [...looking], waiting, changing: [], ended });
  };
  const end = async ({ name, node }: FleetMember, outcome: Omit<HostOutcome, 'host' | 'node'>): Promise<void> => {
    const one = { host: name, ...(node === undefined ? {} : { node }), ...outcome };
    outcomes.set(name, one);
    await ports.ended?.(one);
  };
  const outcomeOf = (host: string, plan: HostResult) => plannedOutcome(plan, claims?.of(host).problems() ?? []);
  const plan = async (member: FleetMember): Promise<void> => {
    const { name } = member;
    if (signal.aborted || bugs.length > 0 || limit() !== null) return;
    looking.add(name);
    report();
    const opened = await settle(member.open({ reporter: reporterOf(name), signal, parseText, isInspection: true }));
    if ('error' in opened) return end(member, { status: unopenedStatus(opened, signal), plan: null, error: opened.error });
    await settle(opened.value.close());
    planned.set(name, opened.value.planned);
    ports.planned?.(name, opened.value.planned.host);
    if (!observesFirst) await end(member, outcomeOf(name, opened.value.planned));
  };
  await inParallel(members, parallel, async (member) => {
    await plan(member).catch((error: unknown) => bugs.push(error));
    looking.delete(member.name);
    report();
  });
  const stopped = limit();
  for (const member of members) {
    if (outcomes.has(member.name)) continue;
    const own = planned.get(member.name) ?? null;
    const outcome = own === null || signal.aborted ? null : outcomeOf(member.name, own);
    const left = { status: signal.aborted ? 'interrupted' : 'not-started', plan: own, error: null } as const;
    await end(member, outcome !== null && (outcome.error !== null || stopped === null) ? outcome : left);
  }
  report();
  if (bugs.length > 0) throw bugs[0];
  const ended = members.flatMap(({ name }) => outcomes.get(name) ?? []);
  // A host may have ended before another host of the same Node was planned.
  const all = ended.map((one) => (isPlanned(one) ? { ...one, ...outcomeOf(one.host, one.plan) } : one));
  return { outcomes: all, stopped: all.some(({ status }) => status === 'not-started') ? stopped : null };
}

function isPlanned(outcome: HostOutcome): outcome is HostOutcome & { readonly plan: HostResult } {
  return outcome.plan !== null && (outcome.status === 'pending' || outcome.status === 'unchanged');
}
