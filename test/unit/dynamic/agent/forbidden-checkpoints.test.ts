import { afterEach, describe, expect, it } from 'vitest';
import { OVERLAY } from '../../../support/agent-scenarios.ts';
import { newWorld, type World } from './world.ts';

const TIMING = { trialMs: 5_000, goodPollMs: 5_000 };
const PORT = `${OVERLAY}readOnlyPort: 10255\nmaxPods: 50\n`;
const FLAG = '--read-only-port=10255';

let world: World;
afterEach(() => world.stop());

const isPhase = (phase: string) => (): boolean => world.state?.phase === phase;

describe('a configuration that is no longer permitted', () => {
  it('is rolled back after the flag that had the same value was removed', async () => {
    const flags = [FLAG];
    world = newWorld({ timing: TIMING, allow: 'new-pods-only', flags });
    world.behaviours.set(50, { configz: { readOnlyPort: 10255 } });
    await world.push('a', PORT);
    await world.assign('a');
    world.start();
    await world.until('good', isPhase('good'));
    flags.length = 0;
    world.restartKubelet();
    await world.until('rolled back', () => world.runs() === 110);
    const condition = await world.condition();
    expect(condition).toMatchObject({ status: 'False' });
    expect(condition.message).toMatch(/no longer permitted: the changes of readOnlyPort \(unsafe: .*need --allow unsafe/);
    expect(world.state?.lastKnownGood).toBeNull();
  });

  it('is rolled back by an agent that starts with a stricter policy, also without the API server', async () => {
    world = newWorld({ timing: TIMING });
    world.behaviours.set(50, { configz: { readOnlyPort: 10255 } });
    await world.push('a', PORT);
    await world.assign('a');
    world.start();
    await world.until('good', isPhase('good'));
    await world.stop();
    world.away(true);
    world.start(0, 'new-pods-only');
    await world.until('rolled back', () => world.runs() === 110);
    expect(world.state).toMatchObject({ phase: 'fallen-back', lastKnownGood: null, fault: { code: 'NOT_ALLOWED' } });
    world.away(false);
    await world.until('reported', async () => (await world.condition()).status === 'False');
    expect(world.runs()).toBe(110);
  });

  it('is no target of a rollback', async () => {
    world = newWorld({ timing: TIMING });
    world.behaviours.set(50, { configz: { readOnlyPort: 10255 } });
    await world.push('a', PORT);
    await world.assign('a');
    world.start();
    await world.until('good', isPhase('good'));
    world.behaviours.set(60, { healthz: 500 });
    await world.push('b', `${OVERLAY}maxPods: 60\n`);
    await world.assign('b');
    await world.until('rolled back to a', () => world.state?.phase === 'fallen-back' && world.runs() === 50);
    await world.stop();
    world.start(0, 'new-pods-only');
    await world.until('rolled back to the local configuration', () => world.runs() === 110);
    expect(world.state?.lastKnownGood).toBeNull();
  });

  it('is applied again by an agent that permits it', async () => {
    world = newWorld({ timing: TIMING });
    world.behaviours.set(50, { configz: { readOnlyPort: 10255 } });
    await world.push('a', PORT);
    await world.assign('a');
    world.start();
    await world.until('good', isPhase('good'));
    await world.stop();
    world.start(0, 'new-pods-only');
    await world.until('rejected', () => world.state?.phase === 'rejected' && world.runs() === 110);
    await world.stop();
    world.start();
    await world.until('good again', () => world.state?.phase === 'good' && world.runs() === 50);
  });

  it('stays if its changes are only disruptive', async () => {
    world = newWorld({ timing: TIMING });
    world.behaviours.set(50, { configz: { hairpinMode: 'none' } });
    await world.push('a', `${OVERLAY}hairpinMode: none\nmaxPods: 50\n`);
    await world.assign('a');
    world.start();
    await world.until('good', isPhase('good'));
    await world.stop();
    const starts = world.starts();
    world.start(0, 'new-pods-only');
    await world.until('verified', () => isPhase('good')() && world.state?.switching === null);
    world.restartKubelet();
    await world.until('observed again', () => world.state?.watch.lastAt !== null && world.state?.notObservedReason === null);
    expect(world.runs()).toBe(50);
    expect(world.starts()).toBe(starts);
  });
});
