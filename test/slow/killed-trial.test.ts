import { afterEach, describe, expect, it } from 'vitest';
import { type Behaviour, NODE, newWorld, payload, type World } from '../unit/dynamic/agent/world.ts';

const MANIFESTS = '/etc/kubernetes/manifests';
const STATIC_PODS = `staticPodPath: ${MANIFESTS}\nclusterDNS: [10.96.0.10]\n`;

/** The facts that an agent records before a trial, and whether the configuration keeps them. */
const TRIALS: Readonly<Record<string, { readonly before?: Behaviour; readonly in: Behaviour; readonly cause: string | null }>> = {
  'rejects the credential of the node': { in: { lockedOut: true }, cause: 'the kubelet API no longer accepts the credential of this node' },
  'makes the Node NotReady': { in: { notReady: true }, cause: 'the Node is not Ready' },
  'causes a pressure condition': { in: { pressure: 'PIDPressure' }, cause: 'the Node has PIDPressure' },
  'rejected the credential before as well': { before: { lockedOut: true }, in: { lockedOut: true }, cause: null },
  'was NotReady before as well': { before: { notReady: true }, in: { notReady: true }, cause: null },
  'had the pressure condition before as well': { before: { pressure: 'PIDPressure' }, in: { pressure: 'PIDPressure' }, cause: null },
};

/** The programs before this one prepare the configuration, which changes nothing that a trial depends on. */
const FIRST = 15;

describe('an agent that is killed around the switch to a trial', () => {
  let world: World;
  afterEach(() => world.stop());

  /** Resolves when the trial runs. False: the agent was killed before. */
  const startsTrial = async (): Promise<boolean> => {
    await world.until('trial', () => world.wasKilled() || (world.state?.phase === 'trial' && world.state.switching === null));
    return !world.wasKilled();
  };

  /** Kills the agent at its n-th program, starts it again, and reads the result. False: the trial started before. */
  const killAt = async (n: number, { before = {}, in: behaviour, cause }: (typeof TRIALS)[string]): Promise<boolean> => {
    world = newWorld({ timing: { trialMs: 120_000 } });
    world.behaviours.set(110, before);
    world.behaviours.set(50, behaviour);
    world.restartKubelet();
    await world.push('a', payload(50));
    await world.assign('a');
    world.start(n);
    const isTooLate = await startsTrial();
    await world.stop();
    if (isTooLate) return false;
    world.start();
    await startsTrial();
    const from = world.clock.elapsedMs;
    await world.until('the longest time of a signal', () => world.state?.phase !== 'trial' || world.clock.elapsedMs - from > 45_000);
    expect(world.state, `killed at program ${n}`).toMatchObject({ phase: cause === null ? 'trial' : 'fallen-back' });
    await world.until('reported', async () => (await world.condition()).reason === (cause === null ? 'Trial' : 'FallenBack'));
    if (cause !== null) expect((await world.condition()).message).toContain(cause);
    await world.stop();
    return true;
  };

  it.each(Object.entries(TRIALS))('compares with the state before the switch: the configuration %s', async (_, trial) => {
    let n = FIRST;
    while (await killAt(n, trial)) n += 2;
    expect(n).toBeGreaterThan(FIRST + 10);
  });

  it('compares the pods with those before the switch', async () => {
    for (let n = FIRST, isTooLate = false; !isTooLate; n++) {
      world = newWorld({ pods: true, timing: { trialMs: 120_000 } });
      world.behaviours.set(60, { configz: { staticPodPath: MANIFESTS, clusterDNS: ['10.96.0.10'] } });
      world.host.files.set(MANIFESTS, { type: 'directory', mode: 0o755, owner: 'root:root' });
      world.editLocal(payload(110, STATIC_PODS));
      world.restartKubelet();
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'b', namespace: 'default' } };
      await world.cluster.create({ ...pod, spec: { nodeName: NODE, containers: [{ name: 'main', image: 'x' }] } });
      await world.pods.settled();
      await world.push('a', payload(60, STATIC_PODS));
      await world.assign('a');
      world.start(n);
      isTooLate = await startsTrial();
      await world.stop();
      if (world.runs() !== 60) continue;
      const failed = { status: { phase: 'Failed', reason: 'OutOfcpu', message: 'Pod was rejected' } };
      await world.cluster.patch({ ...pod, name: 'b', namespace: 'default' }, 'merge', failed, { subresource: 'status' });
      world.start();
      await world.until('rolled back', () => world.state?.phase === 'fallen-back' || world.state?.phase === 'good');
      expect(world.state, `killed at program ${n}`).toMatchObject({ phase: 'fallen-back', fault: { signal: 'pod-rejected' } });
      await world.stop();
    }
  });
});
