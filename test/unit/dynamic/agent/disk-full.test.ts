import { afterEach, describe, expect, it } from 'vitest';
import { AGENT_DIRECTORY } from '../../../../src/kubelet/node-agent/agent-program.ts';
import { stateFiles } from '../../../../src/kubelet/node-agent/layout.ts';
import { newWorld, payload, type World } from './world.ts';

let world: World;
afterEach(() => world.stop());

const phase = (name: string) => (): boolean => world.state?.phase === name && world.state.switching === null;
const message = async (): Promise<string> => (await world.condition()).message as string;
const fill = (free = 0): void => {
  world.host.disk = { under: AGENT_DIRECTORY, free };
};

/** Starts an agent whose last known good configuration has 50 pods, and one that crashes 5 s after its start with 60. */
async function withLastKnownGood(): Promise<void> {
  world = newWorld({ timing: { trialMs: 30_000 } });
  world.behaviours.set(60, { crashesAfter: 5 });
  world.start();
  await world.push('a', payload(50));
  await world.assign('a');
  await world.until('a is good', phase('good'));
  await world.push('bad', payload(60));
}

describe('an agent whose disk is full', () => {
  it('rolls a trial that crashes back to the last known good configuration', async () => {
    await withLastKnownGood();
    await world.assign('bad');
    await world.until('bad is in trial', phase('trial'));
    fill();
    await world.until('rolled back', phase('fallen-back'));
    expect(world.runs()).toBe(50);
    await world.until('the rollback is reported', async () => (await message()).endsWith('runs the last known good configuration'));
    expect(world.starts()).toBe(3);
    // The decision is persisted: a restarted agent does not try the configuration again.
    await world.stop();
    world.start();
    await world.until('the state is loaded', () => world.state?.switching === null);
    expect(world.state?.phase).toBe('fallen-back');
    expect(world.starts()).toBe(3);
  });

  it('starts no trial without space for its rollback, and starts it once space is available', async () => {
    await withLastKnownGood();
    await world.push('c', payload(70));
    for (const path of [...world.host.files.keys()])
      if (path.endsWith('/reserve') || path.endsWith('rollback.env')) world.host.files.delete(path);
    // Enough space for the checkpoint and the state only.
    fill(28_000);
    await world.assign('c');
    await world.until('refused', async () => (await message()).includes('the trial was not started'));
    expect(await world.condition()).toMatchObject({ status: 'False', reason: 'Unavailable' });
    expect(await world.condition()).toMatchObject({ message: expect.stringContaining('No space left on device') });
    expect((await world.status()).active).toMatchObject({ configMap: { name: 'a' } });
    expect([world.runs(), world.starts()]).toEqual([50, 1]);
    world.host.disk = null;
    await world.until('it is good', () => world.state?.phase === 'good' && world.runs() === 70);
  });

  it('starts no trial while the state of the node before it cannot be written', async () => {
    await withLastKnownGood();
    await world.push('c', payload(70));
    const copies = stateFiles(AGENT_DIRECTORY);
    for (const path of copies) world.host.files.set(path, { type: 'directory', mode: 0o755, owner: 'root:root' });
    await world.assign('c');
    await world.until('refused', async () => (await message()).includes('the trial was not started'));
    expect([world.runs(), world.starts()]).toEqual([50, 1]);
    for (const path of copies) world.host.files.delete(path);
    await world.until('it is good', () => world.state?.phase === 'good' && world.runs() === 70);
  });

  it('switches to the local configuration when the pointer to the last known good one cannot be written', async () => {
    await withLastKnownGood();
    await world.assign('bad');
    await world.until('bad is in trial', phase('trial'));
    // An agent of an earlier version reserved no space.
    for (const path of [...world.host.files.keys()])
      if (path.endsWith('/reserve') || path.endsWith('rollback.env')) world.host.files.delete(path);
    fill(-1_000_000);
    await world.until('it runs the local configuration', () => world.runs() === 110);
    await world.until('reported', async () =>
      /could not be switched to the last known good.*; the kubelet runs the local configuration until the switch succeeds$/.test(
        await message(),
      ),
    );
    expect((await world.status()).active).toBeUndefined();
    const starts = world.starts();
    world.host.disk = null;
    await world.until('the last known good runs again', phase('fallen-back'));
    expect(world.runs()).toBe(50);
    expect(world.starts()).toBe(starts + 1);
    await world.until('the rollback is reported', async () => (await message()).endsWith('runs the last known good configuration'));
  });

  it('removes unused checkpoints before it gives up storing a new one', async () => {
    await withLastKnownGood();
    for (const [name, pods] of [
      ['b', 51],
      ['c', 52],
      ['d', 53],
    ] as const) {
      await world.push(name, payload(pods));
      await world.assign(name);
      await world.until(`${name} is good`, () => world.state?.phase === 'good' && world.runs() === pods);
    }
    fill(5_000);
    await world.push('e', payload(54));
    await world.assign('e');
    await world.until('e is good', () => world.state?.phase === 'good' && world.runs() === 54);
  });
});

describe('the status of an agent', () => {
  it('does not report a configuration that the kubelet process does not run', async () => {
    await withLastKnownGood();
    await world.assign('bad');
    await world.until('rolled back', phase('fallen-back'));
    await world.until('the rollback is reported', async () => (await message()).endsWith('runs the last known good configuration'));
    // An administrator starts the kubelet with its local configuration.
    world.host.files.delete(`${AGENT_DIRECTORY}/active.env`);
    world.restartKubelet();
    await world.until(
      'the status is corrected',
      async () => !(await message()).endsWith('; the kubelet runs the last known good configuration'),
    );
  });
});
