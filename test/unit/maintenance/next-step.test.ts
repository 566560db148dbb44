import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type MemberState,
  nextMembers,
  nextStep,
  planBatches,
  type RolloutMember,
  type RolloutRules,
} from '../../../src/maintenance/next-step.ts';
import { numberOfRuns } from '../../support/thorough.ts';

const STATES: Readonly<Record<string, MemberState>> = {
  '+': 'changed',
  '~': 'in-progress',
  '-': 'failed',
  '?': 'unreachable',
  '.': 'waiting',
  ':': 'inspecting',
  x: 'refused',
  '=': 'unchanged',
};

/** `a b! c+ d~ e- f?`: queued, down, changed, in progress, failed, unreachable; `.` waiting, `:` inspecting, `x` refused. */
function members(text: string): readonly RolloutMember[] {
  return text.split(' ').map((word) => ({
    name: word.slice(0, 1),
    state: STATES[word.slice(1, 2)] ?? 'queued',
    isDown: word.includes('!'),
  }));
}

/** `a b`, `a (canary)`, `stop`, `blocked by a`, or nothing. */
function step(text: string | readonly RolloutMember[], rules: RolloutRules): string {
  const { start, isCanary, stopped, blocked } = nextStep(typeof text === 'string' ? members(text) : text, rules);
  const names = start.map(({ name }) => name).join(' ');
  if (stopped !== null) return 'stop';
  return blocked.length > 0 ? `blocked by ${blocked.join(' ')}` : `${names}${isCanary && names !== '' ? ' (canary)' : ''}`;
}

/** Rules of an assignment to Nodes. */
const BATCHES = { maxFail: 0, inBatches: true } as const;
/** Rules of a run over hosts. */
const HOSTS: RolloutRules = { canary: 0, maxUnavailable: 10, maxFail: null };

describe('the next step of a rollout in batches', () => {
  it.each<[string, number, number, string]>([
    ['a b c', 1, 2, 'a (canary)'],
    ['a~ b c', 1, 2, ''],
    ['a+ b c', 1, 2, 'b c'],
    ['a+ b~ c', 1, 2, ''],
    ['a+ b- c', 1, 2, 'stop'],
    ['a+ b+ c+', 1, 1, ''],
    // Nodes that are down use up maxUnavailable, also after their update.
    ['a+! b c d', 1, 2, 'b'],
    ['a+! b! c d', 1, 2, 'blocked by a b'],
    // Nodes that are down are updated last, together, and are never canaries.
    ['a! b c', 1, 3, 'b (canary)'],
    ['a! b+ c! d+', 1, 1, 'a c'],
    ['a?! b+', 1, 1, ''],
    // Nodes updated by an earlier run replace the canary.
    ['a+ b+ c d', 2, 1, 'c'],
    ['a b c', 3, 2, 'a b (canary)'],
    ['a b c', 0, 9, 'a b c'],
  ])('of %s with %d canaries, %d unavailable: %s', (text, canary, maxUnavailable, expected) => {
    expect(step(text, { ...BATCHES, canary, maxUnavailable })).toBe(expected);
  });

  it.each<[string, number, string]>([
    ['a b! c! d', 1, 'b c'],
    ['a b+ c- d', 1, 'a'],
    ['a b?! c d', 2, 'a'],
    ['a b?! c d', 1, 'blocked by b'],
    ['a- b+', 1, ''],
  ])('that restores %s, %d unavailable: %s', (text, maxUnavailable, expected) => {
    expect(step(text, { canary: 0, maxUnavailable, maxFail: null, inBatches: true, downFirst: true })).toBe(expected);
  });

  it.each<[string, number, string]>([
    ['a+ b- c', 1, 'c'],
    ['a+ b- c- d', 1, 'stop'],
    ['a- b c', 2, 'stop'],
  ])('of %s with at most %d failures: %s', (text, maxFail, expected) => {
    expect(step(text, { canary: 1, maxUnavailable: 2, maxFail, inBatches: true })).toBe(expected);
  });
});

