import { describe, expect, it } from 'vitest';
import { staticPodPause, watchHealth } from '../../../../../src/kubeadm/phases/upgrade/wait-static-pod.ts';
import { fakeClock } from '../../../../support/fake-clock.ts';
import { fakeHost } from '../../../../support/fake-host.ts';

describe('staticPodPause', () => {
  it('asks the local host often at first, and a remote host as often as before', () => {
    const local = staticPodPause(fakeHost());
    const remote = staticPodPause({ dial: () => Promise.reject(new Error('not dialled')) });
    expect([local(0, 1), local(29_999, 1), local(30_000, 1)]).toEqual([100, 100, 1_000]);
    expect([remote(0, 1), remote(29_999, 1), remote(30_000, 1)]).toEqual([500, 500, 1_000]);
  });
});

describe('watchHealth', () => {
  /** @param answers milliseconds before each answer, and whether it is a healthy one */
  const seen = (isRestarting: boolean, ...answers: readonly (readonly [afterMs: number, isHealthy: boolean])[]): boolean => {
    const clock = fakeClock();
    const watch = watchHealth(clock, { isRestarting });
    for (const [afterMs, isHealthy] of answers) {
      clock.advance(afterMs);
      watch.observe(isHealthy);
    }
    return watch.hasAnswered();
  };

  it('takes an answer for that of the restored Pod, unless the replaced Pod may still run and has answered throughout', () => {
    expect(seen(false, [100, true])).toBe(true);
    expect(seen(true, [100, true], [500, true], [500, false])).toBe(false);
    expect(seen(true, [100, true], [500, false], [500, true], [500, false])).toBe(true);
    expect(seen(true, [100, true], [5_000, true])).toBe(true);
    expect(seen(true, ...Array.from({ length: 61 }, () => [1_000, true] as const))).toBe(true);
    expect(seen(false, [100, false])).toBe(false);
  });
});
