import { describe, expect, it } from 'vitest';
import { AppError, interrupted } from '../../../src/base/errors.ts';
import { type FleetPorts, type FleetRules, type HostOutcome, runFleet } from '../../../src/fleet/run/fleet.ts';
import { fleetFailure } from '../../../src/fleet/run/fleet-failure.ts';
import type { FleetMember } from '../../../src/fleet/run/fleet-member.ts';
import { planHosts } from '../../../src/fleet/run/plan-hosts.ts';
import type { Host } from '../../../src/host/access/host.ts';
import type { NodeClaim } from '../../../src/host/node-claim.ts';
import type { HostPlan } from '../../../src/host/plan/document.ts';
import { nodeClaims } from '../../../src/kubeadm/node-identity/node-claims.ts';
import type { BatchGates, GateRecord, GateStop } from '../../../src/maintenance/gates/batch-gates.ts';
import { recordingReporter } from '../../support/recording-reporter.ts';

const RULES: FleetRules = { canary: 0, maxUnavailable: 100, maxFail: null, parallel: 100, maxOpen: 100 };
const FAILED = new AppError({ code: 'KUBELET_UNHEALTHY', message: 'it does not run' });
const BACK = new AppError({ code: 'KUBELET_UNHEALTHY', message: 'it does not run' }, { exitCode: 5 });
const GONE = new AppError({ code: 'HOST_UNREACHABLE', message: 'no response' });
const LOST = new AppError({ code: 'HOST_CONNECTION_LOST', message: 'the connection was lost' });
const NO = new AppError({ code: 'PREFLIGHT', message: 'not like this' }, { exitCode: 3 });

/** Behaviour of a host. */
interface Behaviour {
  readonly changes?: boolean;
  readonly plan?: AppError;
  /** Result when it is planned again. */
  readonly planAgain?: AppError;
  readonly apply?: AppError;
  /** Duration of planning and applying, in turns of the event loop. */
  readonly planTakes?: number;
  readonly applyTakes?: number;
  readonly stage?: number;
  readonly isExclusive?: boolean;
  readonly isNeeded?: boolean;
  /** The Node of the host is not Ready, which is known after planning. */
  readonly isDown?: boolean;
  /** The Node is Ready again after that: at once, or only after its change. */
  readonly recovers?: 'at once' | 'changed';
  /** The host is a control plane, which is known after planning. */
  readonly isControlPlane?: boolean;
  /** Its stage, which is known after planning. */
  readonly plannedStage?: number;
  /** Node of the host, known after planning. */
  readonly claim?: NodeClaim;
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

function planOf(name: string, changes: boolean): HostPlan {
  const change = { kind: 'restart-unit', unit: 'kubelet', reason: 'a test' } as const;
  return { name, phases: [{ phase: 'kubelet-start', plan: changes ? { changes: [change] } : { changes: [], noop: 'nothing' } }] };
}

/**
 * Hosts, and a log of the operations on them.
 * @param options.losesKept connections that are kept after the inspection are lost
 */
function world(
  behaviours: Readonly<Record<string, Behaviour>>,
  { dryRun = false, ...rules }: Partial<FleetRules> & { readonly dryRun?: boolean } = {},
  { losesKept = false } = {},
) {
  const log: string[] = [];
  const interruption = new AbortController();
  const now = { open: 0, most: 0, changing: 0, mostChanging: 0 };
  const claims = nodeClaims();
  const reporter = recordingReporter();
  const member = ([
    name,
    {
      changes = true,
      plan,
      planAgain,
      apply,
      planTakes = 1,
      applyTakes = 1,
      claim,
      isDown = false,
      recovers,
      isControlPlane = false,
      plannedStage,
      ...place
    },
  ]: [string, Behaviour]): FleetMember => ({
    name,
    ...place,
    open: async ({ signal, reporter: own, connection }) => {
      const isAgain = log.includes(`look ${name}`);
      log.push(`look ${name}`);
      const isLost = connection !== undefined && losesKept;
      if (connection === undefined) now.most = Math.max(now.most, ++now.open);
      const close = async (): Promise<void> => {
        now.open--;
      };
      const failing = async (error: AppError): Promise<never> => {
        await close();
        throw error;
      };
      own.report({ level: 'warning', code: 'OLD_FLAG', host: name, message: `${name} has an old flag` });
      await turns(planTakes);
      if (signal.aborted) return failing(signal.reason);
      if (plan !== undefined) return failing(plan);
      if (isLost) return failing(LOST);
      if (isAgain && planAgain !== undefined) return failing(planAgain);
      if (claim !== undefined) claims.of(name).set(name, claim);
      const refusals = claims.of(name).problems();
      if (refusals.length > 0 && !dryRun) return failing(new AppError(refusals, { exitCode: 3 }));
      const host = planOf(name, changes);
      return {
        planned: {
          ...{ host, warnings: [], refusals, isDown, isExclusive: isControlPlane },
          ...(plannedStage === undefined ? {} : { stage: plannedStage }),
        },
        apply: async () => {
          log.push(`change ${name}`);
          now.mostChanging = Math.max(now.mostChanging, ++now.changing);
          await turns(applyTakes);
          now.changing--;
          if (apply !== undefined) throw apply;
          return host;
        },
        isNodeDown: async () => recovers === undefined || (recovers === 'changed' && !log.includes(`change ${name}`)),
        release: async () => ({ name }) as Host,
        close,
      };
    },
  });
  const ended: HostOutcome[] = [];
  const ports: FleetPorts = {
    signal: interruption.signal,
    claims,
    reporterOf: () => reporter,
    begins: async (host) => void log.push(`begins ${host}`),
    ended: async (outcome) => void ended.push(outcome),
  };
  const run = (more: Partial<FleetPorts> = {}) =>
    (dryRun ? planHosts : runFleet)(Object.entries(behaviours).map(member), { ...RULES, ...rules }, { ...ports, ...more });
  const statuses = async () => Object.fromEntries((await run()).outcomes.map(({ host, status }) => [host, status]));
  return { log, now, ended, interruption, reporter, run, statuses };
}

const many = (count: number, behaviour: Behaviour = {}): Record<string, Behaviour> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`h${i + 1}`, behaviour]));

