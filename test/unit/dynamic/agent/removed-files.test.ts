import { afterEach, describe, expect, it } from 'vitest';
import { AGENT_DIRECTORY } from '../../../../src/kubelet/node-agent/agent-program.ts';
import { pointerFile } from '../../../../src/kubelet/node-agent/layout.ts';
import { newWorld, payload, type World } from './world.ts';

describe('an agent whose files are removed', () => {
  let world: World;
  afterEach(() => world.stop());
  const phase = (name: string) => (): boolean => world.state?.phase === name && world.state.switching === null;
  const begin = async (): Promise<void> => {
    world = newWorld({ timing: { trialMs: 30_000 } });
    world.start();
    await world.push('a', payload(50));
    await world.assign('a');
    await world.until('trial', async () => (await world.condition()).reason === 'Trial');
  };
  const hasPointer = (): boolean => world.host.files.has(pointerFile(AGENT_DIRECTORY));

  it('rolls back at once if its directory is emptied during a trial, and does not reject the configuration', async () => {
    await begin();
    const from = world.clock.elapsedMs;
    for (const path of [...world.host.files.keys()]) if (path.startsWith(`${AGENT_DIRECTORY}/`)) world.host.files.delete(path);
    await world.until('rolled back', async () => (await world.condition()).reason === 'FallenBack');
    expect(world.startTimes.at(-1)).toBeLessThanOrEqual(from + 2_000);
    expect((await world.condition()).message).toMatch(
      /^the checkpoint on the node cannot be used: .* missing.*; the kubelet runs the local/,
    );
    expect(world.state).toMatchObject({ phase: 'fallen-back', rejected: [] });
    expect(world.runs()).toBe(110);
  });

  it.each(['trial', 'good'])('writes a removed pointer again without a restart of the kubelet: %s', async (when) => {
    await begin();
    await world.until(when, phase(when));
    world.host.files.delete(pointerFile(AGENT_DIRECTORY));
    await world.until('written again', hasPointer);
    await world.until('good', phase('good'));
    expect([world.starts(), world.runs()]).toEqual([1, 50]);
  });
});