describe('the next step of a run over hosts', () => {
  it.each<[string, string, Partial<RolloutRules>, string]>([
    ['all hosts that are planned', 'a b. c', {}, 'a c'],
    ['as many as permitted, while others are in progress', 'a~ b c d', { maxUnavailable: 2 }, 'b'],
    ['none beyond the limit', 'a~ b~ c', { maxUnavailable: 2 }, ''],
    ['the canary alone', 'a b c', { canary: 1 }, 'a (canary)'],
    ['none in addition to the canary', 'a~ b c', { canary: 1 }, ''],
    ['no canary before the hosts ahead of it are planned', 'a: b c', { canary: 1 }, ''],
    ['the next canary if the first is unchanged or refused', 'a= bx c d', { canary: 1 }, 'c (canary)'],
    ['the others after a successful canary', 'a+ b c', { canary: 1 }, 'b c'],
    ['none after a failed canary', 'a- b', { canary: 1 }, 'stop'],
    ['the others after a failure of a later host', 'a+ b- c d', { canary: 1 }, 'c d'],
    ['none with more failures than allowed', 'a- bx c', { maxFail: 1 }, 'stop'],
    ['the others with as many failures as allowed', 'a- bx c', { maxFail: 2 }, 'c'],
    ['none if a host is refused, if that stops the run', 'ax b c', { stopsIfRefused: true }, 'stop'],
    ['the others if --max-fail permits a refused host', 'ax b c', { stopsIfRefused: true, maxFail: 1 }, 'b c'],
    ['the others if a host is unreachable', 'a? b', { maxFail: 0 }, 'b'],
    ['fewer if hosts are down', 'a?! b! c d e', { maxUnavailable: 3 }, 'c'],
    ['none if too many are down', 'a?! b! c', { maxUnavailable: 2 }, 'blocked by a b'],
    ['those that are down last', 'a! b~', {}, ''],
    ['those that are down after the others are inspected', 'a! b:', {}, ''],
    ['those that are down, as many as permitted', 'a! b! c+ d=', { maxUnavailable: 1 }, 'a'],
    ['the next one that is down, while another is changed', 'a~! b! c!', { maxUnavailable: 2 }, 'b'],
    ['those that are down, if no more can be inspected', 'a! b! c.', { maxOpen: 2 }, 'a b'],
    ['a canary that is not down', 'a! b c', { canary: 1 }, 'b (canary)'],
    ['one of those that are all down', 'a! b! c!', { canary: 1 }, 'a'],
    ['none after one of those that are all down failed', 'a-! b! c!', { canary: 1 }, 'stop'],
    ['none before all are planned, if all are planned first', 'a b. c', { observesFirst: true }, ''],
    ['as many as are processed at the same time', 'a: b c d', { parallel: 2 }, 'b'],
    ['by default twice the number of changed hosts', 'a+ b~ c d e', { canary: 1, cautious: true }, 'c'],
    ['by default one host after a failure of the second', 'a+ b- c d', { canary: 1, cautious: true }, 'c'],
    ['by default none after two failures of three', 'a+ b- c- d', { canary: 1, cautious: true }, 'stop'],
    ['by default all if those refused were not changed', 'a+ b+ cx dx ex f g', { canary: 1, cautious: true }, 'f g'],
    ['a verified host in place of the canary', 'b c', { canary: 1 }, 'b (canary)'],
  ])('starts %s', (_, text, rules, expected) => {
    expect(step(text, { ...HOSTS, ...rules })).toBe(expected);
  });

  it('accepts a verified host without changes as the canary', () => {
    expect(step([{ name: 'a', state: 'unchanged', isVerified: true }, ...members('b c')], { ...HOSTS, canary: 1 })).toBe('b c');
  });

  it('changes by default at most as many hosts as the limit, after two failures of twenty', () => {
    const ended = (count: number, state: MemberState): RolloutMember[] =>
      Array.from({ length: count }, (_, i) => ({ name: `${state}${i}`, state }));
    const rules = { ...HOSTS, canary: 1, cautious: true };
    const run = (changed: number, failed: number) => nextStep([...ended(changed, 'changed'), ...ended(failed, 'failed')], rules);
    expect(run(18, 2).maxConcurrent).toBe(10);
    expect(run(989, 11).maxConcurrent).toBe(0);
  });

  it('reports why no more hosts are started', () => {
    const reason = (text: string, rules: Partial<RolloutRules>) => nextStep(members(text), { ...HOSTS, ...rules }).stopped;
    expect(reason('a- b', { canary: 1 })).toBe('the first host to be changed (canary) failed');
    expect(reason('a- b', { maxFail: 0 })).toBe('1 host failed, more than --max-fail allows');
    expect(reason('a- b- c- d', {})).toBeNull();
    expect(reason('a+ b- c- d', { cautious: true })).toBe(
      '2 of 3 changed hosts failed, more than the default limit of 1 (10% of the changed hosts, from 1 to 10)',
    );
    expect(nextStep([{ name: 'cp1', state: 'unreachable', isNeeded: true }, ...members('b')], HOSTS).stopped).toBe(
      'the other hosts need cp1, which failed',
    );
  });

  it('changes a host that is down after the canary, also if the canary is of a later stage', () => {
    const rules = { ...HOSTS, canary: 1, canaryOrder: ['w', 'v', 'c'] };
    const run = (w: MemberState, c: Partial<RolloutMember> = {}): readonly RolloutMember[] => [
      { name: 'c', stage: 1, state: 'queued', isDown: true, ...c },
      { name: 'w', stage: 2, state: w },
      { name: 'v', stage: 2, state: 'queued' },
    ];
    expect(step(run('queued'), rules)).toBe('w (canary)');
    expect(step(run('inspecting'), rules)).toBe('');
    expect(step(run('waiting'), rules)).toBe('');
    expect(step(run('unreachable'), rules)).toBe('v (canary)');
    expect(step(run('changed'), rules)).toBe('c');
    expect(step(run('queued'), { ...rules, maxUnavailable: 1 })).toBe('blocked by c');
    // Another control plane is inspected only after this one.
    const other: RolloutMember = { name: 'd', stage: 1, state: 'waiting', isExclusive: true };
    expect(step([...run('queued', { isExclusive: true }), other], { ...rules, canaryOrder: ['d', 'w', 'v', 'c'] })).toBe('c');
  });

  it('inspects canaries first, and holds back the hosts of later stages and those beyond the connections', () => {
    const at = (name: string, stage: number, state: MemberState = 'waiting'): RolloutMember => ({ name, stage, state });
    const inspected = (run: readonly RolloutMember[], rules: Partial<RolloutRules>) =>
      nextStep(run, { ...HOSTS, ...rules }).inspect.map(({ name }) => name);
    const run = [at('w1', 2), at('w2', 2), at('cp1', 1), at('cp2', 1)];
    expect(inspected(run, {})).toEqual(['cp1', 'cp2']);
    expect(inspected(run, { canary: 1, canaryOrder: ['w1', 'w2', 'cp1'], parallel: 2 })).toEqual(['w1', 'w2']);
    expect(inspected(run, { canary: 1, canaryOrder: ['w1', 'w2', 'cp1'], maxOpen: 2 })).toEqual(['w1', 'cp1']);
    expect(inspected([at('w1', 1, 'queued'), ...run.slice(1)], { maxOpen: 2 })).toEqual(['cp1']);
  });
});