describe('a run over a fleet', () => {
  it('reports the result of each host, in the order of the hosts', async () => {
    const { statuses, now } = world({
      a: {},
      b: { changes: false },
      c: { plan: GONE, planTakes: 20 },
      d: { plan: NO },
      e: { apply: FAILED },
      f: { apply: BACK },
    });
    expect(await statuses()).toEqual({ a: 'changed', b: 'unchanged', c: 'unreachable', d: 'refused', e: 'failed', f: 'rolled-back' });
    expect(now.open).toBe(0);
  });

  it('only plans when apply is not requested', async () => {
    const { statuses, log } = world({ a: {}, b: { changes: false } }, { dryRun: true });
    expect(await statuses()).toEqual({ a: 'pending', b: 'unchanged' });
    expect(log.filter((line) => !line.startsWith('look'))).toEqual([]);
  });

  it('reports each plan before the first change, and that no host follows a canary that rolls back', async () => {
    const { run } = world({ a: { apply: BACK, applyTakes: 9 }, b: {}, c: { plan: GONE } }, { canary: 1, observesFirst: true });
    const seen: string[] = [];
    const next = new Set<string>();
    await run({
      planned: (host) => void seen.push(host),
      begins: async () => void seen.push('begins'),
      progress: ({ changing, next: nextIf }) => {
        if (changing.includes('a')) for (const back of [[], ['a']]) next.add(JSON.stringify(nextIf?.(new Set(back))));
      },
    });
    expect(seen.slice(0, 2)).toEqual(['a', 'b']);
    expect([...next]).toEqual(['{"names":["b"],"stopped":null}', '{"names":[],"stopped":"the first host to be changed (canary) failed"}']);
  });

  it('plans no other host after more failures than permitted, or a bug', async () => {
    const rules = { dryRun: true, maxFail: 0, parallel: 1 };
    const { run } = world({ a: {}, b: { plan: NO }, c: {} }, rules);
    const { outcomes, stopped } = await run();
    expect(outcomes.map(({ status }) => status)).toEqual(['pending', 'refused', 'not-started']);
    expect(stopped).toBe('1 host failed, more than --max-fail allows');
    const all = await world({ a: {}, b: { plan: NO }, c: {} }, { ...rules, observesFirst: true }).run();
    expect(all.outcomes.map(({ status, plan }) => [status, plan !== null])).toEqual([
      ['not-started', true],
      ['refused', false],
      ['not-started', true],
    ]);
    const bug = world({ a: { plan: new Error('a bug') as AppError }, b: {} }, rules);
    await expect(bug.run()).rejects.toThrow('a bug');
    expect(bug.log).toEqual(['look a']);
    const interruptedRun = world({ a: { planTakes: 9 }, b: {} }, rules);
    const done = interruptedRun.run();
    interruptedRun.interruption.abort(interrupted('SIGINT'));
    expect((await done).outcomes.map(({ status }) => status)).toEqual(['interrupted', 'interrupted']);
  });

  it('does not wait for an unresponsive host', async () => {
    const { run, log } = world({ ...many(5), dead: { plan: GONE, planTakes: 50 } }, { canary: 1, maxUnavailable: 2, parallel: 4 });
    const done = run();
    await turns(30);
    expect(log.filter((line) => line.startsWith('change'))).toHaveLength(5);
    const { outcomes } = await done;
    expect(outcomes[5]).toMatchObject({ host: 'dead', status: 'unreachable', error: GONE });
  });

  it('names the reason if the canary of a stage failed', async () => {
    const { run } = world({ a: { apply: FAILED }, b: {}, c: {} }, { canary: 1, hasCanaryPerStage: true, observesFirst: true });
    expect((await run()).stopped).toBe('the first host to be changed (canary) failed');
  });

  it('names the refused host that stopped the run, not the required host that was not started', async () => {
    const { run } = world({ cp: { isNeeded: true, planTakes: 5 }, w1: { plan: NO }, w2: {} }, { maxFail: 0 });
    expect((await run()).stopped).toBe('1 host failed, more than --max-fail allows');
  });

  it('changes the other hosts if a host is refused after the inspection of all', async () => {
    const { statuses } = world({ a: { apply: NO }, b: {} }, { observesFirst: true, stopsIfRefused: true, maxUnavailable: 1 });
    expect(await statuses()).toEqual({ a: 'refused', b: 'changed' });
  });

  it('reports the start of a host before changing it', async () => {
    const { run, log } = world({ a: {} });
    await run();
    expect(log).toEqual(['look a', 'begins a', 'change a']);
  });

  describe('with two hosts that claim one Node', () => {
    const claim: NodeClaim = { nodeName: 'n1', isProven: true, machineId: 'a' };
    const both = { a: { claim }, b: { claim, planTakes: 20 }, c: { claim: { ...claim, nodeName: 'n2' } } };

    it('changes neither, if all hosts are planned first', async () => {
      const { run, log, now } = world(both, { observesFirst: true });
      const { outcomes } = await run();
      expect(outcomes.map(({ host, status, error }) => [host, status, error?.code, error?.exitCode])).toEqual([
        ['a', 'refused', 'NODE_CLAIMED_TWICE', 3],
        ['b', 'refused', 'NODE_CLAIMED_TWICE', 3],
        ['c', 'changed', undefined, undefined],
      ]);
      expect(log.filter((line) => line.startsWith('change'))).toEqual(['change c']);
      expect(log.indexOf('change c')).toBeGreaterThan(log.indexOf('look b'));
      expect(now.open).toBe(0);
    });

    it('reports both, if a refused host stops the run', async () => {
      const { run, now } = world(both, { observesFirst: true, stopsIfRefused: true });
      const { outcomes, stopped } = await run();
      expect(outcomes.map(({ status, error }) => [status, error?.exitCode])).toEqual([
        ['refused', 3],
        ['refused', 3],
        ['not-started', undefined],
      ]);
      expect(stopped).toBe('2 of 3 hosts were refused, and nothing was changed');
      expect(now.open).toBe(0);
    });

    it('reports the one that was planned first as interrupted, if the user interrupts the run', async () => {
      const { run, interruption } = world(
        { ...both, c: { ...both.c, applyTakes: 30 } },
        { maxUnavailable: 1, canary: 1, canaryOrder: ['c'] },
      );
      const done = run();
      await turns(25);
      interruption.abort(interrupted('SIGINT'));
      expect((await done).outcomes.map(({ status }) => status)).toEqual(['interrupted', 'refused', 'changed']);
    });

    it('reports both in a plan, once', async () => {
      const { run, ended } = world(both, { observesFirst: true, dryRun: true });
      await run();
      const problemsOf = (name: string) => ended.find(({ host }) => host === name)?.error?.problems.map(({ code }) => code);
      expect([problemsOf('a'), problemsOf('b'), problemsOf('c')]).toEqual([['NODE_CLAIMED_TWICE'], ['NODE_CLAIMED_TWICE'], undefined]);
    });

    it('refuses both in a plan, also the one that was planned before the other', async () => {
      const { run } = world({ ...both, b: { ...both.b, planTakes: 30 } }, { dryRun: true, parallel: 1 });
      const found = (await run()).outcomes.map(({ host, status, plan, error }) => [host, status, plan?.refusals.length, error?.code]);
      expect(found).toEqual([
        ['a', 'refused', 1, 'NODE_CLAIMED_TWICE'],
        ['b', 'refused', 1, 'NODE_CLAIMED_TWICE'],
        ['c', 'pending', 0, undefined],
      ]);
    });

    it('changes no further claimant without planning all hosts first', async () => {
      const first = { claim: { ...claim, nodeName: 'n0' }, applyTakes: 30 };
      const waiting = await world({ first, ...both }, { maxUnavailable: 1 }).statuses();
      expect(waiting).toEqual({ first: 'changed', a: 'refused', b: 'refused', c: 'changed' });
      const { statuses, log } = world(both);
      expect(await statuses()).toEqual({ a: 'changed', b: 'refused', c: 'changed' });
      expect(log).not.toContain('change b');
    });
  });

  it('waits for an unresponsive host only if all hosts are planned first', async () => {
    const { run, log } = world({ dead: { plan: GONE, planTakes: 30 }, ...many(3) }, { observesFirst: true });
    const done = run();
    await turns(20);
    expect(log.filter((line) => line.startsWith('change'))).toEqual([]);
    expect((await done).outcomes.map(({ status }) => status)).toEqual(['unreachable', 'changed', 'changed', 'changed']);
  });

  it.each([1, 2, 5])('changes %d hosts at a time', async (maxUnavailable) => {
    const { statuses, now } = world(many(12, { applyTakes: 3 }), { maxUnavailable });
    expect(new Set(Object.values(await statuses()))).toEqual(new Set(['changed']));
    expect(now.mostChanging).toBe(maxUnavailable);
  });

  describe('with hosts that are down', () => {
    const changes = (log: readonly string[]) => log.filter((line) => line.startsWith('change'));

    it('changes fewer at a time, and those that are down last', async () => {
      const hosts = { a: { isDown: true }, b: { plan: GONE }, ...many(4, { applyTakes: 3 }) };
      const { statuses, log, now } = world(hosts, { maxUnavailable: 3, canary: 1 });
      expect(Object.values(await statuses())).toEqual(['changed', 'unreachable', ...Array(4).fill('changed')]);
      expect(now.mostChanging).toBe(1);
      expect(changes(log)).toEqual(['change h1', 'change h2', 'change h3', 'change h4', 'change a']);
    });

    it('changes no other host if as many are down as permitted, and names them', async () => {
      const { run, log } = world({ a: { isDown: true }, b: { plan: GONE }, c: { planTakes: 5 } }, { maxUnavailable: 2 });
      const result = await run();
      expect(result.outcomes.map(({ status }) => status)).toEqual(['not-started', 'unreachable', 'not-started']);
      expect(changes(log)).toEqual([]);
      const stopped = 'a, b are unreachable or not Ready, and --max-unavailable permits no further host';
      expect(result).toMatchObject({ stopped, isBlocked: true });
      const failure = fleetFailure(result, { signal: new AbortController().signal });
      expect([failure?.exitCode, failure?.problems.at(-1)?.hint]).toEqual([3, expect.stringContaining('raise --max-unavailable')]);
    });

    it('fails without a change if a host whose Node is not Ready uses up the limit', async () => {
      const { run } = world({ a: { isDown: true }, b: {} }, { maxUnavailable: 1 });
      expect(fleetFailure(await run(), { signal: new AbortController().signal })?.exitCode).toBe(3);
    });

    it('fails without a change also if other hosts are up to date, and with some hosts changed otherwise', async () => {
      const { signal } = new AbortController();
      const upToDate = await world({ a: { isDown: true }, b: {}, c: { changes: false } }, { maxUnavailable: 1 }).run();
      expect(upToDate).toMatchObject({ isBlocked: true, outcomes: [{}, {}, { status: 'unchanged' }] });
      expect(fleetFailure(upToDate, { signal })?.exitCode).toBe(3);
      const changed = await world({ a: {}, b: { plan: GONE, planTakes: 9 }, c: { planTakes: 12 } }, { maxUnavailable: 1 }).run();
      expect(changed.outcomes.map(({ status }) => status)).toEqual(['changed', 'unreachable', 'not-started']);
      expect(fleetFailure(changed, { signal })?.exitCode).toBe(4);
    });

    it('counts those outside of the run, and names them', async () => {
      const { run, log } = world(many(2), { maxUnavailable: 1, othersDown: ['z'] });
      expect((await run()).stopped).toBe('z is unreachable or not Ready, and --max-unavailable permits no further host');
      expect(changes(log)).toEqual([]);
      const more = world(many(4, { applyTakes: 3 }), { maxUnavailable: 3, othersDown: ['z'] });
      expect(new Set(Object.values(await more.statuses()))).toEqual(new Set(['changed']));
      expect(more.now.mostChanging).toBe(2);
    });

    it.each([
      ['its change', { a: { isDown: true, recovers: 'changed' }, b: { stage: 1 }, c: { stage: 1, isDown: true, recovers: 'changed' } }],
      ['others', { a: { isDown: true, recovers: 'at once', changes: false }, b: {}, c: { stage: 1 } }],
    ] as const)('counts a host no longer when its Node is Ready again, repaired by %s', async (_, hosts) => {
      const { run, log } = world(hosts, { maxUnavailable: 1 });
      expect(await run()).toMatchObject({ stopped: null });
      expect(changes(log).filter((line) => line !== 'change a')).toEqual(['change b', 'change c']);
    });

    it('counts a host that is still down after its change', async () => {
      const { run } = world({ a: { isDown: true }, b: { stage: 1 } }, { maxUnavailable: 1 });
      expect((await run()).stopped).toBe('a is unreachable or not Ready, and --max-unavailable permits no further host');
    });

    it.each([
      ['runs its kubelet', { apply: FAILED, recovers: 'changed' }, null],
      ['was rolled back', { apply: BACK }, null],
      ['was refused', { apply: NO }, null],
      [
        'is not known to run its kubelet',
        { apply: FAILED },
        'a is unreachable or not Ready, and --max-unavailable permits no further host',
      ],
    ] as const)('counts a host whose change failed unless it %s', async (__, a, stopped) => {
      const { run, log } = world({ a, b: {}, c: {} }, { maxUnavailable: 1, maxFail: 2 });
      expect(await run()).toMatchObject({ stopped });
      expect(changes(log)).toEqual(['change a', ...(stopped === null ? ['change b', 'change c'] : [])]);
    });

    it('names the limit that stopped the run, not the hosts that are down', async () => {
      const claim: NodeClaim = { nodeName: 'n1', isProven: true, machineId: 'a' };
      const { run } = world({ a: { isDown: true }, b: { claim }, c: { claim, planTakes: 20 } }, { maxUnavailable: 1, maxFail: 1 });
      const result = await run();
      expect(result.outcomes.map(({ status }) => status)).toEqual(['not-started', 'refused', 'refused']);
      expect(result).toMatchObject({ stopped: '2 hosts failed, more than --max-fail allows', isBlocked: false });
    });

    it('plans them like the others', async () => {
      const { statuses } = world(
        { a: { isDown: true }, b: { plan: GONE }, c: {} },
        { maxUnavailable: 1, dryRun: true, observesFirst: true },
      );
      expect(await statuses()).toEqual({ a: 'pending', b: 'unreachable', c: 'pending' });
    });
  });

  it.each([false, true])('changes control planes one at a time, if planning finds them (all planned first: %s)', async (observesFirst) => {
    const { statuses, now, log } = world({ w1: {}, ...many(3, { isControlPlane: true, applyTakes: 5 }), w2: {} }, { observesFirst });
    expect(new Set(Object.values(await statuses()))).toEqual(new Set(['changed']));
    expect(now.mostChanging).toBe(1);
    expect(log.filter((line) => line.startsWith('change'))).toHaveLength(5);
  });

  it.each([false, true])('changes hosts in the stage that their inspection shows (all planned first: %s)', async (observesFirst) => {
    const plane = { stage: 1, isExclusive: true, plannedStage: 3 };
    const hosts = { cp1: plane, cp2: plane, w1: { stage: 2 }, cp3: { stage: 1, isExclusive: true }, w2: { stage: 2 } };
    const { statuses, log, now } = world(hosts, { observesFirst, maxUnavailable: 1, canary: 1, canaryOrder: ['w2'] });
    expect(new Set(Object.values(await statuses()))).toEqual(new Set(['changed']));
    expect(log.filter((line) => line.startsWith('change'))).toEqual(['w2', 'cp3', 'w1', 'cp1', 'cp2'].map((name) => `change ${name}`));
    expect(now.mostChanging).toBe(1);
  });

  it('respects the maximum number of connections, and finishes', async () => {
    const { statuses, now } = world(many(30), { maxUnavailable: 1, maxOpen: 4 });
    expect(new Set(Object.values(await statuses()))).toEqual(new Set(['changed']));
    expect(now.most).toBeLessThanOrEqual(4);
  });

  it('changes the canary first, alone, and the others when it is healthy', async () => {
    const { run, log } = world(many(4, { applyTakes: 5 }), { canary: 1 });
    const done = run();
    await turns(4);
    expect(log.filter((line) => line.startsWith('change'))).toEqual(['change h1']);
    await done;
    expect(log.filter((line) => line.startsWith('change'))).toHaveLength(4);
  });

  it('does not change the others when the canary fails', async () => {
    const { run, now } = world({ h1: { apply: BACK }, h2: {}, h3: { changes: false } }, { canary: 1 });
    const { outcomes, stopped } = await run();
    expect(outcomes.map(({ status }) => status)).toEqual(['rolled-back', 'not-started', 'unchanged']);
    expect(outcomes[1]?.plan?.host.phases).toHaveLength(1);
    expect(stopped).toBe('the first host to be changed (canary) failed');
    expect(now.open).toBe(0);
  });

  it('selects another canary when the first is unchanged or refused', async () => {
    const { run, log } = world({ h1: { changes: false }, h2: { plan: NO }, h3: { applyTakes: 5 }, h4: {} }, { canary: 1 });
    await run();
    expect(log.filter((line) => line.startsWith('change'))).toEqual(['change h3', 'change h4']);
  });

  it('stops after too many failures', async () => {
    const { run } = world({ ...many(2, { apply: FAILED, recovers: 'at once' }), x: {}, y: {} }, { maxUnavailable: 1, maxFail: 1 });
    const { outcomes, stopped } = await run();
    expect(outcomes.map(({ status }) => status)).toEqual(['failed', 'failed', 'not-started', 'not-started']);
    expect(stopped).toBe('2 hosts failed, more than --max-fail allows');
  });

  it('stops by default after few of many hosts, if only the canary succeeds', async () => {
    const { run, log } = world({ canary: {}, ...many(40, { apply: FAILED, applyTakes: 3 }) }, { canary: 1, cautious: true });
    const { outcomes, stopped } = await run();
    expect(log.filter((line) => line.startsWith('change'))).toHaveLength(3);
    expect(outcomes.filter(({ status }) => status === 'not-started')).toHaveLength(38);
    expect(stopped).toContain('2 of 3 changed hosts failed');
  });

  it('changes all hosts by default when none fails, in growing batches', async () => {
    const { run, now } = world({ ...many(60, { applyTakes: 3 }) }, { canary: 1, cautious: true, maxUnavailable: 50 });
    const { outcomes } = await run();
    expect(outcomes.every(({ status }) => status === 'changed')).toBe(true);
    expect(now.mostChanging).toBeGreaterThan(16);
  });

  it('does not treat an unreachable host as a failure', async () => {
    const { statuses } = world({ a: { plan: GONE }, b: { planTakes: 9 } }, { maxFail: 0 });
    expect(await statuses()).toEqual({ a: 'unreachable', b: 'changed' });
  });

  it('finishes hosts in progress when it is interrupted, and starts no other', async () => {
    const { run, log, interruption, now } = world(many(6, { applyTakes: 10 }), { maxUnavailable: 2 });
    const done = run();
    await turns(6);
    interruption.abort(interrupted('SIGINT'));
    const { outcomes } = await done;
    expect(outcomes.map(({ status }) => status)).toEqual([...Array(2).fill('changed'), ...Array(4).fill('interrupted')]);
    expect(log.filter((line) => line.startsWith('change'))).toHaveLength(2);
    expect(now.open).toBe(0);
  });

  it('finishes hosts in progress after an internal error, and reports the error', async () => {
    const bug = new TypeError('undefined is not a function') as unknown as AppError;
    const { run, ended } = world({ a: { plan: bug, planTakes: 5 }, b: { applyTakes: 20 }, c: { planTakes: 30 } });
    await expect(run()).rejects.toBe(bug);
    expect(ended.map(({ host, status }) => [host, status])).toContainEqual(['b', 'changed']);
  });
});

