import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { next, nextTimer } from '../../../../src/dynamic/agent/next.ts';
import { type AgentEvent, type AgentState, newAgentState } from '../../../../src/dynamic/agent/state.ts';
import { formatStateFile, parseStateFile } from '../../../../src/dynamic/agent/state-file.ts';
import { configStatusOf } from '../../../../src/dynamic/agent/status.ts';
import { DEFAULT_TIMING, type Observation, type Timing } from '../../../../src/kubelet/health/assess.ts';
import { numberOfRuns } from '../../../support/thorough.ts';
import { BASELINE, candidate, healthy, START, wantedHash } from './support.ts';

const TIMING: Timing = { ...DEFAULT_TIMING, trialMs: 5_000 };
const HASHES = ['a', 'b', 'c'] as const;

/** Model of a disk, a kubelet and a clock, with the invariants that hold after every event. */
interface World {
  state: AgentState;
  onDisk: AgentState;
  nowMs: number;
  pointer: string | null;
  /** Requested switches without a result, oldest first. */
  asked: { readonly kind: 'record' | 'switch'; readonly id: number; readonly to: string | null }[];
  /** Payloads that failed while running, except those that a new assignment allows again. */
  failed: Set<string>;
  /** Continuous healthy time of the running payload since the switch. */
  healthyMs: number;
  lastLookAt: number | null;
  /** Payload of the process at the last observation; null: the local configuration. */
  shown: string | null;
  /** True if the last observation or switch showed the payload. */
  isShown: boolean;
  /** Payloads that were healthy for a complete trial according to this model. */
  proven: Set<string>;
  words: number;
}

function newWorld(): World {
  const state = newAgentState(START);
  return {
    state,
    onDisk: state,
    nowMs: START,
    pointer: null,
    asked: [],
    failed: new Set(),
    healthyMs: 0,
    lastLookAt: null,
    shown: null,
    isShown: false,
    proven: new Set(),
    words: 0,
  };
}

function send(world: World, event: AgentEvent): void {
  const before = world.state;
  const { state, effects } = next(before, event, world.nowMs, TIMING);
  world.state = state;
  world.onDisk = parseStateFile(formatStateFile({ generation: 1, state }))?.state as AgentState;
  expect(world.onDisk).toBeDefined();
  for (const { hash } of state.rejected) world.failed.add(hash);
  for (const effect of effects) if (effect.kind === 'switch' || effect.kind === 'record') world.asked.push(effect);
  check(world, before);
}

function check(world: World, before: AgentState): void {
  const { state } = world;
  const desired = wantedHash(state);
  const rejected = new Set(state.rejected.map(({ hash }) => hash));
  // The kubelet never runs a payload that was rejected.
  expect(rejected.has(desired ?? '')).toBe(false);
  expect(rejected.has(state.lastKnownGood?.hash ?? '')).toBe(false);
  // Failed payloads stay rejected.
  expect([...world.failed].filter((hash) => !rejected.has(hash))).toEqual([]);
  // A payload becomes last known good only after a healthy trial.
  const good = state.lastKnownGood?.hash ?? null;
  if (good !== null && good !== (before.lastKnownGood?.hash ?? null)) expect(world.proven.has(good)).toBe(true);
  // The desired payload runs, or a switch to it is pending.
  if (state.switching === null) {
    expect(desired).toBe(world.pointer);
    expect(state.active?.hash ?? null).toBe(world.pointer);
  } else {
    expect(state.switching.to).toBe(desired);
    expect(state.switching.againAt !== null || world.asked.at(-1)?.to === desired).toBe(true);
  }
  // Only an observed payload is reported as running.
  expect(state.lastObserved?.hash ?? null).toBe(world.shown);
  expect(configStatusOf(state).active).toEqual(state.lastObserved?.identity ?? null);
  // A next check is scheduled unless the local configuration is known to run.
  if (state.switching === null) expect(nextTimer(state, TIMING) === null).toBe(desired === null && world.isShown);
  if (world.isShown) expect(state.notObservedReason).toBeNull();
  else if (state.switching === null) expect(state.notObservedReason).not.toBeNull();
}