describe('the batches of a rollout', () => {
  it('are a canary, then up to maxUnavailable nodes', () => {
    const { batches } = planBatches(members('a b c d e'), { ...BATCHES, canary: 1, maxUnavailable: 2 });
    expect(batches.map(({ names }) => names.join(''))).toEqual(['a', 'bc', 'de']);
    expect(batches.map(({ isCanary }) => isCanary)).toEqual([true, false, false]);
  });

  it('are smaller by the number of nodes that are down, which come last', () => {
    const { batches, blocked } = planBatches(members('a b! c d e'), { ...BATCHES, canary: 1, maxUnavailable: 3 });
    expect(batches.map(({ names, isDown }) => `${names.join('')}${isDown ? '!' : ''}`)).toEqual(['a', 'cd', 'e', 'b!']);
    expect(blocked).toEqual([]);
  });

  it('name the nodes that block the next batch', () => {
    expect(planBatches(members('a! b! c'), { ...BATCHES, canary: 1, maxUnavailable: 2 })).toEqual({ batches: [], blocked: ['a', 'b'] });
  });
});

describe('the order of a rollout', () => {
  /** `a1 b2 c`: name, and the zone as a digit; then the state as in `members`. */
  const inZones = (text: string): readonly RolloutMember[] =>
    text.split(' ').map((word) => {
      const [, name = '', zone, mark = ''] = /^([a-z])([0-9]?)(.*)$/.exec(word) ?? [];
      return { ...(members(`${name}${mark}`)[0] as RolloutMember), ...(zone === '' ? {} : { zone }) };
    });
  const sequence = (text: string, rules: Partial<RolloutRules>): readonly string[] =>
    planBatches(inZones(text), { ...HOSTS, inBatches: true, ...rules }).batches.map(({ names }) => names.join(' '));

  it.each<[string, string, Partial<RolloutRules>, readonly string[]]>([
    ['is that of the run without --order', 'a2 b1 c', {}, ['a b c']],
    ['is one zone after the other, unknown zones last', 'a2 b1 c d2 e1', { order: 'zone' }, ['b e', 'a d', 'c']],
    ['ends a zone before the next one starts', 'a2 b1 c1 d1', { order: 'zone', maxUnavailable: 2 }, ['b c', 'd', 'a']],
    ['has a canary of the first zone', 'a2 b1 c1', { order: 'zone', canary: 1 }, ['b', 'c', 'a']],
    ['has a named canary of a later zone', 'a2 b1 c1 d2', { order: 'zone', canary: 1, canaryOrder: ['d'] }, ['d', 'b c', 'a']],
    ['leaves members that are down to the end', 'a1! b1 c2', { order: 'zone' }, ['b', 'c', 'a']],
    ['is spread over the zones, unknown zones last', 'a b1 c1 d1 e2 f3', { order: 'spread', maxUnavailable: 2 }, ['b e', 'f c', 'd a']],
  ])('%s', (_, text, rules, expected) => {
    expect(sequence(text, rules)).toEqual(expected);
  });

  it('waits for the zone in progress, and starts the zone with the fewest members in progress', () => {
    expect(step(inZones('a1~ b2 c1+'), { ...HOSTS, order: 'zone' })).toBe('');
    expect(step(inZones('a1~ b1 c2 d2+'), { ...HOSTS, order: 'spread', maxUnavailable: 2 })).toBe('c');
  });

  it('changes members of a zone that are down, if no more can be inspected', () => {
    expect(step(inZones('a1! b1! c2.'), { ...HOSTS, order: 'zone', maxOpen: 2 })).toBe('a b');
    expect(step(inZones('a1~ b1! c2.'), { ...HOSTS, order: 'zone', maxOpen: 2 })).toBe('');
    const controlPlanes = inZones('a1! b2.').map((member) => ({ ...member, isExclusive: true }));
    expect(step(controlPlanes, { ...HOSTS, order: 'zone' })).toBe('a');
  });

  it('has a canary in each stage, if the canaries wait for earlier stages', () => {
    const all = members('a b c d').map((member, i) => ({ ...member, stage: i < 2 ? 0 : 1, isExclusive: i < 2 }));
    const rules = { ...HOSTS, canary: 1, canaryOrder: ['d'], hasCanaryPerStage: true, inBatches: true };
    expect(planBatches(all, rules).batches.map(({ names, isCanary }) => `${names}${isCanary ? '!' : ''}`)).toEqual(['a!', 'b', 'd!', 'c']);
  });
});