describe('hosts that are planned again when they are changed', () => {
  const AGAIN = { observesFirst: true, stopsIfRefused: true, maxUnavailable: 1, parallel: 2, maxOpen: 2 };

  it('have no connection in between if no more are permitted, and report each warning once', async () => {
    const { statuses, log, now, reporter } = world(many(4), AGAIN);
    expect(new Set(Object.values(await statuses()))).toEqual(new Set(['changed']));
    const changed = ['h1', 'h2', 'h3', 'h4'].flatMap((name) => [`look ${name}`, `begins ${name}`, `change ${name}`]);
    expect(log).toEqual(['look h1', 'look h2', 'look h3', 'look h4', ...changed]);
    expect(now.most).toBeLessThanOrEqual(2);
    expect(now.open).toBe(0);
    expect(reporter.messages('OLD_FLAG')).toHaveLength(4);
  });

  it('keep as many connections as permitted', async () => {
    const { run, now, log } = world(many(12, { applyTakes: 3 }), { ...AGAIN, maxUnavailable: 2, maxOpen: 6 });
    const done = run();
    while (!log.includes('change h1')) await turns(1);
    expect(now.open).toBeGreaterThan(2);
    expect((await done).outcomes.every(({ status }) => status === 'changed')).toBe(true);
    expect(now).toMatchObject({ open: 0, most: 6 });
  });

  it('are connected again if a kept connection was lost', async () => {
    const { statuses, now, log } = world(many(2), { ...AGAIN, maxOpen: 100 }, { losesKept: true });
    expect(await statuses()).toEqual({ h1: 'changed', h2: 'changed' });
    expect(log.filter((line) => line === 'look h1')).toHaveLength(3);
    expect(now.open).toBe(0);
  });

  it('are not changed and have no connection if the check of the inspection fails', async () => {
    const refusal = new AppError({ code: 'CONFIG_INVALID', message: 'wrong' }, { exitCode: 2 });
    const it = world({ ...many(3), x: { plan: NO } }, { ...AGAIN, maxFail: 1, maxOpen: 100 });
    const seen: (readonly string[])[] = [];
    const inspected = (outcomes: readonly HostOutcome[]): void => {
      seen.push(outcomes.map(({ host }) => host));
      throw refusal;
    };
    await expect(it.run({ inspected })).rejects.toBe(refusal);
    expect([seen, it.now.open, it.log.some((line) => line.startsWith('change'))]).toEqual([[['x']], 0, false]);
    expect(it.ended.map(({ status }) => status).toSorted()).toEqual(['not-started', 'not-started', 'not-started', 'refused']);
  });

  it('are not opened again if they have no changes', async () => {
    const { statuses, log } = world({ a: { changes: false }, b: {} }, AGAIN);
    expect(await statuses()).toEqual({ a: 'unchanged', b: 'changed' });
    expect(log.filter((line) => line === 'look a')).toHaveLength(1);
  });

  it('do not stop the others if they are refused or unreachable then', async () => {
    const { statuses, log } = world({ a: { planAgain: NO }, b: { planAgain: GONE }, c: {} }, { ...AGAIN, maxUnavailable: 2 });
    expect(await statuses()).toEqual({ a: 'refused', b: 'unreachable', c: 'changed' });
    expect(log.filter((line) => line.startsWith('begins'))).toEqual(['begins c']);
  });

  it('are not changed if the user interrupts the run while they are planned', async () => {
    const { run, log, interruption, now } = world({ a: { planTakes: 10 }, b: {} }, AGAIN);
    const done = run();
    while (log.length < 3) await turns(1);
    interruption.abort(interrupted('SIGINT'));
    expect((await done).outcomes.map(({ status }) => status)).toEqual(['interrupted', 'interrupted']);
    expect([log.includes('begins a'), now.open]).toEqual([false, 0]);
  });

  it('are planned once if the run has one host, or changes nothing', async () => {
    for (const [hosts, rules] of [
      [1, {}],
      [3, { dryRun: true }],
    ] as const) {
      const { run, log, now } = world(many(hosts), { ...AGAIN, ...rules });
      await run();
      expect(log.filter((line) => line.startsWith('look'))).toHaveLength(hosts);
      expect(now.most).toBeLessThanOrEqual(2);
    }
  });
});

