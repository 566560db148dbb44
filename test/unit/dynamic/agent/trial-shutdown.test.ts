import { afterEach, describe, expect, it } from 'vitest';
import { newWorld, payload, type World } from './world.ts';

const NO_LOCK = 'a(ssssuu) 0\n';
const LOCK = 'a(ssssuu) 1 "shutdown" "kubelet" "Kubelet needs time to handle node shutdown" "delay" 0 2150\n';
const PERIOD = 'shutdownGracePeriod: 60s\nshutdownGracePeriodCriticalPods: 30s\n';
const FAILED = 'E1128 11:02:22.260899    2150 kubelet.go:1863] "Failed to start node shutdown manager" err="current value is 30s"\n';

describe('the graceful shutdown in a trial', () => {
  let world: World;
  afterEach(() => world.stop());

  const begin = async (text: string, locks?: (maxPods: number | null) => string, local?: string | undefined): Promise<void> => {
    world = newWorld({ ...(locks === undefined ? {} : { locks }), ...(local === undefined ? {} : { local }), timing: { trialMs: 5_000 } });
    world.behaviours.set(50, { configz: { shutdownGracePeriod: '1m0s', shutdownGracePeriodCriticalPods: '30s' } });
    world.start();
    await world.push('a', text);
    await world.assign('a');
    await world.until('it is in trial', () => world.state?.phase === 'trial' && world.state.switching === null);
  };
  const ended = (): boolean => world.state?.phase === 'fallen-back' || world.state?.phase === 'good';

  it('that is not in force is rolled back after 30 s, with the error of the kubelet', async () => {
    await begin(payload(50, PERIOD), () => NO_LOCK);
    const unit = world.host.units.get('kubelet');
    if (unit !== undefined) unit.journal += FAILED;
    await world.until('the end of the trial', ended);
    expect(world.state).toMatchObject({ phase: 'fallen-back', fault: { signal: 'shutdown' } });
    const [started = 0, rolledBack = 0] = world.startTimes;
    expect(Math.round((rolledBack - started) / 1000)).toBeGreaterThanOrEqual(30);
    await world.until('reported', async () => (await world.condition()).reason === 'FallenBack');
    expect((await world.condition()).message).toContain(
      'shutdownGracePeriod (60 s) is not in force: the kubelet holds no lock of systemd-logind that delays a shutdown (current value is 30s)',
    );
  });

  it('is compared with the state before the switch after the agent was killed', async () => {
    await begin(payload(50, PERIOD), () => NO_LOCK);
    await world.stop();
    world.start();
    await world.until('the end of the trial', ended);
    expect(world.state).toMatchObject({ phase: 'fallen-back', fault: { signal: 'shutdown' } });
  });

  it.each<[string, string, ((maxPods: number | null) => string) | undefined, string | undefined]>([
    ['whose lock the kubelet takes', payload(50, PERIOD), (maxPods) => (maxPods === 50 ? LOCK : NO_LOCK), undefined],
    ['of a host without logind', payload(50, PERIOD), undefined, undefined],
    ['that is unchanged', payload(50, PERIOD), () => NO_LOCK, payload(110, PERIOD)],
    ['that is removed', payload(51), () => NO_LOCK, payload(110, PERIOD)],
  ])('%s is accepted', async (_, text, locks, local) => {
    await begin(text, locks, local);
    await world.until('the end of the trial', ended);
    expect(world.state).toMatchObject({ phase: 'good' });
  });
});
