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
    expect(world.state).toMatchObject({ phase: 'fallen-back', fault: { signal: 'locked-out' } });
  });

  it('is not rolled back if the kubelet cannot ask the API server about permissions', async () => {
    await secondsOf({ configzStatus: 500 });
    expect(world.state).toMatchObject({ phase: 'good' });
  });

  it('rolls back if the kubelet listens on the loopback address only', async () => {
    await secondsOf({}, 'address: 127.0.0.1\n');
    expect(world.state).toMatchObject({
      phase: 'fallen-back',
      fault: { signal: 'not-serving', cause: expect.stringContaining('the kubelet API no longer answers: ') },
    });
    expect((await world.condition()).message).toContain('the kubelet listens only on 127.0.0.1');
  });

  it('rolls back if no serving certificate is signed within five minutes', async () => {
    const seconds = await secondsOf({}, 'serverTLSBootstrap: true\n');
    expect(seconds).toBeGreaterThanOrEqual(300);
    expect(seconds).toBeLessThan(310);
    expect(world.state).toMatchObject({ phase: 'fallen-back', fault: { signal: 'not-signed' } });
    expect((await world.condition()).message).toContain('no CSR of the kubelet for a serving certificate was approved');
  });

  it('waits for the approval of the CSR, which the condition names, before the trial counts', async () => {
    world = newWorld({ timing: { trialMs: 60_000 } });
    world.behaviours.set(50, { configz: { serverTLSBootstrap: true } });
    await world.push('a', payload(50, 'serverTLSBootstrap: true\n'));
    await world.assign('a');
    world.start();
    await world.until('the condition', async () => String((await world.condition()).message).includes('kubeletadm csr approve'));
    expect(await world.condition()).toMatchObject({
      status: 'Unknown',
      message: expect.stringContaining('the kubelet has no serving certificate'),
    });
    const [started = 0] = world.startTimes;
    await world.until('four minutes', () => world.clock.elapsedMs - started > 240_000);
    expect(world.state?.phase).toBe('trial');
    const certificate = world.host.text('/var/lib/kubelet/pki/kubelet.crt');
    world.host.files.set('/var/lib/kubelet/pki/kubelet-server-current.pem', {
      type: 'file',
      mode: 0o600,
      owner: 'root:root',
      content: certificate,
    });
    const signed = world.clock.elapsedMs;
    await world.until('good', () => world.state?.phase === 'good');
    expect(world.clock.elapsedMs - signed).toBeGreaterThanOrEqual(60_000);
    expect(world.starts()).toBe(1);
  });
});