describe('stages', () => {
  const FIRST = { stage: 0, isNeeded: true, planTakes: 3, applyTakes: 3 };

  it('begin after all previous stages finished, in any order of the hosts', async () => {
    const { statuses, log } = world({ w1: { stage: 2 }, w2: { stage: 2 }, cp2: { stage: 1 }, cp1: FIRST });
    expect(await statuses()).toEqual({ w1: 'changed', w2: 'changed', cp2: 'changed', cp1: 'changed' });
    const at = (line: string): number => log.indexOf(line);
    expect(at('look cp2')).toBeGreaterThan(at('change cp1'));
    expect(Math.min(at('look w1'), at('look w2'))).toBeGreaterThan(at('change cp2'));
  });

  it('are planned without waiting', async () => {
    const { statuses, log } = world({ w1: { stage: 2 }, cp1: { ...FIRST, planTakes: 30 } }, { dryRun: true });
    expect(await statuses()).toEqual({ w1: 'pending', cp1: 'pending' });
    expect(log).toEqual(['look w1', 'look cp1']);
  });

  it.each([
    ['refused', { plan: NO }],
    ['unreachable', { plan: GONE }],
    ['failed', { apply: FAILED }],
    ['rolled-back', { apply: BACK }],
  ])('are skipped when a required host is %s', async (status, behaviour) => {
    const { run, log } = world({ cp1: { ...FIRST, ...behaviour }, cp2: { stage: 1 }, w1: { stage: 2 } });
    const { outcomes, stopped } = await run();
    expect(outcomes.map((outcome) => outcome.status)).toEqual([status, 'not-started', 'not-started']);
    expect(stopped).toBe('the other hosts need cp1, which failed');
    expect(log.filter((line) => !line.endsWith(' cp1'))).toEqual([]);
  });

  it('continue when a host fails that no other requires', async () => {
    const { statuses } = world({ cp1: FIRST, cp2: { stage: 1, plan: GONE }, cp3: { stage: 1, apply: FAILED }, w1: { stage: 2 } });
    expect(await statuses()).toEqual({ cp1: 'changed', cp2: 'unreachable', cp3: 'failed', w1: 'changed' });
  });

  it('can change their hosts one at a time', async () => {
    const alone = { stage: 1, isExclusive: true, applyTakes: 5 };
    const { statuses, now, log } = world({ a: alone, b: alone, c: alone, d: { stage: 1, applyTakes: 5 } });
    expect(await statuses()).toEqual({ a: 'changed', b: 'changed', c: 'changed', d: 'changed' });
    expect(now.mostChanging).toBe(1);
    // Each host is planned after the previous one finished.
    expect(log.filter((line) => /^(?:look|change) [abc]$/.test(line))).toEqual([
      'look a',
      'change a',
      'look b',
      'change b',
      'look c',
      'change c',
    ]);
  });

  it('plan all hosts when apply is not requested', async () => {
    const { statuses } = world(
      { a: { isExclusive: true }, b: { isExclusive: true, plan: GONE, planTakes: 20 } },
      { dryRun: true, parallel: 1 },
    );
    expect(await statuses()).toEqual({ a: 'pending', b: 'unreachable' });
  });

  describe('the canary', () => {
    const answering = (...times: readonly number[]): Record<string, Behaviour> =>
      Object.fromEntries(times.map((planTakes, i) => [`h${i + 1}`, { planTakes }]));
    const firstChanged = async ({ run, log }: ReturnType<typeof world>) => {
      await run();
      return log.find((line) => line.startsWith('change'));
    };

    it.each([[[1, 5, 9]], [[9, 1, 5]], [[5, 9, 1]]])('is the first host of the run, whichever answers first: %j', async (times) => {
      expect(await firstChanged(world(answering(...times), { canary: 1 }))).toBe('change h1');
      expect(await firstChanged(world(answering(...times), { canary: 1, canaryOrder: ['h3', 'h1', 'h2'] }))).toBe('change h3');
    });

    it('is the next one if a host is unchanged, unreachable or refused', async () => {
      const slow = { planTakes: 9 };
      const hosts = { a: { ...slow, changes: false }, b: { ...slow, plan: GONE }, c: { ...slow, plan: NO }, d: slow, e: {} };
      expect(await firstChanged(world(hosts, { canary: 1 }))).toBe('change d');
    });

    it('is changed before the hosts of earlier stages; the others follow by stage', async () => {
      const plane = { stage: 1, isExclusive: true };
      const hosts = { cp1: plane, cp2: plane, w1: { stage: 2, planTakes: 9 }, w2: { stage: 2 } };
      const { run, log } = world(hosts, { canary: 1, canaryOrder: ['w1', 'w2', 'cp1', 'cp2'] });
      await run();
      expect(log.filter((line) => line.startsWith('change'))).toEqual(['change w1', 'change cp1', 'change cp2', 'change w2']);
    });

    it('is a host of the first stage without an order, and no host of a later stage is inspected early', async () => {
      const hosts = { cp1: { stage: 1 }, w1: { planTakes: 9, changes: false }, w2: { planTakes: 9 } };
      const { run, log } = world(hosts, { canary: 1 });
      await run();
      expect(log.filter((line) => !line.startsWith('begins'))).toEqual(['look w1', 'look w2', 'change w2', 'look cp1', 'change cp1']);
    });

    it('is a host that later stages require, before the others are inspected', async () => {
      const hosts = { cp1: { isNeeded: true, planTakes: 5 }, w1: { stage: 2 } };
      const { run, log } = world(hosts, { canary: 1, canaryOrder: ['w1', 'cp1'] });
      await run();
      expect(log).toEqual(['look cp1', 'begins cp1', 'change cp1', 'look w1', 'begins w1', 'change w1']);
    });

    it.each([
      ['changed', 'h10'],
      ['unreachable', 'h9'],
    ])('late in the file is inspected first: %s', async (status, canary) => {
      const hosts = Object.fromEntries(Array.from({ length: 10 }, (_, i): [string, Behaviour] => [`h${i + 1}`, {}]));
      const order = ['h10', 'h9', ...Object.keys(hosts).slice(0, 8)];
      const late = status === 'changed' ? {} : { plan: GONE };
      const { run, log } = world({ ...hosts, h10: late }, { canary: 1, canaryOrder: order, parallel: 2, maxOpen: 4 });
      const { outcomes } = await run();
      expect(outcomes.map((outcome) => outcome.status)).toEqual([...Array.from({ length: 9 }, () => 'changed'), status]);
      expect(log.slice(0, 2)).toEqual(['look h10', 'look h9']);
      expect(log.find((line) => line.startsWith('change'))).toBe(`change ${canary}`);
    });

    it('leaves connections for the earlier stages: few hosts are inspected before their stage', async () => {
      const plane = { stage: 1, isExclusive: true };
      const workers = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`w${i + 1}`, { stage: 2 }]));
      const order = [...Object.keys(workers), 'cp1', 'cp2'];
      const { statuses, now } = world({ cp1: plane, cp2: plane, ...workers }, { canary: 1, canaryOrder: order, parallel: 4, maxOpen: 4 });
      expect(Object.values(await statuses())).toEqual(Array.from({ length: 22 }, () => 'changed'));
      expect(now.most).toBeLessThanOrEqual(4);
    });
  });
});