function inspect(world: World, seen: Observation): void {
  const { state } = world;
  const isTrial = state.phase === 'trial' && state.switching === null;
  if (isTrial) {
    const stepMs = world.lastLookAt === null ? 0 : Math.min(Math.max(0, world.nowMs - world.lastLookAt), 5_000);
    const isHealthy =
      seen.unit?.activeState === 'active' && seen.healthz?.ok === true && seen.ready?.is === true && seen.differing?.length === 0;
    world.healthyMs = isHealthy && seen.runs === wantedHash(state) ? world.healthyMs + stepMs : seen.ready === null ? world.healthyMs : 0;
    world.lastLookAt = world.nowMs;
    if (world.healthyMs >= TIMING.trialMs) world.proven.add(wantedHash(state) ?? '');
  }
  const desired = wantedHash(state);
  const isShown = desired === null ? seen.runs === 'local' : seen.runs === desired && seen.isProven;
  if (state.switching === null) world.isShown = isShown;
  if (state.switching === null && isShown) world.shown = desired;
  send(world, { kind: 'observed', seen });
}

function answer(world: World, how: 'done' | 'full' | 'damaged'): void {
  const asked = world.asked.shift();
  if (asked === undefined) return;
  const { id, to } = asked;
  if (how === 'done' && asked.kind === 'record') {
    // A switch that was begun is not preceded by a record again.
    const isOld = world.state.switching?.id !== id;
    send(world, { kind: 'recorded', id, baseline: to === world.pointer ? null : BASELINE });
    expect(isOld || world.onDisk.baseline !== null || to === world.pointer).toBe(true);
  } else if (how === 'done') {
    world.pointer = to;
    world.healthyMs = 0;
    world.lastLookAt = world.nowMs;
    // Every second time the process has not started yet.
    const runs = id % 2 === 0 ? (to ?? 'local') : null;
    if (world.state.switching?.id === id) world.isShown = runs !== null;
    if (runs !== null && world.state.switching?.id === id) world.shown = to;
    send(world, { kind: 'switched', id, restarts: 0, runs });
  } else {
    if (world.state.switching?.id === id) world.isShown = false;
    send(world, { kind: 'switch-failed', id, why: how, damaged: how === 'damaged' && to !== null });
  }
}

const KINDS_OF_BAD: readonly Partial<Observation>[] = [
  { unit: { activeState: 'failed', subState: 'failed', restarts: 0 } },
  { unit: { activeState: 'active', subState: 'running', restarts: 3 } },
  { healthz: { ok: false, why: '500' } },
  { differing: ['maxPods'] },
  { ready: { is: false, why: 'x' } },
  { runs: 'local', isProven: false },
  { pressures: ['DiskPressure'] },
];

type Command = fc.Command<object, World>;

function command(text: string, run: (world: World) => void): Command {
  return { check: () => true, run: (_, world) => run(world), toString: () => text };
}

const version = fc.integer({ min: 1, max: 9 });
const hash = fc.constantFrom(...HASHES);

