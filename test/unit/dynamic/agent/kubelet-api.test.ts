import { afterEach, describe, expect, it } from 'vitest';
import { type Behaviour, newWorld, payload, type World } from './world.ts';

describe('a trial whose configuration changes the API of the kubelet', () => {
  let world: World;
  afterEach(() => world.stop());

  /** The seconds from the restart with the configuration to the restart of the rollback. */
  const secondsOf = async (behaviour: Behaviour, more = ''): Promise<number> => {
    world = newWorld({ timing: { trialMs: 60_000 } });
    world.behaviours.set(50, behaviour);
    await world.push('a', payload(50, more));
    await world.assign('a');
    world.start();
    await world.until('the trial', () => world.startTimes.length > 0 && world.state?.phase === 'trial');
    await world.until('its end', () => world.state?.phase !== 'trial');
    const [from = 0, to = 0] = world.startTimes;
    return (to - from) / 1000;
  };

  it('rolls back within 10 s if the kubelet rejects the credential of the node', async () => {
    const seconds = await secondsOf({ lockedOut: true });
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(10);
    expect(world.state).toMatchObject({ phase: 'fallen-back', fault: { sign: 'locked-out' } });
  });

  it('is not rolled back if the kubelet cannot ask the API server about permissions', async () => {
    await secondsOf({ configzStatus: 500 });
    expect(world.state).toMatchObject({ phase: 'good' });
  });

  it.each([
    ['no serving certificate is signed', 'serverTLSBootstrap: true\n', 'no CSR of the kubelet for a serving certificate was approved'],
    ['the kubelet listens on the loopback address only', 'address: 127.0.0.1\n', 'the kubelet listens only on 127.0.0.1'],
  ])('rolls back if %s', async (_, more, cause) => {
    await secondsOf({}, more);
    expect(world.state).toMatchObject({
      phase: 'fallen-back',
      fault: { sign: 'not-serving', cause: expect.stringContaining('the kubelet API no longer answers: ') },
    });
    expect((await world.condition()).message).toContain(cause);
  });
});