describe('a run over a fleet with gates', () => {
  /** Gates whose calls are logged with the operations on hosts. */
  const withGates = (
    behaviours: Readonly<Record<string, Behaviour>>,
    stops: (call: number) => GateStop | null = () => null,
    rules: Partial<FleetRules> = {},
  ) => {
    const fleet = world(behaviours, { canary: 1, observesFirst: true, ...rules });
    let calls = 0;
    const gates: BatchGates = {
      pass: async (next, ended) => {
        fleet.log.push(
          next.names.length === 0
            ? `gates at the end${next.done.length === 0 ? '' : `, done: ${next.done.join(' ')}`}`
            : `gates before ${next.names.join(' ')}${next.isCanary ? ' (canary)' : ''}, done: ${next.done.join(' ')}`,
        );
        await turns(3);
        await ended?.(RECORD);
        return stops(++calls);
      },
    };
    const records: GateRecord[] = [];
    const run = () => fleet.run({ gates, gateEnded: async (record) => void records.push(record) });
    const steps = () => fleet.log.filter((line) => /^(?:change|gates)/.test(line));
    return { ...fleet, run, steps, records };
  };
  const RECORD: GateRecord = { gate: 'g', kind: 'command', batch: 1, attempts: 1, durationMs: 0, isPassed: true, answer: 'exit code 0' };
  const STOP: GateStop = {
    kind: 'gate',
    reason: 'gate g failed',
    reverts: false,
    problem: { code: 'GATE_FAILED', message: 'gate g failed', hint: 'Fix it' },
  };

  it('changes hosts in batches, which do not contain hosts without changes', async () => {
    const { run, steps, records } = withGates({ a: {}, b: { changes: false }, c: {}, d: { applyTakes: 9 } });
    const result = await run();
    expect(fleetFailure(result, { signal: new AbortController().signal })).toBeNull();
    expect(steps()).toEqual([
      'gates before a (canary), done: b',
      'change a',
      'gates before c d, done: b',
      'change c',
      'change d',
      'gates at the end, done: b',
    ]);
    expect(records).toHaveLength(3);
  });

  it('starts no further batch after a failed gate', async () => {
    const { run, steps } = withGates({ a: {}, b: {}, c: {} }, (call) => (call === 2 ? STOP : null));
    const result = await run();
    expect(result.outcomes.map(({ status }) => status)).toEqual(['changed', 'not-started', 'not-started']);
    expect(steps().at(-1)).toBe('gates before b c, done: ');
    const failure = fleetFailure(result, { signal: new AbortController().signal });
    expect(failure?.exitCode).toBe(4);
    expect(failure?.problems.map(({ code, message }) => `${code}: ${message}`)).toEqual([
      'GATE_FAILED: gate g failed',
      'FLEET_STOPPED: the run stopped before it processed 2 hosts: gate g failed',
    ]);
  });

  it('fails if the last gate fails although all hosts are changed', async () => {
    const { run } = withGates({ a: {}, b: {} }, (call) => (call === 3 ? STOP : null));
    const failure = fleetFailure(await run(), { signal: new AbortController().signal });
    expect([failure?.exitCode, failure?.code]).toEqual([4, 'GATE_FAILED']);
  });

  it('runs the gates in a run without changes: exit code 3 if they fail', async () => {
    const { run, steps } = withGates({ a: { changes: false }, b: { changes: false } }, () => STOP);
    const failure = fleetFailure(await run(), { signal: new AbortController().signal });
    expect([failure?.exitCode, failure?.code]).toEqual([3, 'GATE_FAILED']);
    expect(steps()).toEqual(['gates at the end, done: a b']);
  });

  it('changes nothing before the first window: exit code 3', async () => {
    const { run } = withGates({ a: {}, b: { changes: false } }, () => ({ ...STOP, kind: 'window' }));
    expect(fleetFailure(await run(), { signal: new AbortController().signal })?.exitCode).toBe(3);
  });

  it('does not run gates at the end while hosts are left, because others are down', async () => {
    const { run, steps } = withGates({ a: {}, b: {}, c: { isDown: true } }, () => null, { maxUnavailable: 1 });
    const { isBlocked } = await run();
    expect([isBlocked, steps()]).toEqual([true, []]);
  });

  it('does not run gates after hosts failed', async () => {
    const { run, steps } = withGates({ a: { apply: FAILED }, b: {} });
    await run();
    expect(steps()).toEqual(['gates before a (canary), done: ', 'change a']);
  });

  it('ends with the exit code of the interruption during the last gate', async () => {
    const { run, interruption } = withGates({ a: {} }, (call) => {
      if (call < 2) return null;
      interruption.abort(interrupted('SIGINT'));
      return { ...STOP, kind: 'interrupted' };
    });
    const failure = fleetFailure(await run(), interruption);
    expect([failure?.exitCode, failure?.problems.map(({ code }) => code)]).toEqual([130, ['INTERRUPTED']]);
  });
});
