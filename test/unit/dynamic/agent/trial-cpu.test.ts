import { afterEach, describe, expect, it } from 'vitest';
import { type Behaviour, newWorld, payload, type World } from './world.ts';

describe('the CPU time of a kubelet in a trial', () => {
  let world: World;
  afterEach(() => world.stop());

  const begin = async (before: Behaviour, during: Behaviour): Promise<void> => {
    world = newWorld();
    world.behaviours.set(110, before);
    world.behaviours.set(50, during);
    await world.clock.sleep(600_000);
    world.start();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('it is in trial', () => world.state?.phase === 'trial' && world.state.switching === null);
  };
  const ended = (): boolean => world.state?.phase === 'fallen-back' || world.state?.phase === 'good';

  it('rolls back a configuration that keeps the kubelet busy, after three minutes', async () => {
    await begin({ cpus: () => 0.02 }, { cpus: () => 0.62 });
    await world.until('the end of the trial', ended);
    expect(world.state).toMatchObject({ phase: 'fallen-back', fault: { signal: 'cpu' } });
    const [started = 0, rolledBack = 0] = world.startTimes;
    expect(Math.round((rolledBack - started) / 1000)).toBe(180);
    await world.until('reported', async () => (await world.condition()).reason === 'FallenBack');
    expect((await world.condition()).message).toContain('the kubelet uses 62% of a CPU, as average of 3 minutes, and used 2% before');
  });

  it('compares with the state before the switch after the agent was killed', async () => {
    await begin({ cpus: () => 0.02 }, { cpus: () => 0.62 });
    await world.stop();
    world.start();
    await world.until('the end of the trial', ended);
    expect(world.state).toMatchObject({ phase: 'fallen-back', fault: { signal: 'cpu' } });
  });

  it.each<[string, Behaviour, Behaviour]>([
    ['that was as busy before', { cpus: () => 0.4 }, { cpus: () => 0.9 }],
    ['that starts all pods of a node', { cpus: () => 0.05 }, { cpus: (seconds) => Math.min(2, 60 / seconds) }],
    ['that uses more, but little', { cpus: () => 0.01 }, { cpus: () => 0.3 }],
    ['whose CPU time was not known before', {}, { cpus: () => 0.9 }],
    ['whose CPU time is not known', { cpus: () => 0.01 }, {}],
  ])('accepts a kubelet %s', async (_, before, during) => {
    await begin(before, during);
    await world.until('the end of the trial', ended);
    expect(world.state).toMatchObject({ phase: 'good' });
  });
});