const COMMANDS = [
  fc.tuple(hash, version).map(([h, v]) =>
    command(`assign ${h}@${v}`, (world) => {
      send(world, { kind: 'assigned', candidate: candidate(`${h.toUpperCase()}@${v}`, h), refusal: null, retry: null });
    }),
  ),
  fc.tuple(hash, version).map(([h, v]) =>
    command(`refuse ${h}@${v}`, (world) => {
      const refusal = { code: 'VALIDATION_FAILED', cause: 'bad' } as const;
      send(world, { kind: 'assigned', candidate: candidate(`${h.toUpperCase()}@${v}`, null), refusal, retry: null });
    }),
  ),
  hash.map((h) =>
    command(`retry ${h}`, (world) => {
      world.failed.delete(h);
      world.words++;
      send(world, { kind: 'assigned', candidate: candidate(`${h.toUpperCase()}@1`, h), refusal: null, retry: `word ${world.words}` });
    }),
  ),
  fc.constant(command('unassign', (world) => send(world, { kind: 'unassigned' }))),
  fc.constant(command('unavailable', (world) => send(world, { kind: 'unavailable', issue: { code: 'DOWNLOAD_FAILED', cause: 'gone' } }))),
  fc
    .constantFrom('done' as const, 'done' as const, 'done' as const, 'full' as const, 'damaged' as const)
    .map((how) => command(`answer ${how}`, (world) => answer(world, how))),
  fc.integer({ min: 1, max: 8 }).map((seconds) =>
    command(`healthy for ${seconds}`, (world) => {
      for (let i = 0; i < seconds; i++) {
        world.nowMs += 1000;
        inspect(world, healthy(world.pointer));
      }
    }),
  ),
  fc.tuple(fc.constantFrom(...KINDS_OF_BAD), fc.integer({ min: 1, max: 50 })).map(([bad, seconds]) =>
    command(`bad ${JSON.stringify(bad)} for ${seconds}`, (world) => {
      for (let i = 0; i < seconds; i++) {
        world.nowMs += 1000;
        inspect(world, healthy(world.pointer, bad));
      }
    }),
  ),
  fc.constant(
    command('the API server is away', (world) => {
      world.nowMs += 1000;
      inspect(world, healthy(world.pointer, { ready: null, differing: null }));
    }),
  ),
  fc.integer({ min: -100_000, max: 100_000 }).map((ms) =>
    command(`clock ${ms}`, (world) => {
      world.nowMs += ms;
    }),
  ),
  fc.constant(command('tick', (world) => send(world, { kind: 'tick' }))),
  fc.subarray([...HASHES]).map((intact) =>
    command(`die and start with ${intact.join()}`, (world) => {
      world.state = world.onDisk;
      world.isShown = false;
      world.asked = [];
      send(world, { kind: 'booted', intact, kubelet: 'v1.36.2' });
    }),
  ),
];

/** Fails each running payload: the assigned one and the last known good, until only the local configuration remains. */
function failAll(world: World): void {
  for (let i = 0; i < 200; i++) {
    if (world.state.switching === null) {
      if (wantedHash(world.state) === null) return;
      world.nowMs += 1000;
      inspect(world, healthy(world.pointer, { unit: { activeState: 'failed', subState: 'failed', restarts: 9 } }));
    } else if (world.asked.length > 0) answer(world, 'done');
    else {
      world.nowMs += 60_000;
      send(world, { kind: 'tick' });
    }
  }
  throw new Error('it never ends at the local configuration');
}

describe('the state machine after any sequence of events', () => {
  it('keeps its invariants, and ends with the local configuration', () => {
    fc.assert(
      fc.property(fc.commands(COMMANDS, { maxCommands: 60 }), (commands) => {
        const world = newWorld();
        fc.modelRun(() => ({ model: {}, real: world }), commands);
        failAll(world);
        expect(world.pointer).toBeNull();
      }),
      { numRuns: numberOfRuns(500) },
    );
  }, 60_000);

  it('returns to the local configuration when the assignment is removed', () => {
    fc.assert(
      fc.property(fc.commands(COMMANDS, { maxCommands: 40 }), (commands) => {
        const world = newWorld();
        fc.modelRun(() => ({ model: {}, real: world }), commands);
        send(world, { kind: 'unassigned' });
        for (let i = 0; i < 100 && world.state.switching !== null; i++) {
          if (world.asked.length > 0) answer(world, 'done');
          else {
            world.nowMs += 60_000;
            send(world, { kind: 'tick' });
          }
        }
        expect(world.state).toMatchObject({ phase: 'local', switching: null });
        expect(world.pointer).toBeNull();
        inspect(world, healthy(null));
        expect(configStatusOf(world.state)).toEqual({ assigned: null, active: null, lastKnownGood: null, error: null });
      }),
      { numRuns: numberOfRuns(250) },
    );
  });
});