describe('any rollout', () => {
  const event = fc.record({
    /** Index of the affected member. */
    member: fc.nat(),
    kind: fc.constantFrom('pass', 'pass', 'pass', 'fail', 'refuse', 'down', 'up', 'nothing'),
  });
  const NAMES = Array.from({ length: 25 }, (_, i) => `n${i}`);
  const rules = fc.record({
    canary: fc.nat(5),
    maxUnavailable: fc.integer({ min: 1, max: 6 }),
    maxFail: fc.option(fc.nat(3)),
    cautious: fc.boolean(),
    inBatches: fc.boolean(),
    observesFirst: fc.boolean(),
    stopsIfRefused: fc.boolean(),
    parallel: fc.constantFrom(1, 3, 50),
    maxOpen: fc.constantFrom(2, 50),
    canaryOrder: fc.option(fc.shuffledSubarray(NAMES, { minLength: NAMES.length }), { nil: undefined }),
    order: fc.constantFrom(undefined, 'zone', 'spread'),
    hasCanaryPerStage: fc.boolean(),
  }) as fc.Arbitrary<RolloutRules>;
  const start: fc.Arbitrary<readonly RolloutMember[]> = fc
    .array(
      fc.record({
        state: fc.constantFrom<MemberState>('waiting', 'queued'),
        isDown: fc.boolean(),
        stage: fc.nat(2),
        isExclusive: fc.boolean(),
        zone: fc.constantFrom(undefined, 'a', 'b', 'c'),
      }),
      { minLength: 1, maxLength: 25 },
    )
    .map((all) =>
      all.map(({ state, isDown, zone, ...place }, i) => ({ name: `n${i}`, state, isDown, zone, ...(state === 'waiting' ? place : {}) })),
    );

  const OPEN = new Set<MemberState>(['waiting', 'inspecting', 'queued', 'in-progress']);

  it('respects its limits, runs the canaries alone, starts no member twice or after a stop, and finishes', () => {
    fc.assert(
      fc.property(start, rules, fc.array(event, { maxLength: 150 }), (all, given, story) => {
        // A run with an order of canaries has exclusive members in one stage: the control planes.
        const initial = given.canaryOrder === undefined ? all : all.map((one) => ({ ...one, isExclusive: one.stage === 1 }));
        // The connections must suffice for all members that are inspected first, or were before.
        const isInspected = given.observesFirst === true || initial.some(({ state }) => state === 'queued');
        const rule = isInspected ? { ...given, maxOpen: 100 } : given;
        let now = [...initial];
        const started = new Set<string>();
        const failures = (): number => now.filter(({ state }) => state === 'failed' || state === 'refused').length;
        const count = (predicate: (member: RolloutMember) => boolean): number => now.filter(predicate).length;
        const set = (index: number, change: Partial<RolloutMember>): void => {
          now = now.map((member, i) => (i === index ? { ...member, ...change } : member));
        };
        const act = (): boolean => {
          const step = nextStep(now, rule);
          const open = Math.min(...now.flatMap((member) => (OPEN.has(member.state) ? [member.stage ?? 0] : [])));
          const isOfCanaries = ({ stage = 0 }: RolloutMember): boolean => rule.hasCanaryPerStage !== true || stage >= open;
          const passed = count((member) => member.state === 'changed' && isOfCanaries(member));
          const isCanary = passed < rule.canary;
          if (step.start.length + step.inspect.length > 0) {
            expect(step.stopped).toBeNull();
            // Members refused before the first change are all listed.
            if (step.start.length > 0 || rule.observesFirst !== true)
              expect(failures()).toBeLessThanOrEqual(
                rule.maxFail ?? (rule.stopsIfRefused === true ? count(({ state }) => state === 'failed') : now.length),
              );
            if (isCanary) expect(count((member) => member.state === 'failed' && isOfCanaries(member))).toBe(0);
            const zones = new Set(step.start.flatMap(({ zone, isDown }) => (isDown === true ? [] : (zone ?? ''))));
            if (rule.order === 'zone' && !isCanary) expect(zones.size).toBeLessThanOrEqual(1);
          }
          const wasActive = count(({ state }) => state === 'in-progress');
          if (rule.inBatches === true && wasActive > 0) expect(step.start).toEqual([]);
          if (step.start.some(({ isDown }) => isDown === false)) {
            const unavailable = count((member) => member.isDown === true || member.state === 'in-progress' || step.start.includes(member));
            expect(unavailable).toBeLessThanOrEqual(rule.maxUnavailable);
            if (isCanary) expect(passed + wasActive + step.start.length).toBeLessThanOrEqual(rule.canary);
          }
          const running = now.filter((member) => member.state === 'in-progress' || step.start.includes(member));
          if (step.start.length > 0 && running.some(({ isExclusive }) => isExclusive === true)) expect(running).toHaveLength(1);
          for (const { name, state } of step.start) {
            expect(state).toBe('queued');
            expect(started.has(name)).toBe(false);
            started.add(name);
            set(Number(name.slice(1)), { state: 'in-progress' });
          }
          for (const { name, state } of step.inspect) {
            expect(state).toBe('waiting');
            set(Number(name.slice(1)), { state: 'inspecting' });
          }
          const busy = count(({ state }) => state === 'inspecting' || state === 'in-progress');
          if (step.inspect.length > 0) expect(busy).toBeLessThanOrEqual(rule.parallel ?? now.length);
          return step.start.length + step.inspect.length + busy > 0;
        };
        const end = (index: number, kind: string): void => {
          const member = now[index] as RolloutMember;
          if (member.state === 'inspecting') set(index, { state: kind === 'refuse' ? 'refused' : 'queued' });
          if (member.state !== 'in-progress') return;
          set(
            index,
            kind === 'pass'
              ? { state: 'changed', isDown: false }
              : { state: member.isDown === true ? 'unreachable' : 'failed', isDown: true },
          );
        };
        for (const { member, kind } of story) {
          act();
          const index = member % now.length;
          if (kind === 'down' || kind === 'up') set(index, { isDown: kind === 'down' });
          else if (kind !== 'nothing') end(index, kind);
        }
        // Without further failures the rollout finishes, and starts every member unless it was stopped.
        for (let i = 0; i < 200 && act(); i++)
          for (const index of now.keys()) {
            end(index, 'pass');
            if (now[index]?.state === 'queued' || now[index]?.state === 'changed') set(index, { isDown: false });
          }
        const last = nextStep(now, rule);
        expect([...last.start, ...last.inspect]).toEqual([]);
        expect(count(({ state }) => state === 'in-progress' || state === 'inspecting')).toBe(0);
        if (last.stopped === null && last.blocked.length === 0) expect(count(({ state }) => OPEN.has(state))).toBe(0);
        if (last.blocked.length > 0) expect(count(({ isDown }) => isDown === true)).toBeGreaterThanOrEqual(rule.maxUnavailable);
      }),
      { numRuns: numberOfRuns(1_000) },
    );
  });

  it('runs as planned without failures', () => {
    const limits = fc.record({ canary: fc.nat(5), maxUnavailable: fc.integer({ min: 1, max: 6 }) });
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 25 }), limits, (areDown, limit) => {
        const all = areDown.map((isDown, i): RolloutMember => ({ name: `n${i}`, state: 'queued', isDown }));
        const { batches, blocked } = planBatches(all, { ...BATCHES, ...limit });
        const planned = batches.flatMap(({ names }) => names);
        expect(new Set(planned).size).toBe(planned.length);
        const down = all.filter(({ isDown }) => isDown === true).length;
        expect(planned.length === all.length || blocked.length === down).toBe(true);
        for (const { names, isDown } of batches) if (!isDown) expect(names.length + down).toBeLessThanOrEqual(limit.maxUnavailable);
      }),
      { numRuns: numberOfRuns(300) },
    );
  });
});

describe('the members that start next', () => {
  it('are those after the success of the members in progress', () => {
    const all = members('a b c d e').map((member) => ({ ...member, state: member.name === 'a' ? ('in-progress' as const) : member.state }));
    expect(nextStep(all, { ...BATCHES, canary: 1, maxUnavailable: 2 }).start).toEqual([]);
    expect(nextMembers(all, { ...BATCHES, canary: 1, maxUnavailable: 2 })).toEqual({ names: ['b', 'c'], stopped: null });
    expect(nextMembers(members('a'), { ...BATCHES, canary: 1, maxUnavailable: 2 })).toEqual({ names: ['a'], stopped: null });
    expect(nextMembers(all, { ...BATCHES, canary: 1, maxUnavailable: 2 }, new Set('a'))).toEqual({
      names: [],
      stopped: 'the first host to be changed (canary) failed',
    });
  });
});
