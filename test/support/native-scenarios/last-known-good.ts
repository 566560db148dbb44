import { expect } from 'vitest';
import type { KubeObject } from '../../../src/kube/object.ts';
import { comesTo, stays } from '../native-subject.ts';
import { BAD, GOOD, INVALID, payload } from '../native-world.ts';
import { E1, E2, E4, type NativeScenario, scenario, standInScenario, takes, withLastKnownGood } from './scenario.ts';

/** Scenarios of the configuration to which a kubelet falls back. */
export const LAST_KNOWN_GOOD: readonly NativeScenario[] = [
  scenario([15, 16, 17], 'last known good after ten minutes, then a bad configuration, then back', async (s) => {
    const a = await withLastKnownGood(s, GOOD);
    const good = { assigned: s.at(a), active: s.at(a), lastKnownGood: s.at(a) };
    await stays(s, { status: good, restarts: 1 }, 0);
    const b = await s.put('b', { kubelet: BAD });
    await s.assign('b');
    await comesTo(s, { status: { ...good, assigned: s.at(b), error: E1 }, pods: 77, lastEvent: expect.stringContaining('configmaps/b,') });
    await s.assign('a');
    await comesTo(s, { status: good, restarts: 3 });
  }),

  scenario([18], 'two keys of one ConfigMap', async (s) => {
    const a = await s.put('a', { kubelet: GOOD, bad: BAD });
    await takes(s, a);
    await s.passTrial();
    await s.assign('a', 'bad');
    await comesTo(s, { status: { assigned: s.at(a, 'bad'), active: s.at(a), lastKnownGood: s.at(a), error: E1 } });
    expect(await s.store.list(`${s.directory}/store/checkpoints/${a.metadata.uid}`)).toEqual([a.metadata.resourceVersion]);
  }),

  scenario([19], 'another configuration becomes last known good, without a restart', async (s) => {
    const a = await withLastKnownGood(s, GOOD);
    const b = await s.put('b', { kubelet: payload('maxPods: 88') });
    await s.assign('b');
    await comesTo(s, { status: { assigned: s.at(b), active: s.at(b), lastKnownGood: s.at(a) }, restarts: 2 });
    await s.passTrial();
    await comesTo(s, { status: { assigned: s.at(b), active: s.at(b), lastKnownGood: s.at(b) }, restarts: 2 });
  }),

  scenario([20], 'repeated changes between two configurations, each converges', async (s) => {
    const two = [await s.put('a', { kubelet: GOOD }), await s.put('b', { kubelet: payload('maxPods: 88') })];
    const rounds = s.rounds(100, 4);
    for (let i = 0; i < rounds; i++) await takes(s, two[i % 2] as KubeObject);
    await stays(s, { restarts: rounds }, 0);
  }),
];

/** Scenarios of a ConfigMap that changes under the same name. */
export const IN_PLACE: readonly NativeScenario[] = [
  scenario([21], 'in place to bad, good and invalid, with increasing versions', async (s) => {
    await takes(s, await s.put('a', { kubelet: GOOD }));
    for (const [text, error] of [
      [BAD, E1],
      [payload('maxPods: 78'), null],
      [INVALID, E2],
    ] as const) {
      const now = await s.put('a', { kubelet: text });
      const expected = error === null ? { active: s.at(now) } : { error };
      await comesTo(s, { status: { assigned: s.at(now), ...expected } });
    }
  }),

  scenario([22, 23], 'in place with a last known good configuration, to bad and back', async (s) => {
    const a = await withLastKnownGood(s, GOOD);
    const second = await s.put('a', { kubelet: BAD });
    await comesTo(s, { status: { assigned: s.at(second), active: s.at(a), lastKnownGood: s.at(a), error: E1 } });
    const third = await s.put('a', { kubelet: GOOD });
    await comesTo(s, { status: { assigned: s.at(third), active: s.at(third), lastKnownGood: s.at(a) } });
  }),

  standInScenario(
    [24],
    'in place on a kubelet that has been idle',
    'a real one would have to idle for longer than ten minutes',
    async (s) => {
      await withLastKnownGood(s, GOOD);
      await s.pass(20 * 60);
      const second = await s.put('a', { kubelet: payload('maxPods: 78') });
      await comesTo(s, { status: expect.objectContaining({ active: s.at(second) }) });
    },
  ),

  scenario([25, 26], 'an update without changes has no effect; a changed label restarts', async (s) => {
    await takes(s, await s.put('a', { kubelet: GOOD }));
    await s.put('a', { kubelet: GOOD });
    await stays(s, { restarts: 1 }, 30);
    const labelled = await s.put('a', { kubelet: GOOD }, { metadata: { labels: { team: 'x' } } });
    await comesTo(s, { status: { assigned: s.at(labelled), active: s.at(labelled) }, restarts: 2 });
  }),

  ...(
    [
      ['bad', BAD, E1],
      ['invalid', INVALID, E2],
      ['good', GOOD, null],
    ] as const
  ).map(([what, text, error]) =>
    scenario([27, 28, 29], `keeps running while the ConfigMap is deleted, then uses the new one, which is ${what}`, async (s) => {
      const first = await s.put('a', { kubelet: GOOD });
      await takes(s, first);
      await s.remove('a');
      await comesTo(s, { status: { assigned: s.at(first), active: s.at(first), error: E4 }, pods: 77, restarts: 1 });
      const again = await s.put('a', { kubelet: text });
      const expected = error === null ? { active: s.at(again) } : { error };
      await comesTo(s, { status: { assigned: s.at(again), ...expected } });
    }),
  ),
];
